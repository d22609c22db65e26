// How long a run takes, as far as it can be told before it starts.
import { pageOf } from '../scenario/catalogue.ts';
import type { Load } from '../scenario/load.ts';
import type { Page } from '../scenario/model.ts';
import type { PlanDraft, PlannedVariant } from './plan.ts';

/** Start and stop of server and k6, and the check of what was stored, for one variant in one round. Seen on 2 cores: 0.3 to 1 s. */
const overheadSeconds = 0.5;

/**
 * What a count of requests is taken to last where nobody knows, from what one server core and one generator core did here:
 * small pages at 20,000 requests/s (10,000 with a connection for each), large ones at the rate of their bytes, and a TLS
 * handshake's time for each connection.
 */
export const assumed = { rps: 20_000, rpsWithoutKeepAlive: 10_000, bytesPerSecond: 500e6, handshakeSeconds: 0.002 };

/** Estimated seconds of one load phase, its warm-up included. */
export function expectedSeconds(load: Load, page: Pick<Page, 'bodyBytes'>): number {
  const { warmupSeconds, rate, connections } = load;
  if (load.durationSeconds !== undefined) return warmupSeconds + load.durationSeconds;
  if (rate !== undefined) return warmupSeconds + load.requests / rate;
  const secondsPerRequest = Math.max(1 / (load.keepAlive ? assumed.rps : assumed.rpsWithoutKeepAlive), page.bodyBytes / assumed.bytesPerSecond);
  const handshakes = load.protocol === 'h2' ? connections * assumed.handshakeSeconds : 0;
  return warmupSeconds + load.requests * secondsPerRequest + handshakes;
}

/** Estimated seconds of one variant in one round: all its phases and the pauses between them. */
export function secondsPerVariant({ scenario }: PlanDraft, { variant, load }: PlannedVariant): number {
  const { count, pauseSeconds } = scenario.phases ?? { count: 1, pauseSeconds: 0 };
  return count * expectedSeconds(load, pageOf(scenario, variant)) + (count - 1) * pauseSeconds + overheadSeconds;
}

/** Estimated seconds of one round: every variant once. */
export function secondsPerRound(plan: PlanDraft): number {
  return plan.variants.reduce((sum, variant) => sum + secondsPerVariant(plan, variant), 0);
}

/** Estimated seconds of the rounds, by default as many as the run may come to. */
export function estimatedSeconds(plan: PlanDraft, rounds = expectedRounds(plan).most): number {
  return rounds * secondsPerRound(plan);
}

/** How many rounds a run comes to at least and at most, as far as it can be told before it starts. */
export function expectedRounds(plan: PlanDraft): { fewest: number; most: number } {
  const inTime = plan.maxTimeSeconds === undefined ? Infinity : Math.max(1, Math.floor(plan.maxTimeSeconds / secondsPerRound(plan)));
  return { fewest: Math.min(plan.looks[0] as number, inTime), most: Math.min(plan.rounds, inTime) };
}
