// Figures over the rounds of a variant: of its load phases and its emulated network.
import { meanDistribution, measuredBuckets, mergedLatency } from './latency.ts';
import { mean, median, total } from './statistics.ts';
import { byName, present, keysOf } from '../present.ts';
import type { LoadResult } from '../result/load-result.ts';
import type { LinkTraffic, NetworkResult, NetworkUse } from '../result/network-use.ts';
import type { Phase, PhaseResult, Round, Traffic, VariantResult } from '../result/result.ts';
import type { NetworkSpec } from '../scenario/model.ts';
import type { Published } from '../scenario/published.ts';

/** The number of rounds; variants that are published only have none. */
export function wholeRounds(variants: readonly { rounds: readonly unknown[] }[]): number {
  return Math.max(0, ...variants.map(({ rounds }) => rounds.length));
}

export function withRounds<V extends { rounds: readonly unknown[] }>(variants: readonly V[]): V[] {
  return variants.filter(({ rounds }) => rounds.length > 0);
}

/** The load phases of all rounds, in their order. */
export function phasesIn<P>(rounds: readonly { phases: readonly P[] }[]): P[] {
  return rounds.flatMap((round) => round.phases);
}

/** Complete responses of any status. */
export function responsesOf({ responses }: Pick<LoadResult, 'responses'>): number {
  return responses['2xx'] + responses['3xx'] + responses['4xx'] + responses['5xx'];
}

/**
 * Responses per second over all phases of a round. Failed requests say nothing about the server's speed. At a rate beyond the
 * server's capacity, only responses within the turns count: the others come between turns, or belong to earlier requests.
 */
export function roundRps(phases: readonly LoadResult[]): number {
  if (queueGrowthOf(phases) === 0) return meanRps(phases);
  return (
    total(phases, ({ rps, seconds }) => rps * seconds) / total(phases, ({ seconds }) => seconds)
  );
}

function meanRps(phases: readonly LoadResult[]): number {
  return total(phases, responsesOf) / total(phases, (phase) => phase.seconds);
}

/** A queue that grows by this share of the rate or more does not settle. */
const growthMatters = 0.01;
/** By chance a settled queue may seem to grow, but by fewer standard errors than this. */
const clearGrowth = 3;

/** Growth of the queue in requests per second, over all phases; 0 if the server keeps the rate, and without a rate. */
export function queueGrowthOf(phases: readonly LoadResult[]): number {
  const seconds = total(phases, (phase) => phase.seconds);
  let growth = 0;
  let variance = 0;
  for (const { queueGrowth, seconds: phaseSeconds } of phases) {
    if (queueGrowth === null || queueGrowth === undefined) continue;
    growth += (queueGrowth.perSecond * phaseSeconds) / seconds;
    variance += ((queueGrowth.standardError * phaseSeconds) / seconds) ** 2;
  }
  const isClear = growth > clearGrowth * Math.sqrt(variance);
  return isClear && growth > growthMatters * meanRps(phases) ? growth : 0;
}

/** CPU time of the server; null if unknown. */
export function serverCpuSecondsOf(phases: readonly Phase[]): number | null {
  if (phases.some(({ serverCpuSeconds }) => serverCpuSeconds === null)) return null;
  return total(phases, ({ serverCpuSeconds }) => serverCpuSeconds ?? 0);
}

/** NaN if the CPU time is unknown, NaN or ∞ without responses. */
export function serverCpuSecondsPerResponse(phases: readonly Phase[]): number {
  return (serverCpuSecondsOf(phases) ?? NaN) / total(phases, responsesOf);
}

/** CPU seconds of the server per second; NaN if its CPU time is unknown. A machine that gets slower changes requests/s, and not this. */
export function cpuShareOf(phases: readonly Phase[]): number {
  return roundRps(phases) * serverCpuSecondsPerResponse(phases);
}

/** A longer pause, as a share of a round's load, changes the round's requests/s noticeably. */
const pauseMatters = 0.05;

/** A pause is longer than this multiple of the median latency: answers that a turn begins to wait for take as long as others. */
const pauseFactor = 2;

/** Returns whether a phase had a pause so long that the number of such pauses changes its figures. */
export function hasPaused({
  longestGapMs,
  latencyMs,
  seconds,
}: Pick<LoadResult, 'longestGapMs' | 'latencyMs' | 'seconds'>) {
  return longestGapMs > Math.max(1000 * pauseMatters * seconds, pauseFactor * latencyMs.p50);
}

