// The passes of --counts: each side is started, warmed and counted, one after the other, and that again.
import { mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { obstacleOfBodies } from '../../analysis/bodies.ts';
import { responsesOf, succeeded } from '../../analysis/phases.ts';
import { mean, total } from '../../analysis/statistics.ts';
import { inOneLine, messageOf, UserError } from '../../errors.ts';
import { success, whole } from '../../format.ts';
import { present } from '../../present.ts';
import { countNames, type Counted, type CountName } from '../../result/counts.ts';
import { withFindings } from '../../report/finding-words.ts';
import { obstacleText } from '../../report/reasons.ts';
import { resultJson } from '../../result/result-file.ts';
import type { Result, Round } from '../../result/result.ts';
import { otherBodiesOf } from '../../runner/bodies.ts';
import type { CallCounter, EndedRun } from '../../runner/examine.ts';
import { RoundFailure } from '../../runner/failures.ts';
import { phasesOf } from '../../runner/measured-phases.ts';
import type { Observer } from '../../runner/observers/observer.ts';
import type { Stage } from '../../runner/plan.ts';
import { openStages } from '../../runner/round.ts';
import { loadAlone, type LoadContext, type Measurement } from '../../runner/under-load.ts';
import { isStarted } from '../../servers/index.ts';
import { writeWhole } from '../../writing.ts';
import { stateOf, uncertain, type Condition } from './conditions.ts';
import {
  differencesOf,
  differs,
  meanOf,
  type CountDifference,
  type CountedSide,
} from './difference.ts';

/** Requests of a pass. All passes have as many: the most, or so many that a slow side takes about two seconds. */
const sizes = [3000, 1000, 300, 100, 30];
/** A machine that is busy for a moment makes no pass smaller. */
const passSeconds = { usual: 2, longest: 4 };
/** Each side has two passes. It gets more while a count is in doubt, the last ones begin within these seconds. */
const passes = { least: 2, most: 6 };
const doubtSeconds = 15;
/** Without conditions, others are not worth more passes. */
const worthMore: readonly CountName[] = ['syscalls', 'bytes', 'segments'];
/** A count whose interval is this narrow is not in doubt: per request, or as a share of the baseline. */
const narrow = { perRequest: 0.05, share: 0.02 };
/** System calls that are also counted by name. Only a side's first pass does so, because perf takes 40 ms to begin and end each. */
const namedCalls =
  'openat close newfstat newfstatat statx pread64 read recvfrom write writev sendfile64 epoll_wait epoll_pwait futex'.split(
    ' ',
  );
/** As --fail-if with times. */
const leastSuccess = 0.99;

interface Asked {
  conditions: readonly Condition[] | undefined;
  callCounter: ((signal: AbortSignal) => Promise<CallCounter>) | undefined;
  /** About how long all passes take. */
  seconds: number;
}

type Pass = Partial<Record<CountName, number>> & Pick<CountedSide, 'calls'> & Pick<Round, 'phases'>;

/** What is counted so far. */
interface Counting {
  /** The requests of a pass. */
  requests: number;
  /** The passes by side. */
  passes: Map<string, Pass[]>;
  counter: CallCounter | undefined;
  /** Lines on what is not known. */
  missing: Set<string>;
}

/** @throws UserError if a side cannot be loaded, or fails; Interrupted */
export async function countSides(run: EndedRun, asked: Asked): Promise<Result> {
  const { context } = run;
  // The plan's findings are about times.
  const result = withFindings(run.result, [], context.templates);
  try {
    return { ...result, counts: await countsOf(run, asked), endedAt: new Date().toISOString() };
  } catch (error) {
    const endedBy = inOneLine(messageOf(error));
    const ended = resultJson({ ...result, state: 'partial', endedBy });
    await writeWhole(join(context.folder, 'result.json'), ended);
    throw error instanceof RoundFailure ? new UserError(error.message) : error;
  } finally {
    for (const name of ['calls', 'perf.log']) await rm(join(context.folder, name), { force: true });
  }
}

async function countsOf(run: EndedRun, asked: Asked): Promise<Counted> {
  const { conditions, callCounter, seconds } = asked;
  const { plan, signal } = run.context;
  const missing = new Set<string>();
  const names = plan.variants.map(({ variant }) => variant.name);
  const counting: Counting = {
    requests: Math.max(...sizes),
    passes: new Map(names.map((name) => [name, []])),
    counter: await counterOf(callCounter, signal, missing),
    missing,
  };
  const beganAtMs = performance.now();
  const elapsedSeconds = () => (performance.now() - beganAtMs) / 1000;
  const sidesNow = () => [...counting.passes].map(([name, all]) => sideOf(name, all));
  const hasDoubt = () => {
    const sides = sidesNow();
    return differencesOf(sides).some((difference) => isInDoubt(difference, sides[0], conditions));
  };
  const goesOn = () => {
    const fewest = Math.min(...[...counting.passes.values()].map(({ length }) => length));
    if (fewest < passes.least) return true;
    return fewest < passes.most && elapsedSeconds() < doubtSeconds && hasDoubt();
  };
  for (let round = 1; goesOn(); round++)
    await countRound(run.context, round, counting, (seen) => {
      const secondsLeft = Math.max(1, seconds - elapsedSeconds());
      run.tell({ what: 'counting', seen, secondsLeft });
    });
  for (const { variant } of plan.variants)
    if (variant.server.name === 'address')
      missing.add(
        `system calls, context switches and page faults of ${variant.name}, which was not started here`,
      );
  requireSamePages(counting.passes);
  const sides = sidesNow();
  const differences = differencesOf(sides);
  return { requests: counting.requests, sides, differences, missing: [...missing] };
}

/** A server that answers its load with other pages than it was checked with has other counts. @throws UserError */
function requireSamePages(passes: ReadonlyMap<string, readonly Pass[]>): void {
  const [baseline, ...others] = [...passes].map(([name, all]) => ({
    name,
    rounds: all.map(({ phases }, index): Round => ({ round: index + 1, phases })),
  }));
  for (const other of others) {
    const obstacle = baseline && obstacleOfBodies([baseline, other]);
    if (obstacle !== undefined)
      throw new UserError(`nothing was compared: ${obstacleText(obstacle)}`);
  }
}

/** Starts all sides, and warms up and counts one after the other. Leaves nothing running. */
async function countRound(
  context: LoadContext,
  round: number,
  counting: Counting,
  onSide: (name: string) => void,
): Promise<void> {
  for (const group of context.plan.groups) {
    const stages = await openStages(context, group, { round });
    try {
      // Forth and back, so that a machine that changes over time favours no side.
      for (const stage of round % 2 === 1 ? stages : stages.toReversed()) {
        onSide(stage.planned.variant.name);
        await countSide(context, stage, counting);
      }
    } finally {
      await Promise.all(stages.map((stage) => stage.stop()));
    }
  }
}

async function countSide(context: LoadContext, stage: Stage, counting: Counting): Promise<void> {
  const { passes: all } = counting;
  const size = sizeFor(await loadOf(context, stage), counting.requests);
  // All passes have as many requests.
  if (size < counting.requests) for (const earlier of all.values()) earlier.length = 0;
  counting.requests = size;
  const ofSide = all.get(stage.planned.variant.name);
  const pass = await passOf(context, stage, counting, ofSide?.length === 0 ? namedCalls : []);
  ofSide?.push(pass);
}

async function counterOf(
  open: Asked['callCounter'],
  signal: AbortSignal,
  missing: Set<string>,
): Promise<CallCounter | undefined> {
  try {
    if (open === undefined) throw new UserError('this bakeoff has nothing that counts them');
    return await open(signal);
  } catch (error) {
    signal.throwIfAborted();
    missing.add(notCounted(error));
    return undefined;
  }
}

const notCounted = (error: unknown): string => `system calls, since ${inOneLine(messageOf(error))}`;

/** Returns whether more passes may decide: a condition, or, without conditions, whether the sides differ. */
function isInDoubt(
  difference: CountDifference,
  baseline: CountedSide | undefined,
  conditions: readonly Condition[] | undefined,
): boolean {
  const { count, low, high } = difference;
  if (low === high || baseline === undefined) return false;
  const usual = meanOf(baseline, count);
  if (conditions !== undefined)
    return conditions.some(
      (condition) =>
        condition.count === count && stateOf(condition, difference, usual) === uncertain,
    );
  const half = (high - low) / 2;
  if (!worthMore.includes(count)) return false;
  return !differs(difference) && half > Math.max(narrow.perRequest, narrow.share * usual);
}

function sideOf(variant: string, all: readonly Pass[]): CountedSide {
  const side: CountedSide = { variant };
  for (const name of countNames) {
    const figures = all.flatMap((pass) => pass[name] ?? []);
    if (figures.length > 0 && figures.length === all.length) side[name] = figures;
  }
  const named = new Map<string, number[]>();
  for (const { calls = [] } of all)
    for (const { name, perRequest } of calls)
      named.set(name, [...(named.get(name) ?? []), perRequest]);
  const calls = [...named].map(([name, figures]) => ({ name, perRequest: mean(figures) }));
  return { ...side, ...(calls.length > 0 && { calls }) };
}

/** The number of requests for a pass, at most as many as before. */
function sizeFor({ results }: Measurement, before: number): number {
  const seconds = total(results, (result) => result.seconds);
  const rate = total(results, responsesOf) / Math.max(seconds, 1e-3);
  if (rate * passSeconds.longest >= before) return before;
  return sizes.find((size) => size <= rate * passSeconds.usual) ?? Math.min(...sizes);
}

async function passOf(
  context: LoadContext,
  stage: Stage,
  { requests, counter, missing }: Counting,
  named: readonly string[],
): Promise<Pass> {
  const { planned, server } = stage;
  const { durationSeconds: _, requests: __, rate: ___, searched: ____, ...load } = planned.load;
  const stageOfPass = { ...stage, planned: { ...planned, load: { ...load, requests } } };
  const calls = isStarted(server) ? counter?.(context, server, named) : undefined;
  const observer =
    calls && triedObserver(calls.observer, (error) => missing.add(notCounted(error)));
  const measured = await loadOf(context, stageOfPass, observer);
  const { perRequest = {}, results, alsoLoadedBy } = measured;
  const { name } = planned.variant;
  if (alsoLoadedBy !== undefined)
    throw new UserError(`${name} had connections of ${alsoLoadedBy || 'another program'} too`);
  const ended = total(results, (result) => result.requests);
  const share = total(results, succeeded) / Math.max(1, ended);
  if (share < leastSuccess)
    throw new UserError(
      `of ${name}'s ${whole(ended)} requests ${success(share)} succeeded: look at its log`,
    );
  const phases = phasesOf(measured, context.plan, false);
  const [other] = otherBodiesOf(planned, phases, server.answer);
  const [first] = phases;
  if (first !== undefined && other !== undefined) first.bodyRatio = other.bodyRatio;
  const { voluntarySwitches: voluntary, involuntarySwitches: involuntary } = perRequest;
  const seen = calls?.read(ended);
  // perf prints none of what it cannot count.
  const isSeen = seen !== undefined && seen.counts.calls > 0;
  if (calls !== undefined && !isSeen)
    missing.add(`system calls of ${name}, of which perf saw none`);
  const counted = present({
    syscalls: isSeen ? seen.counts.calls : undefined,
    calls: seen?.calls.filter(({ perRequest: times }) => times > 0),
    bytes: total(results, ({ bytes }) => bytes.received) / ended,
    segments: total(results, ({ wire }) => wire?.dataSegmentsIn ?? 0) / ended,
    switches: voluntary === undefined ? undefined : voluntary + (involuntary ?? 0),
    faults: perRequest.pageFaults,
  });
  return { phases, ...counted };
}

/** An observer without which a load goes on if it cannot begin. */
function triedObserver(observer: Observer, onFailure: (error: unknown) => void): Observer {
  return {
    name: observer.name,
    async begin(load) {
      try {
        return await observer.begin(load);
      } catch (error) {
        onFailure(error);
        return { end: () => [] };
      }
    },
  };
}

async function loadOf(context: LoadContext, stage: Stage, more?: Observer): Promise<Measurement> {
  // k6 appends to its files.
  const folder = await mkdtemp(join(context.folder, 'k6-'));
  try {
    return await loadAlone(context, stage, folder, more);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
