// How long loads, groups, rounds and runs take, and when verdicts are looked at.
import { total } from '../analysis/statistics.ts';
import type { Load } from '../scenario/load.ts';
import type { Page } from '../scenario/model.ts';
import { isMix } from '../scenario/pages.ts';
import type { PlannedEnclosure } from './enclosure.ts';
import type { Group, PlanDraft, PlannedVariant } from './plan.ts';
import { mostExtraWarmupSeconds } from './warmups.ts';

/** Assumed figures of a server core and a generator core, for loads that nobody has measured yet. */
const assumed = { rps: 20_000, rpsWithoutKeepAlive: 10_000, bytesPerSecond: 500e6 };
/** k6's start and end and the check of samples, per group: 0.3 to 1 s on 2 cores. */
const overheadSeconds = 0.5;
/** Start and end of a server, beside others. */
const serverSeconds = 0.1;

/** Seconds of a side's pages one at a time, after each phase: enough for 20 answers of a page in 1,000. */
export const secondsAlone = 0.7;

/** Estimates the seconds of a load phase with its warm-up. @param enclosure undefined on loopback */
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
/** The length of a turn: 16 answers, but at most a quarter of the window, and at least 4 answers and `leastSeconds`. */
const turnLength = { answers: 16, fewestAnswers: 4, windows: 1 / 4, leastSeconds: 0.02 };

/** Estimates the seconds that ramps and drains of turns take at a server that waits so long for each answer. */
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

/** Estimates the seconds of a group in a round. */
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

/** Estimates the seconds of a round. */
export function secondsPerRound(plan: PlanDraft): number {
  return total(plan.groups, (group) => secondsPerGroup(plan, group));
}

/** Estimates the seconds of so many rounds, by default of the most that the run may have. */
export function estimatedSeconds(plan: PlanDraft, rounds = expectedRounds(plan).most): number {
  return rounds * secondsPerRound(plan);
}

/** Estimates the fewest and the most rounds of a run. */
export function expectedRounds(plan: PlanDraft) {
  const { maxTimeSeconds = Infinity } = plan;
  const inTime = Math.max(1, Math.floor(maxTimeSeconds / secondsPerRound(plan)));
  const rounds = Math.min(...plan.looks.map((look) => look.rounds));
  return { fewest: Math.min(rounds, inTime), most: Math.min(plan.rounds, inTime) };
}

/** Returns the rounds after which the verdicts are looked at next. @param place of the present round, from 1 */
export function nextLook({ looks, rounds }: PlanDraft, place: number): number {
  return looks.find((look) => look.rounds >= place)?.rounds ?? rounds;
}

/** Returns the number of rounds to the next look at the verdicts, or to the end. @param place of the present round, from 1 */
export function roundsToLook(plan: PlanDraft, place: number): number {
  return Math.max(1, Math.min(nextLook(plan, place), expectedRounds(plan).most) - place + 1);
}
