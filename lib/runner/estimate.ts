// How long a run takes, as far as it can be told before it starts.
import { networkOf, pageOf } from '../scenario/catalogue.ts';
import type { Load } from '../scenario/load/fit.ts';
import type { NetworkSpec, Page } from '../scenario/model.ts';
import type { Group, PlanDraft } from './planned.ts';

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
