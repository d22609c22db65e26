// The effect of one line of a config as each of several generators sees it. All load the same two servers, and their effects are
// compared.
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Additions } from '../../cli/feature.ts';
import { geometricMean, ratioInterval, type RatioInterval } from '../../analysis/statistics.ts';
import { inOneLine, UserError } from '../../errors.ts';
import { counts, effect, short } from '../../format.ts';
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
import type { Page } from '../../scenario/model.ts';
import { writeWhole } from '../../writing.ts';
import { canLoad, findPeers, type Peer } from './installed-peers.ts';
import type { Calibration } from './judge.ts';
import { readKept, runMissing, type Kept } from './kept.ts';
import type { Lab } from './lab.ts';
import { generatorLoadOf, loadBy, startIn } from './measure.ts';
import { sealOf } from './pairs.ts';
import { placeText } from './page.ts';
import { loadgenWith } from './peers.ts';
import { closedLoad, knownPage } from './servers.ts';
import { allNames, keysOf, zip } from '../../present.ts';

/** The layers of nginx's config below the layer that is tested. Connections stay open, because generators reconnect in different ways. */
const base = ['base', 'workers', 'keepalive-unlimited'];
const layersBelow = {
  'open-file-cache': base,
  'access-log-off': ['packaged', 'keepalive-unlimited'],
  'tcp-nopush': base,
} as const satisfies Record<string, readonly string[]>;

/** Each is a layer of nginx's config, by its name in server-configs/nginx. */
type EffectName = keyof typeof layersBelow;
export const effectNames = keysOf(layersBelow);

/** Returns the layers of both configs. */
export function configsOf(name: EffectName): Record<Side, readonly string[]> {
  const below = layersBelow[name];
  return { without: below, with: [...below, name] };
}

/** The same connections for all generators, which have one thread and one core. */
const load = closedLoad(50);
const legSeconds = 1;
const page: Page = { ...knownPage, docroot: 'nginx' };
const sides = ['without', 'with'] as const;
type Side = (typeof sides)[number];

/**
 * Generators share the server's core. On a core of their own they would sleep between answers, each in its own rhythm, and the server
 * would have to wake them. The engine is measured on its own core too: there it polls instead of sleeping, as in a run.
 */
const onOwnCore = loadgenWith('bakeoff, own core', { spin: true });
const ours = [loadgenWith('bakeoff'), onOwnCore] as const;

interface EffectOptions {
  additions: Additions;
  effect: EffectName;
  /** Names of other generators. */
  peers: readonly string[];
  pairs: number;
  /** Draws the order of the loads. */
  seed: number;
  /** The test goes on with the runs in the file of that effect and seed. */
  isResumed: boolean;
  folder: string;
}

/** The server's CPU time per request, in microseconds. */
type CpuMicros = Record<Side, number>;

export interface EffectRun {
  /** Counted from 1. */
  number: number;
  /** CPU times by the generator's name. */
  cpuMicros: Record<string, CpuMicros>;
}

interface EffectFile extends Kept<EffectRun> {
  effect: EffectName;
  connections: number;
  legSeconds: number;
  /** Where the latest runs were made; absent before the first. */
  place?: Pick<Calibration, 'environment' | 'peers'>;
}

/**
 * Measures the pairs, keeps each, and prints and writes the table.
 * @returns the exit code
 * @throws UserError, with exit code 2 for a generator that cannot make the load or is not installed; Interrupted: what was done is kept
 */
export async function effectTest(options: EffectOptions): Promise<0> {
  const { additions, effect: name, peers: asked, pairs, seed, isResumed, folder } = options;
  const connections = load.connections;
  const peerNames = [...asked].sort();
  const seal = sealOf([name, configsOf(name), peerNames, connections, legSeconds]);
  const path = join(folder, `effect-${name}-${seed}.json`);
  const fresh = { effect: name, connections, legSeconds, seed, seal, runs: [] };
  const file = readKept<EffectFile>(path, fresh, isResumed);
  const items = Array.from({ length: pairs }, (_, index) => ({ number: index + 1 }));
  let generators: readonly Peer[] | undefined;
  await runMissing(path, file, items, additions, async (lab, { number }) => {
    generators ??= await generatorsIn(lab, asked, file);
    const run = await pairRun(lab, generators, name, number, seed);
    return { run, line: lineOf(run) };
  });
  const table = effectTable(file.runs, asked);
  console.log('');
  const screen = terminal();
  for (const line of [...terminalTable(table, screen), '']) console.log(line);
  for (const line of wrapLines([aboutOf(file)], screen.width, () => 0)) console.log(line);
  const text = path.replace(/json$/, 'md');
  await writeWhole(text, markdownOf(file, table));
  console.log(inOneLine(`page: ${text}`));
  return 0;
}

/** Returns the generators that are asked for and both of bakeoff's, and names them in the file. */
async function generatorsIn(
  { binaries, environment, signal }: Lab,
  asked: readonly string[],
  file: EffectFile,
): Promise<Peer[]> {
  const { k6 } = binaries;
  const peers = await findPeers(k6, asked, signal);
  for (const peer of peers)
    if (!canLoad(peer, { load }))
      throw new UserError(
        `--peers ${peer.generator.name}: it makes a load at a rate only: leave it out`,
        2,
      );
  const named = peers.map(({ generator: { name }, version }) => ({ name, version }));
  file.place = { environment, peers: named };
  const version = environment.versions['k6'] ?? '';
  return [...peers, ...ours.map((generator) => ({ generator, binary: k6, version }))];
}

