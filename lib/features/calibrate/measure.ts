// Measures the known servers: each alone, in turns of two and of eight, and by other load generators.
import { join } from 'node:path';
import { mergedLatency } from '../../analysis/latency.ts';
import { responsesOf, roundRps, serverCpuSecondsPerResponse } from '../../analysis/phases.ts';
import { total } from '../../analysis/statistics.ts';
import { present } from '../../present.ts';
import type { Phase } from '../../result/result.ts';
import { defineScenario } from '../../scenario/index.ts';
import type { CommandServer, ConfiguredServer, Page, Variant } from '../../scenario/model.ts';
import { startServer, type StartedServer } from '../../servers/index.ts';
import { oneRound, type Lab } from './lab.ts';
import type { Peer } from './installed-peers.ts';
import { runGenerator, type GeneratorLoad, type Sample } from './peers.ts';
import { commandOf, frontOf, knownPage, type Figures, type KnownServer } from './servers.ts';

/** What one measurement of a server gives. */
export interface Seen extends Figures {
  /** The generator's CPU time per response; null if unknown. */
  generatorMicros: number | null;
  /** Requests/s × mean latency, as a share of the requests that the load keeps under way (Little's law: 1); null at a rate. */
  littleShare: number | null;
  errors: number;
  /** Share of the server's core that other programs used; null if unknown. */
  othersShare: number | null;
}

/** bakeoff's arrangements, in the order of the columns. */
export const arrangements = ['alone', '2 sides', '8 sides'] as const;
type Arrangement = (typeof arrangements)[number];

/** What was measured of a server, by arrangement or by the name of a generator. */
export type Measurements = Map<string, Seen>;

/** How many servers take turns. */
const sidesOf: Readonly<Record<Arrangement, number>> = { alone: 1, '2 sides': 2, '8 sides': 8 };

/** Divides the servers into the groups that take turns. Servers with a rate and servers without are in different groups. */
export function groupsOfSides(
  servers: readonly KnownServer[],
  arrangement: Arrangement,
): KnownServer[][] {
  const size = sidesOf[arrangement];
  const groups: KnownServer[][] = [];
  for (const atRate of [false, true]) {
    const sides = servers.filter(
      ({ load, takesLong }) =>
        (load.rate !== undefined) === atRate && !(takesLong && arrangement === '8 sides'),
    );
    for (let first = 0; first < sides.length; first += size)
      groups.push(sides.slice(first, first + size));
  }
  return groups;
}

/**
 * Starts a server with one worker.
 * @param name of its folder
 * @throws UserError, the signal's reason
 */
export function startIn(
  { binaries, scratch, cores, signal }: Lab,
  server: CommandServer | ConfiguredServer,
  name: string,
  page: Page,
): Promise<StartedServer> {
  return startServer(server, {
    binaries,
    folder: join(scratch, name),
    cpus: cores.serverCpus,
    workers: 1,
    page,
    signal,
  });
}

/** The time that a generator gets in addition to its load: to start, and for the last requests of an overloaded server. */
const patienceSeconds = 30;

/**
 * Loads the server's usual page with a generator.
 * @param sharesCore the generator runs on the server's core instead of its own
 * @throws UserError if the generator fails, the signal's reason
 */
export function loadBy(
  { cores, signal }: Lab,
  { generator, binary }: Pick<Peer, 'generator' | 'binary'>,
  { origin }: StartedServer,
  load: GeneratorLoad,
  sharesCore = false,
): Promise<Sample> {
  return runGenerator(generator, `${origin}${knownPage.path}`, load, {
    binary,
    cpus: sharesCore ? cores.serverCpus : cores.generatorCpus,
    sharesCore,
    mostSeconds: load.seconds + patienceSeconds,
    signal,
  });
}

export class Measuring {
  readonly #lab: Lab;
  /** The backend of servers behind a front; started with the first of them. */
  readonly #backends = new Map<string, StartedServer>();

  constructor(lab: Lab) {
    this.#lab = lab;
  }

