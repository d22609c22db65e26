// Why requests failed, were turned away or left late.
import { present } from '../present.ts';
import type { FailureCause, Failures, RateCause } from '../result/finding.ts';
import { isOfApache, limitIn } from '../result/redirections.ts';
import type { Phase, VariantResult } from '../result/result.ts';
import { limitOf, rateOf } from './limit.ts';
import { answersByStatus, phasesIn, succeeded, summed } from './phases.ts';
import { total } from './statistics.ts';

const mostStatuses = 4;

export function failuresOf(phases: readonly Phase[]): Failures {
  const wrong = wrongAnswers(phases).sort((a, b) => b.count - a.count);
  const failed = phases.find(({ errors, errorExample }) => errors.total > 0 && errorExample);
  return {
    errors: total(phases, (phase) => phase.errors.total),
    errorCauses: summed(phases.map(({ errorCauses }) => errorCauses)),
    ...present({ errorExample: failed?.errorExample }),
    answers: wrong.slice(0, mostStatuses).sort((a, b) => (a.status < b.status ? -1 : 1)),
    otherAnswers: total(wrong.slice(mostStatuses), ({ count }) => count),
  };
}

function wrongAnswers(phases: readonly Phase[]): Failures['answers'] {
  const expected = phases[0]?.expected ?? '2xx 3xx';
  // If each request has a status of its own to expect, it is only known whether some answers were unexpected, not which statuses.
  if (expected === 'each' && total(phases, ({ unexpected }) => unexpected) === 0) return [];
  const all = answersByStatus(phases).map(([status, count]) => ({ status, count }));
  return all.filter(({ status }) => !expected.includes(`${status[0]}xx`));
}

/** The statuses of answers beyond a limit of requests or connections. */
const limitStatuses = ['429', '503'];

/** Returns why most of a variant's failed requests failed; undefined if unknown. */
export function failureCauseOf({
  server,
  rounds,
}: Pick<VariantResult, 'server' | 'rounds'>): FailureCause | undefined {
  const phases = phasesIn(rounds);
  const changes = server?.redirections ?? [];
  const failed = total(phases, (phase) => phase.requests - succeeded(phase));
  const isMost = (count: number) => count > 0 && 2 * count > failed;
  const limited = answersByStatus(phases).filter(([status]) => limitStatuses.includes(status));
  if (isMost(total(limited, ([, count]) => count))) {
    const limits = changes.flatMap((line) => limitIn(line) ?? []);
    const isTold = limited.every(([status]) => status === '429');
    if (limits.length === 0 && !isTold) return undefined;
    const allowed = Math.min(...limits.map(({ allowedRps }) => allowedRps));
    return {
      kind: 'limit',
      lines: limits.map(({ text }) => text),
      isOfRequests: limits.every(({ isOfRequests }) => isOfRequests),
      ...present({ rps: rateWithin(Number.isFinite(allowed) ? allowed : goodRate(phases)) }),
    };
  }
  if (changes.some(isOfApache) && isMost(total(phases, ({ errorCauses }) => errorCauses.short)))
    return { kind: 'apacheThreads' };
  return undefined;
}

function goodRate(phases: readonly Phase[]): number {
  return total(phases, succeeded) / total(phases, (phase) => phase.seconds);
}

/** Returns 80 % of a rate, rounded down to one digit; undefined below 2. */
function rateWithin(rate: number): number | undefined {
  const within = 0.8 * rate;
  if (!(within >= 2)) return undefined;
  const digit = 10 ** Math.floor(Math.log10(within));
  return Math.floor(within / digit) * digit;
}

/**
 * Returns whether all connections may have been busy at once, by Little's law with the longest latency and a burst of ten times the rate.
 */
function mayLackConnections({ load, rps, latencyMs }: VariantResult): boolean {
  if (rps === null || latencyMs === null) return false;
  const busy = (10 * rps.median * latencyMs.max) / 1000;
  return busy >= (load.connections ?? 0);
}

/** Returns why requests left late, or not at all. */
export function rateCauseOf(variant: VariantResult): RateCause {
  const limit = limitOf(variant);
  const { growthPerSecond = 0 } = rateOf(variant) ?? {};
  if (growthPerSecond > 0 && limit !== 'generator') return { kind: 'queueGrows', growthPerSecond };
  if (variant.load['arrivals'] === 'logged' && limit === 'neither' && mayLackConnections(variant))
    return { kind: 'fewConnections' };
  return { kind: limit ?? 'unknown' };
}
