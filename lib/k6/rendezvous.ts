// Lets several k6 of a cluster begin together: each says in the database that it is ready, and waits for the others.
import { sleep } from 'k6';
import encoding from 'k6/encoding';
import exec from 'k6/execution';
import http, { type Params, type Response } from 'k6/http';
import { line } from '../influx/line-protocol.ts';
import { leftPoint, ofLoad, type LoadName } from './left-results.ts';
import type { LoadPlan, Meeting, PhaseOutcome } from './load-plan.ts';

declare const __ENV: Record<string, string | undefined>;

const measurement = 'bench_ready';

/** Time from when the last k6 is ready until all begin, so that each has seen by then that the last is ready. */
const aheadMs = 3000;
const pollSeconds = 0.2;
/** Each k6 waits this much longer, so that none gives up on another that was ready in time. */
const graceMs = 2000;

/**
 * Says in the database that this k6 is ready, and waits for all others. The database's clock decides when they begin, since the clocks of
 * machines differ. Its own requests are in k6's http_req_* metrics, with the tag name=bench_ready.
 * @param begins as from segmentBegins
 * @returns when all begin, in milliseconds since 1970 by this machine's clock, and a function that leaves the outcome of a phase (from 1)
 * @throws Error if the database fails, the run was made before, or a k6 is not ready in time
 */
export function meet(
  meeting: Meeting,
  { tags, phases, instances = 1 }: LoadPlan,
  begins: readonly string[],
) {
  const [begin = ''] = (exec.test.options.executionSegment ?? '0:1').split(':');
  const instance = begins.indexOf(begin) + 1;
  const { run = '', variant = '', round = '' } = { ...tags, ...phases[0]?.sides[0]?.tags };
  const load: LoadName = { run, variant, round };
  const withinMs = 1000 * meeting.withinSeconds;
  const deadlineMs = Date.now() + withinMs + graceMs;
  const mine = String(instance);
  if (readyIn(meeting, load).has(mine))
    throw new Error(
      `${measurement} has generator ${mine} of run ${load.run}, variant ${load.variant} already: print the manifests again for another run`,
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
    const readyMs = ready.get(mine);
    const inTime = (at = Infinity) => at - Math.min(...ready.values()) <= withinMs;
    const missing = begins
      .map((_, index) => String(index + 1))
      .filter((generator) => !inTime(ready.get(generator)));
    if (readyMs !== undefined && missing.length === 0)
      return {
        beginsAtMs: Math.round(Math.max(...ready.values()) + aheadMs - readyMs + writtenMs),
        leave(phase: number, outcome: PhaseOutcome) {
          requireOk(meeting, post(leftPoint(load, instance, phase, outcome, writtenMs - readyMs)));
        },
      };
    if (ready.size >= instances || Date.now() > deadlineMs)
      throw new Error(
        `generator ${missing.join(', ')} of ${instances} ${missing.length === 1 ? 'was' : 'were'} not ready within ${meeting.withinSeconds} s: find out why, and print the manifests again`,
      );
    sleep(pollSeconds);
  }
}

/** Returns the times at which instances became ready, in milliseconds since 1970 by the database's clock. */
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
    (result?.series ?? []).map(({ tags, values }) => [tags.instance, values[0]?.[0] ?? NaN]),
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