  /**
   * Loads the servers in turns, or a single one alone. Returns the figures of each, in the order of `servers`.
   * @throws UserError, Interrupted
   */
  async turns(servers: readonly KnownServer[]): Promise<Seen[]> {
    const variants: Variant[] = [];
    for (const [place, known] of servers.entries())
      variants.push({
        name: `side-${place + 1}`,
        server: await this.#serverOf(known),
        page: pageOf(known),
        load: known.load,
      });
    const [{ load }] = servers as [KnownServer, ...KnownServer[]];
    const seconds = Math.max(...servers.map((known) => known.seconds));
    const scenario = defineScenario({
      name: 'calibrate',
      title: 'servers of known truth',
      knob: 'the server',
      page: knownPage,
      load,
      variants,
    });
    const phases = await oneRound(this.#lab, scenario, seconds);
    return servers.map((known, place) => seenIn(phases.get(`side-${place + 1}`) ?? [], known.load));
  }

  /** Loads a server by another generator. @throws UserError if that fails, Interrupted */
  async byPeer({ generator, binary, leastSeconds = 0 }: Peer, known: KnownServer): Promise<Seen> {
    const itself = await this.#serverOf(known);
    const server = await startIn(this.#lab, itself, `by-${generator.name}`, pageOf(known));
    try {
      const before = server.usage().cpuSeconds;
      const seconds = Math.max(Math.round(known.seconds), leastSeconds);
      const load = generatorLoadOf(known, seconds);
      const sample = await loadBy(this.#lab, { generator, binary }, server, load);
      const { requests, rps, errors, bodyBytes, latencyMs, cpuMicrosPerRequest } = sample;
      const serverCpuSeconds = server.usage().cpuSeconds - before;
      const { mean = NaN, p50 = NaN, p99 = NaN } = latencyMs ?? {};
      const underway = load.connections * load.streams;
      return {
        rps,
        p50Ms: p50,
        p99Ms: p99,
        cpuMicros: known.front === undefined ? (1e6 * serverCpuSeconds) / requests : null,
        queueGrowthPerSecond: null,
        bodyBytes: bodyBytes === undefined ? null : bodyBytes / requests,
        generatorMicros: cpuMicrosPerRequest,
        littleShare: load.rate === undefined ? (rps * mean) / 1000 / underway : null,
        errors,
        othersShare: null,
      };
    } finally {
      await server.stop();
    }
  }

  async close(): Promise<void> {
    for (const server of this.#backends.values()) await server.stop();
  }

  async #serverOf({ options, front }: KnownServer): Promise<CommandServer | ConfiguredServer> {
    const { server, scratch } = this.#lab;
    const itself = commandOf(server, options);
    if (front === undefined) return itself;
    const place = `backend-${this.#backends.size + 1}`;
    const backend =
      this.#backends.get(options) ?? (await startIn(this.#lab, itself, place, knownPage));
    this.#backends.set(options, backend);
    return frontOf(front, join(scratch, 'fronts'), place, backend.origin);
  }
}

/** nginx needs a folder, though it passes all requests on. */
function pageOf({ front, bodyBytes }: KnownServer): Page {
  const page = { ...knownPage, bodyBytes };
  return front === 'nginx' ? { ...page, docroot: 'nginx' } : page;
}

export function generatorLoadOf(
  { load }: Pick<KnownServer, 'load'>,
  seconds: number,
): GeneratorLoad {
  const { protocol, connections, streams = 1, keepAlive, rate } = load;
  return { protocol, connections, streams, keepAlive, seconds, ...present({ rate }) };
}

function seenIn(phases: readonly Phase[], load: KnownServer['load']): Seen {
  const { mean, p50, p99 } = mergedLatency(phases.map(({ latencyMs }) => latencyMs));
  const rps = roundRps(phases);
  const responses = total(phases, responsesOf);
  const cpuMicros = 1e6 * serverCpuSecondsPerResponse(phases);
  const underway = load.connections * (load.streams ?? 1);
  const { queueGrowth, noise } = phases[0] ?? {};
  return {
    rps,
    p50Ms: p50,
    p99Ms: p99,
    cpuMicros: Number.isFinite(cpuMicros) ? cpuMicros : null,
    queueGrowthPerSecond: queueGrowth?.perSecond ?? null,
    bodyBytes: total(phases, ({ bytes }) => bytes.body) / responses,
    generatorMicros: (1e6 * total(phases, (phase) => phase.generatorCpuSeconds)) / responses,
    littleShare: load.rate === undefined ? (rps * mean) / 1000 / underway : null,
    errors: total(phases, ({ errors }) => errors.total),
    othersShare: noise?.serverOthersShare ?? null,
  };
}