/**
 * Starts both servers anew, and lets each generator load one after the other. The server that is loaded first alternates with the pair
 * and the generator.
 */
async function pairRun(
  lab: Lab,
  generators: readonly Peer[],
  name: EffectName,
  number: number,
  seed: number,
): Promise<EffectRun> {
  const configs = configsOf(name);
  const seen = new Map<string, CpuMicros>();
  const servers = new Map<Side, Awaited<ReturnType<typeof startIn>>>();
  const generatorLoad = generatorLoadOf({ load }, legSeconds);
  try {
    for (const side of sides)
      servers.set(side, await startIn(lab, nginx(configs[side], { workers: 1 }), side, page));
    for (const peer of orderOfRound(generators, number, `${name} ${seed}`)) {
      const { name: by } = peer.generator;
      const cpuMicros: CpuMicros = { without: NaN, with: NaN };
      const order = orderOfRound([...servers], number + generators.indexOf(peer), '');
      for (const [side, server] of order) {
        const { cpuSeconds } = server.usage();
        const sample = await loadBy(lab, peer, server, generatorLoad, peer.generator !== onOwnCore);
        if (sample.errors > 0)
          throw new UserError(
            `pair ${number}: ${by} had ${counts(sample.errors, 'error')}: --resume measures the pair again`,
          );
        const micros = (1e6 * (server.usage().cpuSeconds - cpuSeconds)) / sample.requests;
        if (!Number.isFinite(micros))
          throw new UserError(
            `pair ${number}: ${by} has no requests, or the server no CPU time: --resume measures the pair again`,
          );
        cpuMicros[side] = micros;
      }
      seen.set(by, cpuMicros);
    }
  } finally {
    await Promise.all([...servers.values()].map((server) => server.stop()));
    // Logs of requests are large.
    await Promise.all(
      sides.map((side) => rm(join(lab.scratch, side), { recursive: true, force: true })),
    );
  }
  const names = generators.map(({ generator }) => generator.name);
  const ordered = [...seen].sort(([a], [b]) => names.indexOf(a) - names.indexOf(b));
  return { number, cpuMicros: Object.fromEntries(ordered) };
}

function lineOf({ cpuMicros }: EffectRun): string {
  return Object.entries(cpuMicros)
    .map(([name, micros]) => `${name} ${effect(micros.with / micros.without)}`)
    .join(', ');
}

/**
 * Returns the server's CPU time under each generator, and the ratio of the effect that a generator sees to the effect that each other
 * one sees.
 * @param runs at least one, all with the same generators
 */
export function effectTable(runs: readonly EffectRun[], peers: readonly string[]): Table {
  const names = [...peers, ...allNames(ours)];
  const valuesOf = (name: string, side: Side): number[] =>
    runs.map(({ cpuMicros }) => cpuMicros[name]?.[side] ?? NaN);
  const meanOf = (name: string, side: Side): number => geometricMean(valuesOf(name, side));
  const ratiosOf = (name: string): number[] =>
    zip(valuesOf(name, 'with'), valuesOf(name, 'without')).map(([value, base]) => value / base);
  const effectBy = (name: string, other: string): string =>
    name === other ? '' : intervalText(ratioInterval(ratiosOf(other), ratiosOf(name)), runs.length);
  const ownEffect = (name: string): string =>
    intervalText(ratioInterval(valuesOf(name, 'without'), valuesOf(name, 'with')), runs.length);
  const microsTitle = 'server CPU µs/req';
  return tableOf(names, [
    leftColumn('generator', (name) => name),
    ...sides.map((side) =>
      rightColumn<string>(side, (name) => short(meanOf(name, side)), microsTitle),
    ),
    rightColumn(
      'less',
      (name) => short(meanOf(name, 'without') - meanOf(name, 'with')),
      microsTitle,
    ),
    rightColumn('its effect', ownEffect),
    ...peers.map((peer) =>
      rightColumn<string>(`of ${peer}`, (name) => effectBy(name, peer), 'by the effect'),
    ),
  ]);
}

/** One pair has no interval. */
function intervalText({ ratio, interval }: RatioInterval, pairs: number): string {
  return pairs > 1 ? effect(ratio, interval) : effect(ratio);
}

function aboutOf({ effect: name, runs }: EffectFile): string {
  return `${counts(runs.length, 'pair')} of nginx without and with ${name}, started anew for each pair. Each generator loads both for ${legSeconds} s with ${load.connections} connections from the server's core, in random order; the server that it loads first alternates. "bakeoff, own core" loads from another core and polls, as in a run: requests that come from there cost the server more, without the line and with it. Figures are geometric means over the pairs; brackets are 95 % intervals (Student's t on logarithms). The columns on the right divide a generator's effect by that of another: ±0 % means that both see the same effect.`;
}

function markdownOf(file: EffectFile, table: Table): string {
  const place = file.place === undefined ? [] : [placeText(file.place), ''];
  const title = `# The effect of ${file.effect}, as bakeoff and other generators see it`;
  return [title, '', aboutOf(file), '', ...place, ...markdownTable(table), ''].join('\n');
}
