// The generator's CPU time per request: the engine beside other load generators, on the same server and load.
import { join, relative } from 'node:path';
import { median, ratioInterval } from '../../analysis/statistics.ts';
import { inOneLine, UserError } from '../../errors.ts';
import { counts, enumeration, hundredths, whole } from '../../format.ts';
import { oneRunAtATime } from '../../machine/locks.ts';
import {
  leftColumn,
  rightColumn,
  tableOf,
  terminal,
  terminalTable,
  wrapLines,
  type Table,
} from '../../report/table.ts';
import { markdownTable } from '../../report/texts.ts';
import { orderOfRound } from '../../runner/plan.ts';
import { nginx } from '../../scenario/index.ts';
import type { LoadProfile, Page } from '../../scenario/model.ts';
import { projectRoot } from '../../setup/paths.ts';
import { underSignals } from '../../signals.ts';
import { writeWhole } from '../../writing.ts';
import type { CalibrateOptions } from './calibrate.ts';
import { canLoad, findPeers, requirePeerNames, type Peer } from './installed-peers.ts';
import type { Calibration } from './judge.ts';
import { checkRecordFolder } from './kept.ts';
import { calibrationCores, inLab, type Lab } from './lab.ts';
import { generatorLoadOf, loadBy, startIn } from './measure.ts';
import { placeText } from './page.ts';
import { loadgenWith, type Sample } from './peers.ts';
import { closedLoad, knownPage } from './servers.ts';

/** nginx at its fastest, so that the generators have to keep up. */
const layers = ['base', 'workers', 'open-file-cache', 'tcp-nopush', 'keepalive-unlimited'];
/** One TLS version, suite and curve, so that all clients do the same work. */
const tlsLayer = join(projectRoot, 'lib/features/calibrate/cost-tls.conf');
const page: Page = { ...knownPage, docroot: 'nginx' };

interface CostLoad {
  name: string;
  load: LoadProfile;
  front?: 'nginx';
}

const keptAlive = closedLoad(100);
const overTls: LoadProfile = { ...keptAlive, protocol: 'h2' };

const loads: readonly CostLoad[] = [
  { name: 'HTTP/1.1', load: keptAlive },
  {
    name: 'HTTP/1.0, a new connection each',
    load: { ...keptAlive, protocol: 'http/1.0', keepAlive: false },
  },
  { name: 'HTTP/1.1 over TLS', load: keptAlive, front: 'nginx' },
  { name: 'HTTP/2, 1 stream', load: { ...overTls, streams: 1 }, front: 'nginx' },
  { name: 'HTTP/2, 100 streams', load: { ...overTls, streams: 100 }, front: 'nginx' },
];

/** Like its peers the engine sleeps until there is a response. */
const engine = loadgenWith('bakeoff');

/** Where the generator runs: on its own core, or on the server's. */
const places = ['own', "the server's"] as const;

/** The samples of one generator under a load, one per round. Samples of different generators are compared round by round. */
export interface CostRow {
  load: string;
  core: (typeof places)[number];
  generator: string;
  samples: Sample[];
}

/**
 * Measures each load, prints the table, and writes cost.md and cost.json.
 * @param options isQuick: shorter, with wider intervals; only: loads whose names begin so
 * @returns the exit code
 * @throws UserError for a generator that fails, makes errors or negotiates another TLS; Interrupted. The loads measured before are
 * printed and written
 */
export async function costTable(options: CalibrateOptions): Promise<0> {
  const { additions, isQuick, only, peers, folder, command } = options;
  const chosen = loads.filter(({ name }) => name.startsWith(only ?? ''));
  if (chosen.length === 0)
    throw new UserError(
      `--only ${only}: no load's name begins so. They are ${enumeration(loads.map(({ name }) => `"${name}"`))}`,
      2,
    );
  if (peers?.length === 0)
    throw new UserError('--peers none: --cost needs another generator: name one', 2);
  requirePeerNames(peers ?? []);
  await checkRecordFolder(folder);
  const cores = calibrationCores();
  const release = await oneRunAtATime();
  const length = isQuick ? { rounds: 3, seconds: 3 } : { rounds: 6, seconds: 8 };
  const measureAll = async (lab: Lab): Promise<void> => {
    const found = await findPeers(lab.binaries.k6, peers, lab.signal);
    const rows: CostRow[] = [];
    try {
      for (const load of chosen) await addRows(lab, load, found, length, rows);
      if (rows.length === 0)
        throw new UserError('--cost: none of the other generators makes such a load', 2);
    } finally {
      const named = found.map(({ generator: { name }, version }) => ({ name, version }));
      const place = { environment: lab.environment, peers: named };
      if (rows.length > 0) await show(rows, place, { command, folder, ...length });
    }
  };
  try {
    await underSignals('ending the table', (signal) => inLab(cores, signal, additions, measureAll));
    return 0;
  } finally {
    release();
  }
}

/**
 * Starts the server, and measures all generators in each round: first all rounds with the generators on their own core, then all on the
 * server's core.
 */
