// The k6 script: runs the phases of a load plan or a search, and prints their outcomes. It is compiled to script.js, which is kept
// with the results and can be run by hand, as its first lines say.
import { sleep } from 'k6';
import encoding from 'k6/encoding';
import exec from 'k6/execution';
import http, { type Params, type Response } from 'k6/http';
import type { PageFigures } from '../result/result.ts';
import type { Options } from 'k6/options';
import loadgen from 'k6/x/loadgen';
import { responsesNeeded } from '../analysis/latency.ts';
import { line } from '../store/line-protocol.ts';
import { leftPoint, ofLoad, type LoadName } from './left-results.ts';
import {
  loadOverLine,
  loadPlanVariable,
  phaseBeginsLine,
  phaseLinePrefix,
  type AlternateOptions,
  type CallOptions,
  type LoadPlan,
  type Meeting,
  type PhaseOutcome,
  type SearchPlan,
  type SideOptions,
} from './load-plan.ts';
import { mostSteps, searchSides } from './rate-search.ts';

declare const __ENV: Record<string, string | undefined>;

/** A step plans this many times the answers that its percentile needs, since some may be missing. */
const enough = 1.5;

const json = __ENV[loadPlanVariable];
if (json === undefined)
  throw new Error(
    `set ${loadPlanVariable} to the load plan, e.g. ${loadPlanVariable}="$(cat load.json)"`,
  );
const plan = JSON.parse(json) as LoadPlan;
const { instances = 1 } = plan;

/** The plan's phases with their requests. k6 opens files only now. */
const phases = plan.phases.map(withMix);

export const options: Options = {
  scenarios: {
    // A VU for each k6. k6-operator's tags on the command line replace those at the end, so the load's are here too.
    [plan.scenario]: {
      executor: 'per-vu-iterations',
      vus: instances,
      iterations: 1,
      maxDuration: `${plan.maxDurationSeconds}s`,
      gracefulStop: '0s',
      tags: { ...plan.tags },
    },
  },
  tags: { ...plan.tags },
};

export default function runPlan(): void {
  // A wrong segment would leave some of the load out, or make it twice.
  const segments = segmentBegins().length;
  if (segments !== instances)
    throw new Error(
      `the load is divided among ${instances} k6, and the execution segments of this one among ${segments}: give --execution-segment and --execution-segment-sequence for ${instances}`,
    );
  if (plan.search === undefined) runPhases();
  else searchRates(plan.search, phases[0] as AlternateOptions);
  console.log(loadOverLine);
}

function runPhases(): void {
  const pauseSeconds = plan.pauseSeconds ?? 0;
  const met = orAbort(() =>
    plan.meetAt === undefined ? undefined : meet(plan.meetAt, plan, segmentBegins()),
  );
  const startAtMs = met?.beginsAtMs ?? plan.startAtMs;
  for (const [index, phase] of phases.entries()) {
    if (index > 0 && pauseSeconds > 0) sleep(pauseSeconds);
    console.log(phaseBeginsLine);
    const call: CallOptions = {
      segmented: instances > 1,
      ...(index === 0 && startAtMs !== undefined ? { startAt: startAtMs } : {}),
    };
    const outcome: PhaseOutcome = { results: loadgen.alternate({ ...phase, ...call }) };
    if (plan.aloneSeconds !== undefined && instances === 1)
      addAlone(outcome, phase, plan.aloneSeconds);
    tell(outcome);
    orAbort(() => met?.leave(index + 1, outcome));
  }
}

function addAlone(outcome: PhaseOutcome, phase: AlternateOptions, seconds: number): void {
  const sides = phase.sides.map(
    ({
      rate: _,
      arrivals: __,
      requests: ___,
      buckets: ____,
      together: _____,
      mix,
      ...side
    }): SideOptions => ({
      ...side,
      ...(typeof mix === 'string' ? { mix: mix.replace(/,"atMs":\[[^\]]*\]/g, '') } : {}),
      connections: 1,
      streams: 1,
      threads: 1,
      warmup: '100ms',
      duration: `${seconds}s`,
    }),
  );
  const alone = loadgen.alternate({ ...phase, sides, samples: false });
  for (const [side, { pages }] of outcome.results.entries())
    for (const [index, page] of pages.entries()) {
      const { responses, midMeanMs } = alone[side]?.pages[index] as PageFigures;
      page.alone = { responses, ms: midMeanMs };
    }
}

function orAbort<T>(work: () => T): T {
  try {
    return work();
  } catch (error) {
    // k6's exit code is 0 after an exception.
    exec.test.abort((error as Error).message);
    throw error;
  }
}

/** The begins of the execution segments of all k6, in their order. */
function segmentBegins(): string[] {
  return (exec.test.options.executionSegmentSequence ?? '0,1').split(',').slice(0, -1);
}

function searchRates(
  { within, from, expected, stepSeconds }: SearchPlan,
  phase: AlternateOptions,
): void {
  searchSides(
    from,
    within,
    (rates, step) => {
      const seconds = rates.map((rate) =>
        Math.max(stepSeconds, (enough * responsesNeeded[within.metric]) / rate),
      );
      const sides = phase.sides.map((side, index): SideOptions => ({
        ...side,
        rate: rates[index] as number,
        duration: `${Math.ceil(1000 * (seconds[index] as number))}ms`,
        tags: { ...side.tags, phase: String(step) },
      }));
      console.log(phaseBeginsLine);
      const results = loadgen.alternate({
        ...phase,
        sides,
        seed: mostSteps * ((phase.seed ?? 1) - 1) + step,
      });
      return results.map((result, side) => ({ ...result, ...expected[side] }));
    },
    tell,
  );
}

