// A plan: the variants that are run, their groups in each round, and how long it takes.
import type { Metric } from '../result/result.ts';
import { type RunnableVariant, networkOf, pageOf } from '../scenario/variants.ts';
import { type Load, isAtRate } from '../scenario/load.ts';
import type { Scenario, Variant, Within, NetworkSpec, Page } from '../scenario/model.ts';
import type { Cores } from '../machine/cores.ts';

/** A variant that is run, and its load as fitted to this machine. */
export interface PlannedVariant {
  variant: RunnableVariant;
  load: Load;
}

export interface Plan {
  /** Unique and readable: the run's folder and the tag `run` of all its points. */
  run: string;
  scenario: Scenario;
  /** All rows of the table, in the scenario's order; some may be published only. */
  shown: readonly Variant[];
  /** Those of them that are run. */
  variants: readonly PlannedVariant[];
  /** The same ones, as each round loads them. */
  groups: readonly Group[];
  cores: Cores;
  /** At most. */
  rounds: number;
  /** See Result.looks: ascending, the last is `rounds`. */
  looks: readonly number[];
  /** No round begins that would not end within this. */
  maxTimeSeconds?: number;
  /** The run goes on, for as many rounds as that takes, until each interval is decided, or lies within this of its ratio (0.01: 1 %). */
  precision?: number;
  /** See Result. */
  sameWithin: number;
  /** What verdicts are made by, instead of requests/s, or of latency where the load sets these. */
  metric?: Metric;
  /** The limit that rates are searched for. */
  within?: Within;
  quick: boolean;
  exact: boolean;
  /** See StartOptions. */
  trustConfig: boolean;
}

/** A plan without its name, which says when the run began. */
export type PlanDraft = Omit<Plan, 'run'>;

/** Variants that one k6 loads in turns; one that is alone has one turn without end. */
export interface Group {
  sides: readonly PlannedVariant[];
  /** The mean length of a turn, instead of what the engine chooses: the proof tries others. */
  sliceSeconds?: number;
}

/**
 * What a load is taken to come to where nobody has measured it yet, from what one server core and one generator core did here:
 * requests/s of small pages (fewer with a connection for each), bytes/s of large ones, and seconds of a TLS handshake.
 */
const assumed = {
  rps: 20_000,
  rpsWithoutKeepAlive: 10_000,
  bytesPerSecond: 500e6,
  handshakeSeconds: 0.002,
};

/** Start and stop of k6, and the check of what was stored, for one group in one round. Seen on 2 cores: 0.3 to 1 s. */
const overheadSeconds = 0.5;
/** The same where k6 runs on other hosts: they begin so long after they were told. */
const overheadThereSeconds = 4;
/** Start and stop of a server, beside others. */
const serverSeconds = 0.1;

/** The same of a network of the run's own, and the wait until all its packets have arrived. Seen with 10,000 connections: 1.5 to 4 s. */
const networkSeconds = 2;

/** Estimated seconds of one load phase, its warm-up included. `network`: undefined on loopback. */
export function expectedSeconds(
  load: Load,
  page: Pick<Page, 'bodyBytes'>,
  network?: NetworkSpec,
): number {
  const { warmupSeconds, rate, connections } = load;
  if (load.durationSeconds !== undefined) return warmupSeconds + load.durationSeconds;
  if (rate !== undefined) return warmupSeconds + load.requests / rate;
  const rps = load.expectedRps ?? (load.keepAlive ? assumed.rps : assumed.rpsWithoutKeepAlive);
  const bytesPerSecond = Math.min(
    assumed.bytesPerSecond,
    network?.toClient.bytesPerSecond ?? Infinity,
  );
  const secondsPerRequest = Math.max(
    1 / rps,
    page.bodyBytes / bytesPerSecond,
    network === undefined ? 0 : secondsOnTheWay(load, network),
  );
  const handshakes = load.protocol === 'h2' ? connections * assumed.handshakeSeconds : 0;
  return warmupSeconds + load.requests * secondsPerRequest + handshakes;
}

/** Of each request, where as many as the load allows are on their way at a time. A new connection takes a round trip of its own. */
function secondsOnTheWay(
  { connections, streams, keepAlive }: Load,
  { toServer, toClient }: NetworkSpec,
): number {
  return (
    ((keepAlive ? 1 : 2) * (toServer.delayMs + toClient.delayMs)) / 1000 / (connections * streams)
  );
}

/** Steps of a search. Seen: 12 to 21. */
const stepsPerSearch = 15;

/** Estimated seconds of one group in one round: all its phases, or steps, and the pauses between them. */
export function secondsPerGroup(
  { scenario, within, cores }: Pick<PlanDraft, 'scenario' | 'within' | 'cores'>,
  { sides }: Group,
): number {
  const { count, pauseSeconds } = scenario.phases ?? {
    count: within === undefined ? 1 : stepsPerSearch,
    pauseSeconds: 0,
  };
  return sides.reduce(
    (sum, { variant, load }) => {
      const network = networkOf(scenario, variant);
      return (
        sum +
        count * expectedSeconds(load, pageOf(scenario, variant), network) +
        serverSeconds +
        (network === undefined ? 0 : networkSeconds)
      );
    },
    (count - 1) * pauseSeconds +
      (cores.generatorHosts === undefined
        ? overheadSeconds
        : (cores.generatorHosts.overheadSeconds ?? overheadThereSeconds)),
  );
}

/** Estimated seconds of one round: every group once. */
export function secondsPerRound(
  plan: Pick<PlanDraft, 'scenario' | 'groups' | 'within' | 'cores'>,
): number {
  return plan.groups.reduce((sum, group) => sum + secondsPerGroup(plan, group), 0);
}

