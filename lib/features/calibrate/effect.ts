// The effect of one line of a config, beside other generators: each loads the same two servers, and their effects are compared.
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import {
  geometricMean,
  ratioInterval,
  total,
  type RatioInterval,
} from '../../analysis/statistics.ts';
import { UserError } from '../../errors.ts';
import { textOf } from '../../files.ts';
import { counts, effect, percent, perSecond, short } from '../../format.ts';
import {
  leftColumn,
  rightColumn,
  tableOf,
  terminal,
  terminalTable,
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
import { fittedMicros, wakeUpCostOf, wakeUpsOf, type WakeUpsAndCpu } from './wake-ups.ts';

/** Layers of nginx's config below the one that is named. Reconnects would be a matter of each generator's own. */
const base = ['base', 'workers', 'keepalive-unlimited'];
const layersBelow = {
  'open-file-cache': base,
  'access-log-off': ['packaged', 'keepalive-unlimited'],
  'tcp-nopush': base,
} as const satisfies Record<string, readonly string[]>;

/** Each is a layer of nginx's config, by its name in server-configs/nginx. */
export type EffectName = keyof typeof layersBelow;
export const effectNames = Object.keys(layersBelow) as EffectName[];

/** The layers of both configs. */
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

/** bakeoff's engine: on a core of its own it may poll instead of sleeping, which spares the server the wake-ups. */
const ours = [
  loadgenWith('bakeoff, sleeping'),
  loadgenWith('bakeoff, spinning', { spin: true }),
] as const;

export interface EffectOptions {
  effect: EffectName;
  /** Names of other generators. */
  peers: readonly string[];
  pairs: number;
  /** Draws the order of the loads. */
  seed: number;
  /** Goes on with what the file of that effect and seed has. */
  isResumed: boolean;
  folder: string;
}

/** What a server did while one generator loaded it. */
interface Leg {
  rps: number;
  /** The server's CPU time per request. */
  cpuMicros: number;
  /** How often the generator's core was interrupted to wake it, per request, its start and end included. */
  wakeUps: number;
}

const legFigures = Object.keys({
  rps: true,
  cpuMicros: true,
  wakeUps: true,
} satisfies Record<keyof Leg, true>);

type LegsOfPair = Record<Side, Leg>;
type PairOf = Record<Side, number>;

export interface EffectRun {
  /** From 1. */
  number: number;
  /** By the generator's name. */
  legs: Record<string, LegsOfPair>;
}

interface EffectFile extends Kept<EffectRun> {
  effect: EffectName;
  connections: number;
  legSeconds: number;
  /** Where the latest runs were made; absent before the first. */
  place?: Pick<Calibration, 'environment' | 'peers'>;
}

/**
 * Measures the pairs, keeps each, and prints and writes the table. Returns the exit code.
 * @throws UserError, with exit code 2 for a generator that cannot make the load or is not installed; Interrupted: what was done is
 * kept
 */
export async function effectTest(options: EffectOptions): Promise<0> {
  const { effect: name, peers: asked, pairs, seed, isResumed, folder } = options;
  const connections = load.connections;
  const peerNames = [...asked].sort();
  const seal = sealOf([name, configsOf(name), peerNames, connections, legSeconds, legFigures]);
  const path = join(folder, `effect-${name}-${seed}.json`);
  const fresh = { effect: name, connections, legSeconds, seed, seal, runs: [] };
  const file = await readKept<EffectFile>(path, fresh, isResumed);
  const items = Array.from({ length: pairs }, (_, index) => ({ number: index + 1 }));
  let generators: readonly Peer[] | undefined;
  await runMissing(path, file, items, async (lab, { number }) => {
    generators ??= await generatorsIn(lab, asked, file);
    const run = await pairRun(lab, generators, name, number, seed);
    return { run, line: lineOf(run) };
  });
  const tables = effectTables(file.runs, asked);
  console.log('');
  for (const table of tables)
    for (const line of [...terminalTable(table, terminal()), '']) console.log(line);
  console.log(aboutOf(file));
  console.log(wakeUpText(file.runs));
  const text = path.replace(/json$/, 'md');
  await writeWhole(text, markdownOf(file, tables));
  console.log(`page: ${text}`);
  return 0;
}

/** Those that are asked for, and both of ours; names them in the file. */
async function generatorsIn(
  { binaries, environment, signal }: Lab,
  asked: readonly string[],
  file: EffectFile,
): Promise<Peer[]> {
  const k6 = binaries.k6 as string;
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

/** Starts both servers anew, and has each generator load one after the other. Every other pair and generator begins with the same server. */
async function pairRun(
  lab: Lab,
  generators: readonly Peer[],
  name: EffectName,
  number: number,
  seed: number,
): Promise<EffectRun> {
  const configs = configsOf(name);
  const legs = new Map<string, LegsOfPair>();
  const servers: Awaited<ReturnType<typeof startIn>>[] = [];
  try {
    for (const side of sides)
      servers.push(await startIn(lab, nginx(configs[side], { workers: 1 }), side, page));
    for (const peer of orderOfRound(generators, number, `${name} ${seed}`)) {
      const { name: by } = peer.generator;
      const seen: Partial<LegsOfPair> = {};
      for (const side of orderOfRound(sides, number + generators.indexOf(peer), '')) {
        const server = servers[sides.indexOf(side)] as (typeof servers)[number];
        const cpuSeconds = server.usage().cpuSeconds;
        const wakeUps = wakeUpsNow(lab);
        const sample = await loadBy(lab, peer, server, generatorLoadOf({ load }, legSeconds));
        if (sample.errors > 0)
          throw new UserError(
            `pair ${number}: ${by} had ${counts(sample.errors, 'error')}: --resume measures the pair again`,
          );
        const cpuMicros = (1e6 * (server.usage().cpuSeconds - cpuSeconds)) / sample.requests;
        const leg = {
          rps: sample.rps,
          cpuMicros,
          wakeUps: (wakeUpsNow(lab) - wakeUps) / sample.requests,
        };
        if (!Object.values(leg).every(Number.isFinite))
          throw new UserError(
            `pair ${number}: ${by} has no requests/s, or the server no CPU time: --resume measures the pair again`,
          );
        seen[side] = leg;
      }
      legs.set(by, seen as LegsOfPair);
    }
  } finally {
    await Promise.all(servers.map((server) => server.stop()));
    // Logs of requests are large.
    await Promise.all(
      sides.map((side) => rm(join(lab.scratch, side), { recursive: true, force: true })),
    );
  }
  const names = generators.map(({ generator }) => generator.name);
  const ordered = names.map((by) => [by, legs.get(by) as LegsOfPair] as const);
  return { number, legs: Object.fromEntries(ordered) };
}

/** Wake-ups of the generator's cores since the machine started. */
function wakeUpsNow({ cores }: Lab): number {
  return wakeUpsOf(textOf('/proc/interrupts'), cores.generatorCpus);
}

/** What the tables are of. */
const figures = [
  { title: 'requests/s', of: ({ rps }: Leg) => rps, text: perSecond },
  { title: 'server CPU µs/req', of: ({ cpuMicros }: Leg) => cpuMicros, text: short },
] as const;
type Figure = (typeof figures)[number];

function lineOf({ legs }: EffectRun): string {
  return Object.entries(legs)
    .map(([name, of]) => `${name} ${effect(of.with.rps / of.without.rps)}`)
    .join(', ');
}

/**
 * Returns what each generator saw, and its effect by that of each other generator: a table of requests/s, one of CPU time, and one of
 * what sleeps of the generator make of CPU time.
 * @param runs at least one, all with the same generators
 */
export function effectTables(runs: readonly EffectRun[], peers: readonly string[]): Table[] {
  return [...figures.map((figure) => effectTable(runs, peers, figure)), wakeUpTable(runs)];
}

interface Means extends WakeUpsAndCpu {
  /** Share of its core that the server used. */
  busy: PairOf;
}

/** The means of each generator, by its name. */
function meansOf(runs: readonly EffectRun[]): Map<string, Means> {
  const [{ legs }] = runs as [EffectRun];
  const meanOf = (name: string, of: (leg: Leg) => number): PairOf => {
    const ofSide = (side: Side) =>
      total(runs, (run) => of((run.legs[name] as LegsOfPair)[side])) / runs.length;
    return { without: ofSide('without'), with: ofSide('with') };
  };
  const means = (name: string) => ({
    cpuMicros: meanOf(name, ({ cpuMicros }) => cpuMicros),
    wakeUps: meanOf(name, ({ wakeUps }) => wakeUps),
    busy: meanOf(name, ({ rps, cpuMicros }) => (rps * cpuMicros) / 1e6),
  });
  return new Map(Object.keys(legs).map((name) => [name, means(name)]));
}

function wakeUpTable(runs: readonly EffectRun[]): Table {
  const means = meansOf(runs);
  const cost = wakeUpCostOf([...means.values()]);
  const of = (name: string) => means.get(name) as Means;
  const fitted = (name: string, side: Side): number =>
    cost === undefined ? NaN : fittedMicros(cost, of(name), side);
  return tableOf(
    [...means.keys()],
    [
      leftColumn('generator', (name) => name),
      ...sides.map((side) =>
        rightColumn<string>(side, (name) => percent(of(name).busy[side]), 'server busy'),
      ),
      ...sides.map((side) =>
        rightColumn<string>(side, (name) => of(name).wakeUps[side].toFixed(3), 'wake-ups/req'),
      ),
      ...sides.map((side) =>
        rightColumn<string>(side, (name) => short(fitted(name, side)), 'fitted CPU µs/req'),
      ),
      rightColumn('effect', (name) => effect(fitted(name, 'with') / fitted(name, 'without'))),
    ],
  );
}

/** What it costs the server to wake a generator, and what is left of the effect if nobody is woken. */
function wakeUpText(runs: readonly EffectRun[]): string {
  const means = meansOf(runs);
  const cost = wakeUpCostOf([...means.values()]);
  if (cost === undefined) return 'All generators were woken alike.';
  const { without, with: withLine } = cost.ownMicros;
  return `By least squares over all generators, it costs the server ${short(cost.wakeUpMicros)} µs of CPU time to wake a generator by an interrupt. If nobody is woken, a request takes ${short(without)} µs without the line and ${short(withLine)} µs with it (${effect(withLine / without)}). The last table has what this makes of each generator's wake-ups.`;
}

function effectTable(runs: readonly EffectRun[], peers: readonly string[], figure: Figure): Table {
  const names = [...peers, ...ours.map(({ name }) => name)];
  const valuesOf = (name: string, side: Side): number[] =>
    runs.map(({ legs }) => figure.of((legs[name] as LegsOfPair)[side]));
  const meanOf = (name: string, side: Side): string =>
    figure.text(geometricMean(valuesOf(name, side)));
  const ratiosOf = (name: string): number[] => {
    const without = valuesOf(name, 'without');
    return valuesOf(name, 'with').map((value, run) => value / (without[run] as number));
  };
  const effectBy = (name: string, other: string): string =>
    name === other ? '' : intervalText(ratioInterval(ratiosOf(other), ratiosOf(name)), runs.length);
  const ownEffect = (name: string): string =>
    intervalText(ratioInterval(valuesOf(name, 'without'), valuesOf(name, 'with')), runs.length);
  return tableOf(names, [
    leftColumn('generator', (name) => name),
    rightColumn('without', (name) => meanOf(name, 'without'), figure.title),
    rightColumn('with', (name) => meanOf(name, 'with'), figure.title),
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
  return `${counts(runs.length, 'pair')} of nginx without and with ${name}, started anew for each pair. Each generator loads both for ${legSeconds} s with ${load.connections} connections, in random order; the server that it loads first alternates. Figures of the first two tables are geometric means over the pairs; brackets are 95 % intervals (Student's t on logarithms). The columns on the right divide a generator's effect by that of another: ±0 % means that both see the same effect.`;
}

function markdownOf(file: EffectFile, tables: readonly Table[]): string {
  const place = file.place === undefined ? [] : [placeText(file.place), ''];
  const title = `# The effect of ${file.effect}, as bakeoff and other generators see it`;
  const lines = tables.flatMap((table) => [...markdownTable(table), '']);
  return [title, '', aboutOf(file), '', wakeUpText(file.runs), '', ...place, ...lines].join('\n');
}