function withMix(phase: AlternateOptions): AlternateOptions {
  const mixOf = (file: string | null | undefined): Pick<SideOptions, 'mix'> =>
    typeof file === 'string' ? { mix: open(`./${file}`) } : {};
  return {
    ...phase,
    // The tables are made of loadgen_*.
    k6Metrics: false,
    sides: phase.sides.map((side, index) => ({ ...side, ...mixOf(plan.mixFiles?.[index]) })),
  };
}

function tell(outcome: PhaseOutcome): void {
  console.log(phaseLinePrefix + JSON.stringify(outcome));
}

const measurement = 'bench_ready';

/** From when the last k6 is ready until all begin, so that each has seen it by then. */
const aheadMs = 3000;
const pollSeconds = 0.2;
/** Each k6 waits so much longer, so that none gives up on another that was ready in time. */
const graceMs = 2000;

/**
 * Says in the database that this k6 is ready, and waits for all others. Its clock decides when they begin, since machines' clocks
 * differ. Its own requests are in k6's http_req_* metrics, with the tag name=bench_ready.
 * @param begins as from segmentBegins
 * @returns when all begin, milliseconds since 1970 by this machine's clock, and how to leave the outcome of a phase (from 1)
 * @throws Error if the database fails, the run was made before, or a k6 is not ready in time
 */
function meet(
  meeting: Meeting,
  { tags, phases, instances = 1 }: LoadPlan,
  begins: readonly string[],
) {
  const instance =
    begins.indexOf((exec.test.options.executionSegment ?? '0:1').split(':')[0] as string) + 1;
  const all = { ...tags, ...phases[0]?.sides[0]?.tags };
  const load: LoadName = {
    run: all['run'] as string,
    variant: all['variant'] as string,
    round: all['round'] as string,
  };
  const withinMs = 1000 * meeting.withinSeconds;
  const deadlineMs = Date.now() + withinMs + graceMs;
  const mine = String(instance);
  if (readyIn(meeting, load).has(mine))
    throw new Error(
      `${measurement} has generator ${mine} of run ${load.run}, variant ${load.variant} already: print the manifests anew for another run`,
    );
  const post = (point: string): Response =>
    http.post(`${meeting.url}/write?db=${encodeURIComponent(meeting.database)}`, point, params());
  const write = (ready: number) =>
    requireOk(meeting, post(line(measurement, { ...load, instance: mine }, { ready })));
  // The first write to a series takes longer than a round trip.
  write(0);
  const beforeMs = Date.now();
  write(1);
  const writtenMs = (beforeMs + Date.now()) / 2;
  for (;;) {
    const ready = readyIn(meeting, load);
    const own = ready.get(mine);
    const inTime = (at = Infinity) => at - Math.min(...ready.values()) <= withinMs;
    const missing = begins
      .map((_, index) => String(index + 1))
      .filter((one) => !inTime(ready.get(one)));
    if (own !== undefined && missing.length === 0)
      return {
        beginsAtMs: Math.round(Math.max(...ready.values()) + aheadMs - own + writtenMs),
        leave(phase: number, outcome: PhaseOutcome) {
          requireOk(meeting, post(leftPoint(load, instance, phase, outcome, writtenMs - own)));
        },
      };
    if (ready.size >= instances || Date.now() > deadlineMs)
      throw new Error(
        `generator ${missing.join(', ')} of ${instances} ${missing.length === 1 ? 'was' : 'were'} not ready within ${meeting.withinSeconds} s: see why, and print the manifests anew`,
      );
    sleep(pollSeconds);
  }
}

/** The times at which instances became ready, by the database's clock, in milliseconds since 1970. */
function readyIn(meeting: Meeting, load: LoadName): Map<string, number> {
  const response = http.post(
    `${meeting.url}/query?epoch=ms`,
    {
      db: meeting.database,
      q: `SELECT "ready" FROM ${measurement} WHERE ${ofLoad(load)} AND "ready" = 1 GROUP BY "instance"`,
    },
    params(),
  );
  requireOk(meeting, response);
  const { results: [result] = [] } = response.json() as unknown as {
    results?: {
      error?: string;
      series?: { tags: { instance: string }; values: [number, number][] }[];
    }[];
  };
  if (result?.error !== undefined) throw new Error(`InfluxDB at ${meeting.url}: ${result.error}`);
  return new Map(
    (result?.series ?? []).map(({ tags, values }) => [tags.instance, values[0]?.[0] as number]),
  );
}

function requireOk({ url }: Meeting, { status, error, body }: Response): void {
  if (status >= 200 && status < 300) return;
  throw new Error(
    `InfluxDB at ${url}, where generators meet, ${status === 0 ? `does not answer: ${error}` : `says ${status}: ${String(body).trim().slice(0, 200)}`}`,
  );
}

function params(): Params {
  const { K6_INFLUXDB_USERNAME: user = '', K6_INFLUXDB_PASSWORD: password } = __ENV;
  const headers = password
    ? { Authorization: `Basic ${encoding.b64encode(`${user}:${password}`)}` }
    : {};
  return { headers, redirects: 0, timeout: '5s', tags: { name: measurement } };
}
