// How long loads, groups, rounds and runs take, and when verdicts are looked at.
import type { Look } from '../analysis/looks.ts';
import { total } from '../analysis/statistics.ts';
import type { Load } from '../scenario/load.ts';
import type { Page } from '../scenario/model.ts';
import { isMix } from '../scenario/pages.ts';
import type { PlannedEnclosure } from './enclosure.ts';
import type { Group, PlanDraft, PlannedVariant } from './plan.ts';
import { mostExtraWarmupSeconds } from './warmups.ts';

/** A server core's and a generator core's, until measured. */
const assumed = { rps: 20_000, rpsWithoutKeepAlive: 10_000, bytesPerSecond: 500e6 };
/** k6's start and end and the check of samples, per group: 0.3 to 1 s on 2 cores. */
const overheadSeconds = 0.5;
/** A server's start and end, beside others. */
const serverSeconds = 0.1;

/** A side's pages, one at a time, have 20 answers of a page in 1,000. */
export const secondsAlone = 0.7;

/** Includes the warm-up. @param enclosure undefined on loopback */
export function expectedSeconds(
  load: Load,
  page: Pick<Page, 'bodyBytes'>,
  enclosure?: PlannedEnclosure,
): number {
  const { warmupSeconds, rate, keepAlive } = load;
  if (load.durationSeconds !== undefined) return warmupSeconds + load.durationSeconds;
  if (rate !== undefined) return warmupSeconds + load.requests / rate;
  const rps = load.expectedRps ?? (keepAlive ? assumed.rps : assumed.rpsWithoutKeepAlive);
  const secondsPerRequest = Math.max(
    1 / rps,
    (page.bodyBytes ?? 0) / assumed.bytesPerSecond,
    enclosure?.secondsPerRequest(load, page) ?? 0,
  );
  return warmupSeconds + load.requests * secondsPerRequest;
}

/** Latencies that turns add (xk6-loadgen/README.md): lone requests and the warm-up's drain; a ramp and a drain per turn. */
const addedAnswers = { once: 4, perTurn: 3.5 };
/** In latencies: 16, in a short window a quarter of that, at least 4; and its least seconds. */
const turnLength = { answers: 16, fewestAnswers: 4, windows: 1 / 4, leastSeconds: 0.02 };

/** Ramps and drains at a server that waits so long for each answer. */
function edgeSeconds({ durationSeconds }: Load, answerSeconds: number): number {
  if (durationSeconds === undefined) return 0;
  const { answers, fewestAnswers, windows, leastSeconds } = turnLength;
  const turnSeconds = Math.max(
    leastSeconds,
    fewestAnswers * answerSeconds,
    Math.min(answers * answerSeconds, windows * durationSeconds),
  );
  const turns = Math.max(1, durationSeconds / turnSeconds);
  return answerSeconds * (addedAnswers.once + addedAnswers.perTurn * turns);
}

function secondsPerGroup(
  { scenario, stepped, answerSeconds, cores: { generators } }: PlanDraft,
  { sides }: Group,
): number {
  const { count, pauseSeconds } = scenario.phases ?? {
    count: stepped?.expectedSteps ?? 1,
    pauseSeconds: 0,
  };
  const secondsOf = ({ variant, load, page, enclosure }: PlannedVariant) => {
    const alone = isMix(page) ? secondsAlone + 0.1 : 0;
    const edges = sides.length > 1 ? edgeSeconds(load, answerSeconds?.get(variant.name) ?? 0) : 0;
    const extra = sides.length === 1 ? mostExtraWarmupSeconds(load) / 2 : 0;
    const around = serverSeconds + (enclosure?.seconds ?? 0);
    return count * (expectedSeconds(load, page, enclosure) + extra + alone + edges) + around;
  };
  const overhead = generators?.overheadSeconds ?? overheadSeconds;
  return (count - 1) * pauseSeconds + overhead + total(sides, secondsOf);
}

export function secondsPerRound(plan: PlanDraft): number {
  return total(plan.groups, (group) => secondsPerGroup(plan, group));
}

/** Counts the most rounds by default. */
export function estimatedSeconds(plan: PlanDraft, rounds = expectedRounds(plan).most): number {
  return rounds * secondsPerRound(plan);
}

export function expectedRounds(plan: PlanDraft) {
  const { maxTimeSeconds = Infinity } = plan;
  const inTime = Math.max(1, Math.floor(maxTimeSeconds / secondsPerRound(plan)));
  const [{ rounds }] = plan.looks as [Look];
  return { fewest: Math.min(rounds, inTime), most: Math.min(plan.rounds, inTime) };
}

/** @param place of the present round, from 1 */
export function nextLook({ looks, rounds }: PlanDraft, place: number): number {
  return looks.find((look) => look.rounds >= place)?.rounds ?? rounds;
}

/** Or to the end. @param place as above */
export function roundsToLook(plan: PlanDraft, place: number): number {
  return Math.max(1, Math.min(nextLook(plan, place), expectedRounds(plan).most) - place + 1);
}