async function addRows(
  lab: Lab,
  { name, load, front }: CostLoad,
  found: readonly Peer[],
  { rounds, seconds }: { rounds: number; seconds: number },
  rows: CostRow[],
): Promise<void> {
  const ours: Peer = { generator: engine, binary: lab.binaries.k6, version: '' };
  const peers = found.filter((peer) =>
    canLoad(peer, front === undefined ? { load } : { load, front }),
  );
  if (peers.length === 0) return;
  const all = [ours, ...peers];
  const config = nginx(front === undefined ? layers : [...layers, tlsLayer], { workers: 1 });
  const server = await startIn(lab, config, `load-${rows.length}`, page);
  const generatorLoad = generatorLoadOf({ load }, seconds);
  try {
    for (const core of places) {
      const added = new Map(
        all.map((peer): [Peer, CostRow] => {
          const { name: generator } = peer.generator;
          return [peer, { load: name, core, generator, samples: [] }];
        }),
      );
      for (let round = 1; round <= rounds; round++) {
        for (const peer of orderOfRound(all, round, name)) {
          const where = `${name} · core: ${core} · round ${round} of ${rounds} · ${peer.generator.name}`;
          lab.say(where);
          const sample = await loadBy(lab, peer, server, generatorLoad, core !== 'own');
          if (sample.errors > 0)
            throw new UserError(
              `${where}: ${counts(sample.errors, 'error')}${sample.errorExample === undefined ? '' : ` (${sample.errorExample})`}`,
            );
          added.get(peer)?.samples.push(sample);
        }
      }
      requireSameTls([...added.values()]);
      rows.push(...added.values());
    }
  } finally {
    await server.stop();
  }
}

/**
 * Checks that all generators that report their TLS have negotiated the same: h2load falls back to HTTP/1.1 without a message.
 * @throws UserError otherwise
 */
export function requireSameTls(rows: readonly CostRow[]): void {
  const seen = new Map<string, string>();
  for (const { generator, samples } of rows)
    for (const { tls } of samples) if (tls !== undefined) seen.set(tls, generator);
  if (seen.size > 1)
    throw new UserError(
      `${rows[0]?.load}: not the same TLS: ${[...seen].map(([tls, generator]) => `${generator} has ${tls}`).join(', ')}`,
    );
}

/**
 * Shows the medians of each generator, and the engine's figures as a multiple of them: the geometric mean over the rounds with its 95 %
 * interval.
 */
export function tableOfCosts(rows: readonly CostRow[]): Table {
  const byEngine = (row: CostRow, figure: (sample: Sample) => number): string => {
    const ours = rows.find(
      ({ load, core, generator }) =>
        load === row.load && core === row.core && generator === engine.name,
    );
    if (ours === undefined || ours === row) return '';
    const { ratio, interval } = ratioInterval(row.samples.map(figure), ours.samples.map(figure));
    return `×${hundredths(ratio)} [${interval.map(hundredths).join(', ')}]`;
  };
  const cpu = ({ cpuMicrosPerRequest }: Sample): number => cpuMicrosPerRequest;
  const rps = (sample: Sample): number => sample.rps;
  const medianOf = ({ samples }: CostRow, figure: (sample: Sample) => number): number =>
    median(samples.map(figure));
  return tableOf(rows, [
    leftColumn('load', ({ load }) => load),
    leftColumn('core', ({ core }) => core),
    leftColumn('generator', ({ generator }) => generator),
    rightColumn('CPU µs/req', (row) => hundredths(medianOf(row, cpu))),
    rightColumn('requests/s', (row) => whole(medianOf(row, rps))),
    rightColumn('CPU', (row) => byEngine(row, cpu), 'bakeoff by it'),
    rightColumn('requests/s', (row) => byEngine(row, rps), 'bakeoff by it'),
  ]);
}

async function show(
  rows: readonly CostRow[],
  place: Pick<Calibration, 'environment' | 'peers'>,
  of: { command: string; folder: string; rounds: number; seconds: number },
): Promise<void> {
  const { command, folder, rounds, seconds } = of;
  const table = tableOfCosts(rows);
  const about = `${counts(rounds, 'round')} of ${seconds} s for each generator, in random order, with 100 connections to one nginx. CPU time is that of the generator's whole process, its start included, which counts less in longer runs. "core" is the generator's: its own, or the server's, where it runs under SCHED_BATCH. The columns on the right are bakeoff's figure as a multiple of the other generator's: the geometric mean over the rounds, with its 95 % interval (Student's t on logarithms).`;
  const screen = terminal();
  for (const line of ['', ...terminalTable(table, screen), '']) console.log(line);
  for (const line of wrapLines([about], screen.width, () => 0)) console.log(line);
  const name = join(folder, 'cost');
  await writeWhole(
    `${name}.json`,
    `${JSON.stringify({ command, rounds, seconds, ...place, rows }, null, 1)}\n`,
  );
  const title = '# CPU time per request: bakeoff beside other generators';
  const text = [title, '', about, '', `\`${command}\`: ${placeText(place)}`, ''];
  await writeWhole(`${name}.md`, [...text, ...markdownTable(table), ''].join('\n'));
  console.log(inOneLine(`page: ${relative('.', `${name}.md`)}`));
}
