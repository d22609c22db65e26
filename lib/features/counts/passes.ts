// The passes of --counts: each side is started, warmed and counted, one after the other, and that again.
import { mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { responsesOf, succeeded } from '../../analysis/phases.ts';
import { mean, total } from '../../analysis/statistics.ts';
import { messageOf, UserError } from '../../errors.ts';
import { success, whole } from '../../format.ts';
import { present } from '../../present.ts';
import { countNames, type CountName } from '../../result/counts.ts';
import type { Result } from '../../result/result.ts';
import type { CallCounter, EndedRun } from '../../runner/examine.ts';
import type { Stage } from '../../runner/plan.ts';
import { openStages } from '../../runner/round.ts';
import { underLoad, type LoadContext, type Measurement } from '../../runner/under-load.ts';
import { isStarted } from '../../servers/index.ts';
import type { Condition } from './conditions.ts';
import { stateOf } from './conditions.ts';
import {
  differencesOf,
  differs,
  meanOf,
  type CountDifference,
  type CountedSide,
} from './difference.ts';

/** Requests of a pass: the most that a pass of about a second has. All passes have as many. */
const sizes = [10_000, 3000, 1000, 300, 100, 30];
const passSeconds = 0.5;
/** Each side has two passes. It gets more while a count is in doubt, within these seconds. */
const passes = { least: 2, most: 6 };
const doubtSeconds = 7;
/** A count whose interval is this narrow is not in doubt: per request, or as a share of the baseline. */
const narrow = { perRequest: 0.05, share: 0.02 };
/** Those that are counted by name too, in a side's first pass: to begin and end each takes perf 40 ms. */
const namedCalls =
  'openat close newfstat newfstatat pread64 read recvfrom write writev sendfile64 epoll_wait epoll_pwait futex'.split(
    ' ',
  );
/** As --fail-if with times. */
const leastSuccess = 0.99;

interface Asked {
  conditions: readonly Condition[] | undefined;
  callCounter: ((signal: AbortSignal) => Promise<CallCounter>) | undefined;
}

type Pass = Partial<Record<CountName, number>> & Pick<CountedSide, 'calls'>;

/** @throws UserError if a side cannot be loaded, or fails; Interrupted */
export async function countSides(
  { context, result, tell }: EndedRun,
  { conditions, callCounter }: Asked,
): Promise<Result> {
  const { plan, signal } = context;
  const missing: string[] = [];
  const counter = await counterOf(callCounter, signal, missing);
  const names = plan.variants.map(({ variant }) => variant.name);
  const counted = new Map<string, Pass[]>(names.map((name) => [name, []]));
  let [requests = 0] = sizes;
  const sides = () => names.map((name) => sideOf(name, counted.get(name) ?? []));
  const fewest = () => Math.min(...[...counted.values()].map(({ length }) => length));
  const beganAtMs = performance.now();
  const elapsedSeconds = () => (performance.now() - beganAtMs) / 1000;
  for (let round = 1; fewest() < passes.least || hasDoubt(); round++) {
    for (const group of plan.groups) {
      const stages = await openStages(context, group, { round });
      try {
        // Forth and back, so that a machine that changes over time favours no side.
        for (const stage of round % 2 === 1 ? stages : stages.toReversed()) {
          const { name } = stage.planned.variant;
          const secondsLeft = Math.max(1, 4 * names.length - elapsedSeconds());
          tell({ what: 'counting', seen: name, secondsLeft });
          const warm = await loadOf(context, stage);
          const fitting = sizeFor(warm, requests);
          if (fitting < requests) for (const all of counted.values()) all.length = 0;
          requests = fitting;
          const before = counted.get(name) ?? [];
          const calls = before.length === 0 ? namedCalls : [];
          before.push(await passOf(context, stage, requests, { counter, calls }));
        }
      } finally {
        await Promise.all(stages.map((stage) => stage.stop()));
      }
    }
  }
  for (const { variant } of plan.variants)
    if (variant.server.name === 'address')
      missing.push(
        `system calls, context switches and page faults of ${variant.name}, which was not started here`,
      );
  const all = sides();
  await Promise.all(
    ['calls', 'perf.log'].map((name) => rm(join(context.folder, name), { force: true })),
  );
  const endedAt = new Date().toISOString();
  return {
    ...result,
    endedAt,
    counts: { requests, sides: all, differences: differencesOf(all), missing },
  };

  function hasDoubt(): boolean {
    if (fewest() >= passes.most || elapsedSeconds() > doubtSeconds) return false;
    const now = sides();
    return differencesOf(now).some((difference) => isInDoubt(difference, now[0], conditions));
  }
}

async function counterOf(
  open: Asked['callCounter'],
  signal: AbortSignal,
  missing: string[],
): Promise<CallCounter | undefined> {
  if (open === undefined) return undefined;
  try {
    return await open(signal);
  } catch (error) {
    signal.throwIfAborted();
    missing.push(`system calls, since ${messageOf(error).replaceAll('\n', ' ')}`);
    return undefined;
  }
}

/** Whether more passes may decide: a condition, or, without conditions, whether the sides differ. */
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
        condition.count === count && stateOf(condition, difference, usual).startsWith('not'),
    );
  const half = (high - low) / 2;
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

/** The number of requests for a pass, at most as many as before. A load that is only somewhat slower changes nothing. */
function sizeFor({ results }: Measurement, before: number): number {
  const seconds = total(results, (result) => result.seconds);
  const rate = total(results, responsesOf) / Math.max(seconds, 1e-3);
  if (rate * passSeconds * 2 >= before) return before;
  return sizes.find((size) => size <= rate * passSeconds) ?? Math.min(...sizes);
}

async function passOf(
  context: LoadContext,
  stage: Stage,
  requests: number,
  { counter, calls }: { counter: CallCounter | undefined; calls: readonly string[] },
): Promise<Pass> {
  const { planned, server } = stage;
  const { durationSeconds: _, requests: __, rate: ___, searched: ____, ...load } = planned.load;
  const counted = { ...stage, planned: { ...planned, load: { ...load, requests } } };
  const ofServer = isStarted(server) ? counter?.(context, server, calls) : undefined;
  const measured = await loadOf(context, counted, ofServer?.observer);
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
  const { voluntarySwitches: voluntary, involuntarySwitches: involuntary } = perRequest;
  const seen = ofServer?.read(ended);
  return present({
    syscalls: seen?.counts.calls,
    calls: seen?.calls.filter(({ perRequest: times }) => times > 0),
    bytes: total(results, ({ bytes }) => bytes.received) / ended,
    segments: total(results, ({ wire }) => wire?.segmentsIn ?? 0) / ended,
    switches: voluntary === undefined ? undefined : voluntary + (involuntary ?? 0),
    faults: perRequest.pageFaults,
  });
}

/** Loads a side, the only one. @param more observes it beside the usual observers */
async function loadOf(
  context: LoadContext,
  stage: Stage,
  more?: NonNullable<Parameters<typeof underLoad>[5]>[number],
): Promise<Measurement> {
  // k6 appends to its files.
  const folder = await mkdtemp(join(context.folder, 'k6-'));
  try {
    const attempt = { round: 1, onLoad: () => undefined };
    const group = { sides: [stage.planned] };
    const observers = more === undefined ? [] : [more];
    const [measured] = await underLoad(context, group, [stage], attempt, folder, observers);
    return measured as Measurement;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
