// Figures of load phases, over the rounds of a variant.
import { byName } from '../present.ts';
import type {
  LoadResult,
  Phase,
  PhaseResult,
  Round,
  Traffic,
  VariantResult,
} from '../result/result.ts';
import type { Published } from '../scenario/model.ts';
import { meanDistribution, measuredBuckets, mergedLatency } from './latency.ts';
import { median, total } from './statistics.ts';

/** The number of rounds; variants that are published only have none. */
export function wholeRounds(variants: readonly { rounds: readonly unknown[] }[]): number {
  return Math.max(0, ...variants.map(({ rounds }) => rounds.length));
}

/** Complete responses of any status. */
export function responsesOf({ responses }: Pick<LoadResult, 'responses'>): number {
  return responses['2xx'] + responses['3xx'] + responses['4xx'] + responses['5xx'];
}

/** Responses per second over all phases of a round. Failed requests say nothing about the server's speed. */
export function roundRps(phases: readonly LoadResult[]): number {
  return total(phases, responsesOf) / total(phases, (phase) => phase.seconds);
}

/** CPU time of the server; null if unknown. */
export function serverCpuSecondsOf(
  phases: readonly Pick<Phase, 'serverCpuSeconds'>[],
): number | null {
  return phases.some(({ serverCpuSeconds }) => serverCpuSeconds === null)
    ? null
    : total(phases, ({ serverCpuSeconds }) => serverCpuSeconds ?? 0);
}

/** NaN if the CPU time is unknown, NaN or ∞ without responses. */
export function serverCpuSecondsPerResponse(phases: readonly Phase[]): number {
  return (serverCpuSecondsOf(phases) ?? NaN) / total(phases, responsesOf);
}

/** With a larger share of failures, requests/s and latency say nothing about the server's speed. */
export const tolerableFailures = 0.01;

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

/** Responses of the expected class, by default 2xx and 3xx. */
export function succeeded({ responses, expected }: Pick<Phase, 'responses' | 'expected'>): number {
  return expected === undefined ? responses['2xx'] + responses['3xx'] : responses[expected];
}

interface PhasePair {
  /** From 1. */
  phase: number;
  published: Published | undefined;
  measured: PhaseResult | undefined;
}

/** Published phases beside measured phases; either may have fewer. */
export function phasePairs({
  published,
  phases,
}: Pick<VariantResult, 'published' | 'phases'>): PhasePair[] {
  const inArticle = published === null ? [] : (published.phases ?? [published]);
  return Array.from({ length: Math.max(phases.length, inArticle.length) }, (_, index) => ({
    phase: index + 1,
    published: inArticle[index],
    measured: phases[index],
  }));
}

/** Medians over rounds, each with all of its phases. @param rounds at least one */
export function trafficOf(rounds: readonly (readonly Phase[])[]): Traffic {
  const over = (of: (phase: Phase) => number): number =>
    median(rounds.map((phases) => total(phases, of)));
  const bytes = byName(['received', 'headers', 'headersDecoded', 'body', 'sent'], (name) =>
    over((phase) => phase.bytes[name]),
  );
  const receivedPerSecond = (phases: readonly Phase[]): number => {
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

/** The share of the headers' size that HPACK saved (h2load's "space savings"); null without headers. */
export function headerSavingsPercent({
  headers,
  headersDecoded,
}: LoadResult['bytes']): number | null {
  return headersDecoded === 0 ? null : 100 * (1 - headers / headersDecoded);
}

/** A result per load phase. All rounds have the same phases. */
export function phaseResults(rounds: readonly Round[]): PhaseResult[] {
  return (rounds[0]?.phases ?? []).map(({ expected }, index): PhaseResult => {
    const phases = rounds.map((round) => round.phases[index] as Phase);
    return {
      phase: index + 1,
      ...trafficOf(phases.map((phase) => [phase])),
      rps: { median: median(phases.map((phase) => roundRps([phase]))) },
      successRatio: successRatioOf(phases),
      responses: summed(phases.map((phase) => phase.responses)),
      ...(expected === undefined ? {} : { expected }),
      errors: summed(phases.map((phase) => phase.errors)),
      errorCauses: summed(phases.map((phase) => phase.errorCauses)),
      ...byName(['unsent', 'hung'], (name) => total(phases, (phase) => phase[name])),
      ...byName(['latencyMs', 'connectMs', 'firstByteMs', 'sendDelayMs'], (name) =>
        mergedLatency(phases.map((phase) => phase[name])),
      ),
      ...byName(['perConnectionRps', 'perThreadRps'], (name) =>
        meanDistribution(phases.map((phase) => phase[name])),
      ),
      buckets: measuredBuckets(phases),
      tls: phases.find((phase) => phase.tls !== null)?.tls ?? null,
    };
  });
}

/** Adds up counts by name. */
export function summed<Name extends string>(
  counts: readonly Readonly<Record<Name, number>>[],
): Record<Name, number> {
  const sum: Partial<Record<Name, number>> = {};
  for (const more of counts)
    for (const name of Object.keys(more) as Name[]) sum[name] = (sum[name] ?? 0) + more[name];
  return sum as Record<Name, number>;
}
