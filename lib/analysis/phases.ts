// What h2load and vegeta print of a run, over the rounds of a variant.
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
import { measuredBuckets, meanDistribution, mergedLatency } from './latency.ts';
import { median, total } from './statistics.ts';

/** How many rounds the variants have that were run; those that are published only have none. */
export function wholeRounds(variants: readonly { rounds: readonly unknown[] }[]): number {
  return Math.max(0, ...variants.map(({ rounds }) => rounds.length));
}

/** Complete responses of any status. */
export function responsesOf({ responses }: Pick<LoadResult, 'responses'>): number {
  return responses['2xx'] + responses['3xx'] + responses['4xx'] + responses['5xx'];
}

/** requests/s over all phases of a round: those that were answered, since what failed says nothing of how fast the server answers. */
export function roundRps(phases: readonly LoadResult[]): number {
  return total(phases, responsesOf) / total(phases, (phase) => phase.seconds);
}

/** CPU time of the server; null where that is not known. */
export function serverCpuSecondsOf(
  phases: readonly Pick<Phase, 'serverCpuSeconds'>[],
): number | null {
  return phases.some(({ serverCpuSeconds }) => serverCpuSeconds === null)
    ? null
    : total(phases, ({ serverCpuSeconds }) => serverCpuSeconds ?? 0);
}

/** The same per response; NaN where it is not known, NaN or ∞ where nothing was answered. */
export function serverCpuSecondsPerResponse(phases: readonly Phase[]): number {
  return (serverCpuSecondsOf(phases) ?? NaN) / total(phases, responsesOf);
}

/** More failed requests than this, as a share, and neither requests/s nor latency say how fast the server answers. */
export const tolerableFailures = 0.01;

/** Whether so many failed. @param successRatio as successRatioOf */
export function isFailing({ successRatio }: { successRatio: number | null }): boolean {
  return 1 - (successRatio ?? 0) > tolerableFailures;
}

/** What succeeded per request, those that hung included, 0 to 1; null without requests. */
export function successRatioOf(
  phases: readonly (LoadResult & Pick<Phase, 'expected'>)[],
): number | null {
  const requests = total(phases, (phase) => phase.requests + phase.hung);
  return requests === 0 ? null : total(phases, succeeded) / requests;
}

/** Responses of the class that is right (Phase.expected). */
export function succeeded({ responses, expected }: Pick<Phase, 'responses' | 'expected'>): number {
  return expected === undefined ? responses['2xx'] + responses['3xx'] : responses[expected];
}

/** `phase` from 1. */
interface PhasePair {
  phase: number;
  published: Published | undefined;
  measured: PhaseResult | undefined;
}

/** The phases of a variant, published beside measured; one of the two may have fewer, or none. */
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

/** Over rounds, of each all of its phases together. @param rounds at least one */
export function trafficOf(rounds: readonly (readonly Phase[])[]): Traffic {
  const over = (of: (phase: Phase) => number): number =>
    median(rounds.map((phases) => total(phases, of)));
  const bytes = byName(['received', 'headers', 'headersDecoded', 'body', 'sent'], (name) =>
    over((phase) => phase.bytes[name]),
  );
  return {
    ...byName(['requests', 'seconds'], (name) => over((phase) => phase[name])),
    bytes,
    receivedBytesPerSecond: median(
      rounds.map((phases) => {
        const seconds = total(phases, (phase) => phase.seconds);
        return seconds === 0 ? 0 : total(phases, (phase) => phase.bytes.received) / seconds;
      }),
    ),
    headerSavingsPercent: headerSavingsPercent(bytes),
  };
}

/** What HPACK saved of the headers' own size, as h2load's "space savings"; null where no header came. */
export function headerSavingsPercent({
  headers,
  headersDecoded,
}: LoadResult['bytes']): number | null {
  return headersDecoded === 0 ? null : 100 * (1 - headers / headersDecoded);
}

/** One per load phase, in order. The rounds all have the same phases. */
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

/** Adds up counts by name; one that some lack is 0 there. */
export function summed<Name extends string>(
  counts: readonly Readonly<Record<Name, number>>[],
): Record<Name, number> {
  const sum: Partial<Record<Name, number>> = {};
  for (const more of counts)
    for (const name of Object.keys(more) as Name[]) sum[name] = (sum[name] ?? 0) + more[name];
  return sum as Record<Name, number>;
}