/** Estimated seconds of a run of so many rounds, by default as many as it may come to. */
export function estimatedSeconds(plan: PlanDraft, rounds = expectedRounds(plan).most): number {
  return rounds * secondsPerRound(plan);
}

/** How many rounds a run comes to at least and at most, as far as it can be told before it starts. */
export function expectedRounds(plan: PlanDraft): { fewest: number; most: number } {
  const { maxTimeSeconds = Infinity } = plan;
  const inTime = Math.max(1, Math.floor(maxTimeSeconds / secondsPerRound(plan)));
  return { fewest: Math.min(plan.looks[0] as number, inTime), most: Math.min(plan.rounds, inTime) };
}

/** How many rounds there are from this one on until the verdicts are looked at, or the time is over. @param place of the round, from 1 */
export function roundsToLook(plan: PlanDraft, place: number): number {
  const look = plan.looks.find((one) => one >= place) ?? plan.rounds;
  return Math.max(1, Math.min(look, expectedRounds(plan).most) - place + 1);
}

/** What bounds a group. */
export interface GroupLimits {
  /** That one process may open. */
  files: number;
  /** That is free on this machine. */
  memoryBytes: number;
}

/** With more each would wait too long for its next turn. */
const mostTogether = 100;

/** Descriptors of k6 beside the connections, as the engine counts them. */
export const otherFiles = 64;

/** k6 and the servers themselves leave at least this part of the free memory to the rest of the machine. */
const usablePart = 0.5;
/** Of a server and its part of k6, without connections. */
const baseBytes = 64 * 1024 ** 2;
/** Of a connection on both sides: buffers, TLS. */
const connectionBytes = 64 * 1024;

/** Whether the variant takes turns: not with a network of the run's own, whose packets are due in real time, or with several phases. */
export function isInTurns(scenario: Scenario, variant: Variant): boolean {
  return scenario.phases === undefined && networkOf(scenario, variant) === undefined;
}

/** The groups of every round: those at a rate and the others apart, each divided where files or memory do not allow all at once. */
export function groupsOf(
  scenario: Scenario,
  variants: readonly PlannedVariant[],
  limits: GroupLimits,
): Group[] {
  const together = variants.filter(({ variant }) => isInTurns(scenario, variant));
  return [
    ...variants
      .filter((planned) => !together.includes(planned))
      .map((planned) => ({ sides: [planned] })),
    ...fitting(
      together.filter(({ load }) => !isAtRate(load)),
      limits,
    ),
    ...fitting(
      together.filter(({ load }) => isAtRate(load)),
      limits,
    ),
  ];
}

/** The groups with these variants on their own. @param names of variants */
export function apart(groups: readonly Group[], names: ReadonlySet<string>): Group[] {
  return groups.flatMap(({ sides, ...group }) => {
    const alone = sides.filter(({ variant }) => names.has(variant.name));
    const rest = sides.filter((side) => !alone.includes(side));
    return [...(rest.length === 0 ? [] : [rest]), ...alone.map((side) => [side])].map((some) => ({
      ...group,
      sides: some,
    }));
  });
}

function fitting(
  variants: readonly PlannedVariant[],
  { files, memoryBytes }: GroupLimits,
): Group[] {
  const groups: PlannedVariant[][] = [];
  let [filesLeft, bytesLeft] = [0, 0];
  for (const planned of variants) {
    const { connections } = planned.load;
    const bytes = baseBytes + connections * connectionBytes;
    if (
      groups.length === 0 ||
      groups.at(-1)?.length === mostTogether ||
      connections > filesLeft ||
      bytes > bytesLeft
    ) {
      groups.push([]);
      [filesLeft, bytesLeft] = [files - otherFiles, memoryBytes * usablePart];
    }
    groups.at(-1)?.push(planned);
    filesLeft -= connections;
    bytesLeft -= bytes;
  }
  return groups.map((sides) => ({ sides }));
}

/** Commands that have fixed a port which another one of their group has too, so that they cannot be alive together, and why, as a clause. */
export function portsTaken({ sides }: Group): [variant: string, why: string][] {
  const taken = new Map<number, string>();
  return sides.flatMap(({ variant: { name, server } }): [string, string][] => {
    if (server.name !== 'command' || server.port === undefined) return [];
    const other = taken.get(server.port);
    taken.set(server.port, other ?? name);
    return other === undefined
      ? []
      : [
          [
            name,
            `it listens on port ${server.port}, as ${other} does (write {port} where it can be told one)`,
          ],
        ];
  });
}

/**
 * Two alternate (AB, BA, …); more get a random permutation per round, the same one for the same seed.
 * @param round from 1
 */
export function orderOfRound<T>(all: readonly T[], round: number, seed: string): T[] {
  if (all.length <= 2) return round % 2 === 1 ? [...all] : all.toReversed();
  const order = [...all];
  const random = randomNumbers(`${seed} ${round}`);
  // Fisher–Yates.
  for (let last = order.length - 1; last > 0; last--) {
    const pick = Math.floor(random() * (last + 1));
    [order[last], order[pick]] = [order[pick] as T, order[last] as T];
  }
  return order;
}

/** Uniform numbers in [0, 1): FNV-1a of the seed (http://www.isthe.com/chongo/tech/comp/fnv/), then xorshift32 (Marsaglia 2003). */
export function randomNumbers(seed: string): () => number {
  let state = 0x811c9dc5;
  for (let index = 0; index < seed.length; index++)
    state = Math.imul(state ^ seed.charCodeAt(index), 0x01000193);
  if (state === 0) state = 1;
  return () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) / 2 ** 32;
  };
}
