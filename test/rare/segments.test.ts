// One load of several k6, started and released as k6-operator does: together it is that of one.
import { mkdtemp, writeFile } from 'node:fs/promises';
import { beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import type { LoadOptions, LoadPlan } from '../../lib/k6/load-plan.ts';
import {
  dividedPlan,
  instanceArguments,
  mergeInstances,
  type InstanceEnd,
} from '../../lib/runner/generators.ts';
import { Disturbance } from '../../lib/runner/plan.ts';
import { startK6, type RunningK6, compileScript } from '../../lib/runner/k6.ts';
import type { LoadResult } from '../../lib/result/result.ts';
import { nginx } from '../../lib/scenario/index.ts';
import { freePort } from '../../lib/servers/ports.ts';
import { ensureTools } from '../../lib/setup/tools.ts';
import { recordedLines } from '../../lib/store/integrity.ts';
import { parsed } from '../fixtures/points.ts';
import { release } from '../fixtures/pods.ts';
import { useServers } from '../fixtures/servers.ts';
import path from 'node:path';

const servers = useServers();
let k6: string;
let script: string;
beforeAll(async () => {
  ({ k6 } = await ensureTools(['k6']));
  script = path.join(servers.folder, 'script.js');
  await compileScript(script);
}, 300_000);

/** So much later they begin: all of them have to be up by then. Loads that begin so far apart do not keep each other from beginning in time. */
const aheadMs = 8000;
const apartMs = 2500;

const planOf = (load: LoadOptions): LoadPlan => ({
  scenario: 'segments',
  tags: { run: 'one', round: '1' },
  maxDurationSeconds: 30,
  phases: [{ sides: [load], seed: 3 }],
});

interface Instances {
  plan: LoadPlan;
  all: readonly RunningK6[];
  ends(): Promise<InstanceEnd[]>;
}

/** A k6 that gets these words besides. They come last, and hold where they say something else. */
async function startOne(words: readonly string[], loadPlan: LoadPlan) {
  const folder = await mkdtemp(path.join(servers.folder, 'k6-'));
  const binary = path.join(folder, 'k6');
  await writeFile(
    binary,
    `#!/bin/sh\nexec '${k6}' "$@" ${words.map((word) => `'${word}'`).join(' ')}\n`,
    { mode: 0o755 },
  );
  return startK6({ binary, script, folder, cpus: [1], loadPlan, output: null });
}

/** @param more of an instance, from 1 */
async function start(
  load: LoadOptions,
  instances: number,
  more: (instance: number) => readonly string[] = () => [],
  beginsInMs = aheadMs,
): Promise<Instances> {
  const plan = dividedPlan(planOf(load), instances, Date.now() + beginsInMs);
  const all = await Promise.all(
    Array.from({ length: instances }, async (_, index) => {
      const words = [...instanceArguments(index + 1, instances), ...more(index + 1)];
      const running = await startOne(words, plan);
      onTestFinished(() => running.stop(0));
      return running;
    }),
  );
  return {
    plan,
    all,
    ends: () =>
      Promise.all(
        all.map((one) =>
          one.results().then(
            (phases): InstanceEnd => ({ phases }),
            (error: Error) => ({ failure: error.message }),
          ),
        ),
      ),
  };
}

const resultsOf = (ends: readonly InstanceEnd[]) =>
  ends.map((end) => {
    if ('failure' in end) throw new Error(end.failure);
    return end.phases[0]?.results[0] as LoadResult;
  });

interface Made {
  each: LoadResult[];
  together: LoadResult;
}

/** The result of each, and the merged one. */
async function made({ plan, ends }: Instances): Promise<Made> {
  const all = await ends();
  return { each: resultsOf(all), together: mergeInstances(all, plan)[0]?.results[0] as LoadResult };
}

const mostTries = 5;

/** Repeats a load like a run does if this machine was too busy for all instances to begin together. */
async function undisturbed<T>(load: () => Promise<T>) {
  for (let tries = 1; ; tries++) {
    try {
      return await load();
    } catch (error) {
      if (!(error instanceof Disturbance) || tries === mostTries) throw error;
    }
  }
}

const valuesIn = ({ histogram }: LoadResult['latencyMs']) =>
  histogram.reduce((sum, [, count]) => sum + count, 0);

/** Requests in the samples, by run, round and instance. */
async function storedIn(recordFile: string) {
  const counts: Record<string, number> = {};
  for await (const line of recordedLines(recordFile)) {
    if (!line.startsWith('loadgen_requests,')) continue;
    const { tags, fields } = parsed(line);
    const name = [tags['run'], tags['round'], tags['instance_id']].join(' ');
    counts[name] = (counts[name] ?? 0) + Number(fields['value']);
  }
  return counts;
}

/** Those of a rate that were due. */
const due = ({ requests, inFlight, unsent }: LoadResult) => requests + inFlight + unsent;

const isUp = (port: number) =>
  vi.waitFor(
    async () => expect((await fetch(`http://127.0.0.1:${port}/v1/status`)).status).toBe(200),
    { timeout: aheadMs },
  );

describe('a load of several k6', () => {
  test('with a count makes what one makes', async () => {
    const { origin } = await servers.start(nginx(['base'], { workers: 1 }));
    // None of them has more than the 100 requests after which nginx closes a connection.
    const load = { url: `${origin}/`, connections: 31, requests: 2003, buckets: ['1s'] };
    const [one, two, three] = await Promise.all([
      undisturbed(() => start(load, 1).then(made)),
      undisturbed(() => start(load, 2).then(made)),
      undisturbed(async () => {
        const ports = await Promise.all([1, 2, 3].map(() => freePort()));
        const started = await start(load, 3, (instance) => [
          `--address=127.0.0.1:${ports[instance - 1]}`,
          '--paused',
          '--tag',
          'testrun_name=segments',
        ]);
        // Each waits for the others, although they are released one after the other.
        for (const port of ports) await isUp(port);
        for (const port of ports) await release({ port });
        const stored = started.all.map(({ files }) => files.record);
        return { ...(await made(started)), stored: await Promise.all(stored.map(storedIn)) };
      }),
    ]);
    expect(one.each).toEqual([one.together]);
    expect(one.together).toMatchObject({ requests: 2003, responses: { '2xx': 2003 } });
    expect(two.each.map(({ requests }) => requests)).toEqual([1002, 1001]);
    expect(three.each.map(({ requests }) => requests)).toEqual([668, 668, 667]);
    expect(three.each.map(({ connectMs }) => valuesIn(connectMs))).toEqual([11, 10, 10]);
    // Each instance's samples have its tag, and the run's.
    expect(three.stored).toEqual(
      [668, 668, 667].map((count, index) => ({ [`one 1 ${index + 1}`]: count })),
    );
    for (const { together } of [two, three]) {
      const { requests, responses, errors, bytes, buckets } = one.together;
      expect(together).toMatchObject({ requests, responses, errors, bytes, buckets });
      expect([valuesIn(together.latencyMs), valuesIn(together.connectMs)]).toEqual([2003, 31]);
    }
  });

  test('with a rate has it together, and each its part', async () => {
    const { origin } = await servers.start(nginx(['base'], { workers: 1 }));
    const load = { url: `${origin}/`, connections: 6, duration: '2s', rate: 300 };
    const loads: [LoadOptions, number][] = [
      [load, 2],
      [{ ...load, threads: 6 }, 3],
      [{ ...load, arrivals: 'poisson' }, 1],
      [{ ...load, arrivals: 'poisson' }, 3],
    ];
    const [two, three, one, several] = await Promise.all(
      loads.map(([options, instances], place) =>
        undisturbed(() =>
          start(options, instances, undefined, aheadMs + place * apartMs).then(made),
        ),
      ),
    );
    expect(two?.each.map(due)).toEqual([300, 300]);
    expect(three?.each.map(due)).toEqual([200, 200, 200]);
    const { responses, errors, seconds, rps } = three?.together as LoadResult;
    expect([errors.total, rps]).toEqual([0, responses['2xx'] / seconds]);
    // Whose arrivals are drawn has the same ones.
    expect(due(several?.together as LoadResult)).toBe(due(one?.together as LoadResult));
  });

  test('does not begin where one counts on another number, or was started too late', async () => {
    const plan = {
      ...planOf({ url: 'http://127.0.0.1:9/', connections: 3, requests: 3 }),
      instances: 3,
    };
    const failureOf = async (more: readonly string[], loadPlan: LoadPlan) => {
      return (await startOne(more, loadPlan)).results().then(
        () => 'none',
        (error: Error) => error.message,
      );
    };
    expect(
      await Promise.all([
        failureOf(instanceArguments(1, 2), plan),
        failureOf(instanceArguments(1, 3), { ...plan, startAtMs: Date.now() - 1000 }),
      ]),
    ).toEqual([
      expect.stringContaining(
        'the load is divided among 3 k6, and the execution segments of this one among 2: give --execution-segment and --execution-segment-sequence for 3',
      ),
      expect.stringMatching(
        /loadgen\.alternate: startAt: began \d[\d.]* s too late: set it further ahead$/,
      ),
    ]);
  });
});