/** With more failures, requests/s and latency say nothing about the server's speed. */
export const tolerableFailures = 0.01;

/** Returns the Phase.alsoLoadedBy of the first phase that has one. */
export function alsoLoadedBy(rounds: readonly Round[]): string | undefined {
  return phasesIn(rounds).find((phase) => phase.alsoLoadedBy !== undefined)?.alsoLoadedBy;
}

/** Cores beside the servers' on which a server might run, ascending; none is usual. */
export function otherCpusOf(rounds: readonly Round[]): number[] {
  const cpus = phasesIn(rounds).flatMap(({ otherCpus = [] }) => otherCpus);
  return [...new Set(cpus)].sort((a, b) => a - b);
}

/** @param successRatio as successRatioOf */
export function isFailing({ successRatio }: { successRatio: number | null }): boolean {
  return 1 - (successRatio ?? 0) > tolerableFailures;
}

/** Successful responses per request, 0 to 1; requests that hung count as failed. null without requests. */
export function successRatioOf(
  phases: readonly (LoadResult & Pick<Phase, 'expected'>)[],
): number | null {
  const requests = total(phases, (phase) => phase.requests + phase.hung);
  return requests === 0 ? null : total(phases, succeeded) / requests;
}

/**
 * The share of the requests under way, 0 to 1, that hung at the end of a load, by the mean of all loads. Clients that never get an answer
 * send no other request, so that of all requests they are few.
 */
export function shareHung({ load, rounds }: Pick<VariantResult, 'load' | 'rounds'>): number {
  const underWay = (load.connections ?? 1) * (load.streams ?? 1);
  return mean(phasesIn(rounds).map(({ hung }) => hung / underWay)) || 0;
}

/** Responses of the expected class, by default 2xx and 3xx. */
export function succeeded({
  responses,
  expected,
  unexpected,
}: Pick<Phase, 'responses' | 'expected' | 'unexpected'>): number {
  if (expected === 'each') return responsesOf({ responses }) - unexpected;
  return expected === undefined ? responses['2xx'] + responses['3xx'] : responses[expected];
}

export type PhasePair = ReturnType<typeof phasePairs>[number];

/** Published phases beside measured phases; either may have fewer. */
export function phasePairs({ published, phases, rounds }: VariantResult) {
  const inArticle = published === null ? [] : (published.phases ?? [published]);
  return Array.from({ length: Math.max(phases.length, inArticle.length) }, (_, index) => {
    const measured = phases[index];
    const ofRounds = rounds.flatMap(({ phases: { [index]: phase } }) => phase ?? []);
    return {
      /** Counted from 1. */
      phase: index + 1,
      published: inArticle[index],
      measured,
      /** `measured` as articles print it. */
      asPublished: measured && asPublished(measured, ofRounds),
    };
  });
}

/** `phase` as articles print it. Counts of requests and status codes are sums of all rounds: a median would hide a rare failure. */
function asPublished(phase: PhaseResult, rounds: readonly Phase[]): Published {
  const { requests, seconds, rps, bytes, tls, successRatio, headerSavingsPercent } = phase;
  return {
    requests,
    responses: phase.responses,
    outcomes: outcomesOf(rounds),
    seconds,
    rps: rps.median,
    transferBytesPerSecond: phase.receivedBytesPerSecond,
    receivedBytes: bytes.received,
    headerBytes: bytes.headers,
    bodyBytes: bytes.body,
    ...present({
      successRatio: successRatio ?? undefined,
      headerSavingsPercent: headerSavingsPercent ?? undefined,
      tls: tls ?? undefined,
    }),
    ...byName(
      ['latencyMs', 'connectMs', 'firstByteMs', 'perConnectionRps', 'perThreadRps'],
      (name) => {
        const { withinSd, ...rest } = phase[name];
        return { ...rest, withinSdPercent: 100 * withinSd };
      },
    ),
  };
}

/** As h2load counts, but timeouts are not in `errored`. */
function outcomesOf(phases: readonly Phase[]): NonNullable<Published['outcomes']> {
  const done = total(phases, (phase) => phase.requests);
  const started = done + total(phases, (phase) => phase.inFlight);
  const good = total(phases, succeeded);
  const timeout = total(phases, ({ errors }) => errors.timeout);
  return {
    total: started + total(phases, (phase) => phase.unsent),
    started,
    done,
    succeeded: good,
    failed: done - good,
    errored: total(phases, ({ errors }) => errors.total) - timeout,
    timeout,
  };
}

