// The effect of one line of a config, beside other generators: each loads the same two servers, and their effects are compared.
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { geometricMean, ratioInterval, type RatioInterval } from '../../analysis/statistics.ts';
import { UserError } from '../../errors.ts';
import { counts, effect, perSecond } from '../../format.ts';
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

/** Requests/s of one generator at both servers of a pair. */
type RpsOfPair = Record<Side, number>;

export interface EffectRun {
  /** From 1. */
  number: number;
  rps: Record<string, RpsOfPair>;
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
  const seal = sealOf([name, configsOf(name), [...asked].sort(), connections, legSeconds]);
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
  const table = effectTable(file.runs, asked);
  console.log('');
  for (const line of terminalTable(table, terminal())) console.log(line);
  console.log('');
  console.log(aboutOf(file));
  const text = path.replace(/json$/, 'md');
  await writeWhole(text, markdownOf(file, table));
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

/** Starts both servers anew, and has each generator load each of them, in an order of the pair's own. */
async function pairRun(
  lab: Lab,
  generators: readonly Peer[],
  name: EffectName,
  number: number,
  seed: number,
): Promise<EffectRun> {
  const configs = configsOf(name);
  const legs = generators.flatMap((peer) => sides.map((side) => ({ peer, side })));
  const rps = new Map<string, RpsOfPair>(
    generators.map(({ generator }) => [generator.name, { without: NaN, with: NaN }]),
  );
  const servers: Awaited<ReturnType<typeof startIn>>[] = [];
  try {
    for (const side of sides)
      servers.push(await startIn(lab, nginx(configs[side], { workers: 1 }), side, page));
    for (const { peer, side } of orderOfRound(legs, number, `${name} ${seed}`)) {
      const server = servers[sides.indexOf(side)] as (typeof servers)[number];
      const sample = await loadBy(lab, peer, server, generatorLoadOf({ load }, legSeconds));
      const { name: by } = peer.generator;
      if (sample.errors > 0)
        throw new UserError(
          `pair ${number}: ${by} had ${counts(sample.errors, 'error')}: --resume measures the pair again`,
        );
      (rps.get(by) as RpsOfPair)[side] = sample.rps;
    }
  } finally {
    await Promise.all(servers.map((server) => server.stop()));
    // Logs of requests are large.
    await Promise.all(
      sides.map((side) => rm(join(lab.scratch, side), { recursive: true, force: true })),
    );
  }
  return { number, rps: Object.fromEntries(rps) };
}

const ratioOf = (rps: RpsOfPair): number => rps.with / rps.without;

function lineOf({ rps }: EffectRun): string {
  return Object.entries(rps)
    .map(([name, of]) => `${name} ${effect(ratioOf(of))}`)
    .join(', ');
}

/** What each generator saw, and its effect by that of each other generator. @param runs at least one, all with the same generators */
export function effectTable(runs: readonly EffectRun[], peers: readonly string[]): Table {
  const names = [...peers, ...ours.map(({ name }) => name)];
  const of = (name: string): RpsOfPair[] => runs.map(({ rps }) => rps[name] as RpsOfPair);
  const meanOf = (name: string, side: Side): string =>
    perSecond(geometricMean(of(name).map((rps) => rps[side])));
  const effectBy = (name: string, other: string): string =>
    name === other
      ? ''
      : intervalText(ratioInterval(of(other).map(ratioOf), of(name).map(ratioOf)), runs.length);
  const ownEffect = (name: string): string => {
    const [without, withIt] = sides.map((side) => of(name).map((rps) => rps[side]));
    return intervalText(ratioInterval(without ?? [], withIt ?? []), runs.length);
  };
  return tableOf(names, [
    leftColumn('generator', (name) => name),
    rightColumn('without', (name) => meanOf(name, 'without'), 'requests/s'),
    rightColumn('with', (name) => meanOf(name, 'with'), 'requests/s'),
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
  return `${counts(runs.length, 'pair')} of nginx without and with ${name}, started anew for each pair. Each generator loads both for ${legSeconds} s with ${load.connections} connections, in random order. Figures are geometric means over the pairs; brackets are 95 % intervals (Student's t on logarithms). The columns on the right divide a generator's effect by that of another: ±0 % means that both see the same effect.`;
}

function markdownOf(file: EffectFile, table: Table): string {
  const place = file.place === undefined ? [] : [placeText(file.place), ''];
  const title = `# The effect of ${file.effect}, as bakeoff and other generators see it`;
  return [title, '', aboutOf(file), '', ...place, ...markdownTable(table), ''].join('\n');
}