/** Packets per response by kind, over all rounds; undefined on loopback and without responses. Kinds without a packet are left out. */
export function packetsByKind({ rounds }: VariantResult): Published['packets'] {
  const seen = phasesIn(rounds).filter(({ network }) => network !== null);
  const responses = total(seen, responsesOf);
  if (responses === 0) return undefined;
  return byName(directions, (way) => {
    const counts = summed(seen.flatMap(({ network }) => network?.[way].kinds ?? []));
    const kinds: NonNullable<Published['packets']>[Direction] = {};
    for (const kind of keysOf(counts)) if (counts[kind] > 0) kinds[kind] = counts[kind] / responses;
    return kinds;
  });
}

/** Header bytes per request; undefined if unknown. */
export const headerBytesOf = {
  published: ({ published }: VariantResult) =>
    bytesPerRequest(published?.headerBytes, published?.requests),
  here: ({ traffic }: VariantResult) => bytesPerRequest(traffic?.bytes.headers, traffic?.requests),
};

const bytesPerRequest = (
  bytes: number | undefined,
  requests: number | undefined,
): number | undefined => (bytes === undefined || !requests ? undefined : bytes / requests);

/** Medians over rounds, each with all of its phases. @param rounds at least one */
export function trafficOf(rounds: readonly (readonly Phase[])[]): Traffic {
  const over = (of: (phase: Phase) => number) => median(rounds.map((phases) => total(phases, of)));
  const bytes = byName(['received', 'headers', 'headersDecoded', 'body', 'sent'], (name) =>
    over((phase) => phase.bytes[name]),
  );
  const receivedPerSecond = (phases: readonly Phase[]) => {
    const seconds = total(phases, (phase) => phase.seconds);
    return seconds === 0 ? 0 : total(phases, (phase) => phase.bytes.received) / seconds;
  };
  return {
    ...byName(['requests', 'seconds'], (name) => over((phase) => phase[name])),
    bytes,
    receivedBytesPerSecond: median(rounds.map(receivedPerSecond)),
    headerSavingsPercent: headerSavingsPercent(bytes),
  };
}

/**
 * The share of the headers' size, in percent, that HPACK or QPACK saved (h2load's "space savings"). null for HTTP/1, whose headers are as
 * long as they are received.
 */
export function headerSavingsPercent({
  headers,
  headersDecoded,
}: LoadResult['bytes']): number | null {
  return headers === headersDecoded ? null : 100 * (1 - headers / headersDecoded);
}

/** A result per load phase. All rounds have the same phases. */
export function phaseResults(rounds: readonly Round[]): PhaseResult[] {
  return (rounds[0]?.phases ?? []).map(({ expected }, index): PhaseResult => {
    const phases = rounds.flatMap((round) => round.phases[index] ?? []);
    return {
      phase: index + 1,
      ...trafficOf(phases.map((phase) => [phase])),
      rps: { median: median(phases.map((phase) => roundRps([phase]))) },
      successRatio: successRatioOf(phases),
      responses: summed(phases.map((phase) => phase.responses)),
      ...present({ expected }),
      errors: summed(phases.map((phase) => phase.errors)),
      errorCauses: summed(phases.map((phase) => phase.errorCauses)),
      ...byName(['unsent', 'hung', 'unexpected'], (name) => total(phases, (phase) => phase[name])),
      ...byName(['latencyMs', 'connectMs', 'firstByteMs', 'sendDelayMs'], (name) =>
        mergedLatency(phases.map((phase) => phase[name])),
      ),
      ...present({ readDelayMs: mergedIfKnown(phases) }),
      ...byName(['perConnectionRps', 'perThreadRps'], (name) =>
        meanDistribution(phases.map((phase) => phase[name])),
      ),
      buckets: measuredBuckets(phases),
      tls: phases.find((phase) => phase.tls !== null)?.tls ?? null,
    };
  });
}

/** Absent in older results. */
function mergedIfKnown(phases: readonly Phase[]) {
  const known = phases.flatMap(({ readDelayMs }) => readDelayMs ?? []);
  return known.length === 0 ? undefined : mergedLatency(known);
}

/** Answers by status; by class where the statuses do not account for all of it. */
export function answersByStatus(phases: readonly Phase[]): [status: string, count: number][] {
  const statuses = Object.entries(summed(phases.map(({ statuses = {} }) => statuses)));
  const classes = Object.entries(summed(phases.map(({ responses }) => responses)));
  return classes.flatMap(([name, count]) => {
    const ofClass = statuses.filter(([status]) => status[0] === name[0]);
    return total(ofClass, ([, times]) => times) === count ? ofClass : [[name, count]];
  });
}

/** Adds up counts by name. */
export function summed<Name extends string>(
  counts: readonly Readonly<Record<Name, number>>[],
): Record<Name, number> {
  const sum: Partial<Record<Name, number>> = {};
  for (const more of counts)
    for (const name of keysOf(more)) sum[name] = (sum[name] ?? 0) + more[name];
  return sum as Record<Name, number>;
}

/** Kinds of trouble with clients in the server's log, and how often each was there in all rounds. */
export function clientErrorsOf({ rounds }: Pick<VariantResult, 'rounds'>): Record<string, number> {
  const phases = phasesIn(rounds);
  return summed(phases.map(({ clientErrors = {} }) => clientErrors));
}

/** A delay holds if the p99 of the packets' lateness is within this share of it. An idle link is within 0.2 %. */
const delayTolerance = 0.02;

export const directions = ['toServer', 'toClient'] as const;
export type Direction = (typeof directions)[number];

/** Returns the tolerated lateness in milliseconds, from this direction's delay or the other's; Infinity without a delay. */
function toleratedLatenessMs(spec: NetworkSpec, direction: Direction): number {
  const delayMs = spec[direction].delayMs || Math.max(spec.toServer.delayMs, spec.toClient.delayMs);
  return delayMs === 0 ? Infinity : delayTolerance * delayMs;
}

/** null on loopback, and without rounds. @param serverCores usable ones */
export function networkResult(
  spec: NetworkSpec | undefined,
  rounds: readonly Round[],
  serverCores: number,
): NetworkResult | null {
  const uses: NetworkUse[] = [];
  const answered: { network: NetworkUse; responses: number }[] = [];
  const busyShares: number[] = [];
  for (const phase of phasesIn(rounds)) {
    const { network, serverCpuSeconds, seconds } = phase;
    if (network === null) continue;
    uses.push(network);
    busyShares.push((serverCpuSeconds ?? 0) / (seconds * serverCores));
    const responses = responsesOf(phase);
    if (responses > 0) answered.push({ network, responses });
  }
  if (spec === undefined || uses.length === 0) return null;
  const perRequest = (of: (network: NetworkUse) => number) => {
    if (answered.length === 0) return 0;
    return median(answered.map(({ network, responses }) => of(network) / responses));
  };
  const typical = (direction: Direction, of: (traffic: LinkTraffic) => number) =>
    median(uses.map((network) => of(network[direction])));
  return {
    spec,
    packetsPerRequest: byName(directions, (direction) =>
      perRequest((network) => network[direction].packets),
    ),
    droppedShare: byName(directions, (direction) =>
      typical(direction, ({ packets, dropped }) => (packets === 0 ? 0 : dropped / packets)),
    ),
    latenessMs: byName(['p50', 'p99'], (name) =>
      Math.max(...directions.map((way) => typical(way, ({ latenessMs }) => latenessMs[name]))),
    ),
    retransmitsPerRequest: perRequest(({ retransmits }) => retransmits.client + retransmits.server),
    listenOverflows: median(uses.map(({ listenOverflows }) => listenOverflows)),
    // CPU time is counted in ticks, so its share may exceed 1.
    serverIdleShare: Math.max(0, 1 - median(busyShares)),
    delayHeld: directions.every(
      (direction) =>
        typical(direction, ({ latenessMs }) => latenessMs.p99) <=
        toleratedLatenessMs(spec, direction),
    ),
  };
}

export type PerRequest = keyof NonNullable<Phase['perRequest']>;

/** A counter of a variant's first load per request, for each round that has it. */
export const perRequestOf = ({ rounds }: VariantResult, name: PerRequest): number[] =>
  rounds.flatMap(({ phases: [first] }) => first?.perRequest?.[name] ?? []);

/** Connections per request: `kept` by the load, `share` the others; 0 if unknown. */
export function reconnectsOf(variant: VariantResult): { kept: number; share: number } {
  const { connections = 0 } = variant.load;
  const opened = perRequestOf(variant, 'connections');
  if (opened.length === 0) return { kept: 0, share: 0 };
  const each: number[] = [];
  for (const { phases } of variant.rounds) {
    const [first] = phases;
    if (first !== undefined) each.push(connections / (first.requests + first.warmupRequests));
  }
  const kept = mean(each);
  return { kept, share: mean(opened) - kept };
}
