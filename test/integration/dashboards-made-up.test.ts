// The dashboards' queries, sent to a real influxd that holds made-up runs of every scenario, written as real ones are:
// what takes too long to run, or differs from run to run.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { verdictSentences } from '../../lib/report/sentences.ts';
import type { Result } from '../../lib/result/result.ts';
import type { Scenario } from '../../lib/scenario/model.ts';
import { DashboardDatabase, columnsOf } from '../dashboard-database.ts';
import { type Cell, expectedPhaseRows, expectedRows } from '../dashboard-figures.ts';
import { shippedScenarios } from '../fixtures/h2-result.ts';
import { phase } from '../fixtures/phase.ts';
import { openFileCache, result as madeUp, workers } from '../fixtures/result.ts';
import { madeUpRun, madeUpWhy, storeResult } from '../made-up-runs.ts';

const startedAtMs = Date.parse('2026-02-03T04:05:06.000Z');

let database: DashboardDatabase;
beforeAll(async () => {
  database = await DashboardDatabase.open();
}, 300_000);
afterAll(() => database?.close());

describe('a run of every scenario', () => {
  let scenarios: Scenario[];
  const results = new Map<string, Result>();

  beforeAll(async () => {
    scenarios = await shippedScenarios();
    for (const [index, scenario] of scenarios.entries())
      results.set(
        scenario.name,
        await storeResult(database.store, await madeUpRun(scenario, startedAtMs + 600_000 * index)),
      );
  });

  /** Those of other names have nothing else in their results. */
  const oneOfAKind = [
    'aa',
    'h2-stream-sweep',
    'h2o-vs-nginx',
    'h2o-vs-nginx-h2-rate',
    'http1-vs-h2-small-file',
    'nghttpd-img',
    'nginx-tuning-under-delay',
  ];

  function resultOf(scenario: string): Result {
    const result = results.get(scenario);
    if (result === undefined) throw new Error(`no run of ${scenario}`);
    return result;
  }

  it('is offered by every dashboard that can show it', async () => {
    const all = scenarios.map(({ name }) => name);
    const overHttp2 = all.filter((name) =>
      resultOf(name).variants.some(({ load }) => load.protocol === 'h2'),
    );
    const any = resultOf('aa');
    // Each ran after the one before it.
    expect(await database.choices('comparison', 'scenario', any)).toEqual(all.toReversed());
    expect(await database.choices('history', 'scenario', any)).toEqual(all.toReversed());
    expect(overHttp2.length).toBeGreaterThan(4);
    expect(await database.choices('http2', 'scenario', any)).toEqual(overHttp2.toReversed());
    // Nothing of it was measured second by second.
    expect(await database.choices('live', 'scenario', any)).toEqual([]);
  });

  it.each([
    // Nothing of these runs was measured second by second, and none is a search or a sweep.
    ['comparison', [3, 28, 29, 30]],
    ['http2', []],
    ['history', []],
  ] as const)('has an answer to every query of %s that can have one', async (name, never) => {
    const empty: (readonly number[])[] = [];
    const offered = await database.choices(name, 'scenario', resultOf('aa'));
    for (const scenario of oneOfAKind.filter((one) => offered.includes(one))) {
      // The runs of the control lie within the history's range.
      const range =
        name === 'history'
          ? { startedAt: '2026-02-01T00:00:00.000Z', endedAt: '2026-02-05T00:00:00.000Z' }
          : {};
      const panels = await database.emptyPanels(name, { ...resultOf(scenario), ...range });
      empty.push(panels.map(({ id }) => id));
    }
    const [first = [], ...others] = empty;
    expect(first.filter((id) => others.every((ids) => ids.includes(id)))).toEqual(never);
  });

  it.each([1, 4, 16, 24, 25])(
    'shows a row per variant, as written, in panel %i of Comparison',
    async (id) => {
      const linked = ['nginx-tuning-under-delay'];
      for (const name of id < 24 ? results.keys() : linked)
        expect(await database.rows('comparison', id, resultOf(name))).toEqual(
          expectedRows(columnsOf('comparison', id), resultOf(name)),
        );
    },
  );

  it('shows the parts of the CPU time of each side, in panel 40 of Comparison', async () => {
    const result = resultOf('aa');
    expect(await database.rows('comparison', 40, result)).toEqual(
      madeUpWhy(result).sides.flatMap(({ variant, calls, cpu }) =>
        cpu.map(({ kind, name: part, us: cpu_us, sdUs: cpu_sd_us }) => ({
          variant,
          part,
          calls_per_request: kind === 'call' ? calls[0]?.perRequest : null,
          cpu_us,
          cpu_sd_us,
        })),
      ),
    );
  });

  it('shows the pages of a mix, in panel 42 of Comparison', async () => {
    const result = resultOf('aa');
    const [first, second] = result.variants.map(({ name }) => name);
    expect(await database.rows('comparison', 42, result)).toMatchObject([
      { variant: first, page: '/', share: 0.75, body_bytes: 204, p50_ms: 1.5, p99_ms: 4 },
      { variant: second, page: '/', effect: '+50 % [50, 50]', verdict: 'slower' },
      { variant: first, page: 'POST /a', share: 0.25, body_bytes: 612, effect: null },
      { variant: second, page: 'POST /a', unexpected: 6, effect: null, verdict: null },
    ]);
  });

  it('says on top what the report says, and then what warns', async () => {
    for (const result of results.values()) {
      expect(await database.rows('comparison', 31, result)).toMatchObject([
        ...verdictSentences(result).map(({ kind, text }) => ({ kind, text })),
        ...result.warnings.map((text) => ({ kind: 'warning', text })),
      ]);
    }
  });

  it.each([
    ...[1, 2, 4, 5, 6, 7, 8].map((id) => ['http2', id] as const),
    ...[6, 7, 9, 10, 11, 12, 13, 20].map((id) => ['comparison', id] as const),
  ])('shows a row per variant and phase, in %s panel %i', async (name, id) => {
    const offered = await database.choices(name, 'scenario', resultOf('aa'));
    for (const scenario of oneOfAKind.filter((one) => offered.includes(one)))
      expect(await database.rows(name, id, resultOf(scenario))).toEqual(
        expectedPhaseRows(columnsOf(name, id), resultOf(scenario)),
      );
  });

  it('shows the sweep of streams beside HTTP/1.1, most streams first', async () => {
    const sweep = resultOf('h2-stream-sweep');
    const rps = (name: string) =>
      sweep.variants.find((variant) => variant.name === name)?.rps?.median;
    expect(await database.rows('http2', 10, sweep)).toEqual(
      [100, 50, 20, 10, 5, 2, 1].map((streams) => ({
        streams: String(streams),
        measured_rps: rps(`streams-${streams}`),
        http1_rps: rps('nginx-http1'),
      })),
    );
  });

  it("shows a histogram of each server, in the article's buckets", async () => {
    const rate = resultOf('h2o-vs-nginx-h2-rate');
    expect(await database.choices('http2', 'variant', rate)).toEqual(['h2o', 'nginx']);
    for (const { name, phases } of rate.variants) {
      const rows = await database.rows('http2', 3, { ...rate, variant: name });
      expect(rows).toHaveLength(10);
      expect(rows[7]).toMatchObject({ bucket: '1–2 ms' });
      expect(rows.map(({ count, share }) => [count, share])).toEqual(
        phases[0]?.buckets.map(({ count, share }) => [count, share]),
      );
    }
  });

  it('leaves out of the tables what no article published', async () => {
    for (const [name, left] of [
      ['aa', ['published']],
      ['h2o-vs-nginx', []],
    ] as const)
      expect(await database.choices('comparison', 'unpublished', resultOf(name))).toEqual(left);
  });

  it('draws a ladder in its order, and the effect of each step', async () => {
    const ladder = resultOf('h2o-vs-nginx');
    const compared = ladder.variants.slice(1);
    const { names, marks } = await database.intervals(ladder);
    const row = (name: string) => -1 - ladder.variants.findIndex((one) => one.name === name);
    expect(names).toEqual(ladder.variants.map(({ name }) => ({ variant: name, row: row(name) })));
    expect(await database.choices('comparison', 'compared', ladder)).toEqual(
      compared.map(({ name }) => name),
    );
    for (const { name } of compared) {
      const comparison =
        ladder.comparisons.find(({ variant }) => variant === name) ?? expect.fail();
      const { ratio, ci95, publishedRatio } = comparison;
      // The line of no difference, the interval's ends, and both ratios; the last column is the row.
      const own = marks.filter(({ variant }) => variant === name);
      expect(own.map((mark) => [mark['ratio'], Object.values(mark).at(-1)])).toEqual(
        [1, ...ci95, ratio, publishedRatio].map((at) => [at, row(name)]),
      );
      const [ratios = [], intervals = []] = await database.panel('comparison', 23, {
        ...ladder,
        variant: name,
      });
      const rows = ratios.flatMap((answer) => answer.rows);
      expect(rows.map(({ ratio }) => ratio)).toEqual(comparison.roundRatios);
      expect(rows.at(-1)).toMatchObject({ ratio_so_far: ratio });
      expect(intervals.flatMap((answer) => answer.rows)).toEqual([
        { time: rows.at(-1)?.['time'], ci_low: ci95[0], ci_high: ci95[1] },
      ]);
    }
  });

  it('shows the traffic of links per round', async () => {
    const result = resultOf('nginx-tuning-queue-limit');
    const rows = await database.rows('comparison', 26, result);
    const packets = result.variants.flatMap(({ name: variant, rounds }) =>
      rounds.flatMap(({ round, phases }) =>
        phases.map(({ network, responses }) => ({
          variant,
          round: String(round),
          packets_to_server_per_request: expect.closeTo(
            (network?.toServer.packets ?? NaN) / responses['2xx'],
            3,
          ),
          delay: expect.stringMatching(/held/),
        })),
      ),
    );
    expect(rows).toHaveLength(packets.length);
    expect(rows).toEqual(
      expect.arrayContaining(packets.map((one) => expect.objectContaining(one))),
    );
    const numbers = rows.map(({ round }) => Number(round));
    expect(numbers).toEqual(numbers.toSorted((a, b) => a - b));
  });

  it('shows the noise floor as a band, from the control run on', async () => {
    const control = resultOf('aa');
    const range = {
      ...resultOf('nginx-tcp-nopush'),
      startedAt: '2026-02-03T00:00:00.000Z',
      endedAt: '2026-02-03T09:00:00.000Z',
    };
    const [ratios = [], high = [], low = []] = await database.panel('history', 1, range);
    expect(ratios.map(({ rows }) => rows.length)).toEqual([1]);
    const ends = (answers: typeof high): Cell[] =>
      (answers[0]?.rows ?? []).map(({ last }) => last ?? null);
    const { ratio = NaN } = control.noiseFloor ?? {};
    // By the hour: the run is of 04:05.
    expect(ends(high)).toEqual([null, null, null, null, ratio, ratio, ratio, ratio, ratio, ratio]);
    expect(ends(low).at(-1)).toBe(1 / ratio);
  });
});

describe('what k6 made second by second', () => {
  const startMs = Date.parse('2026-02-05T06:07:08.000Z');
  const choice = {
    scenario: 'seconds',
    run: 'seconds',
    startedAt: new Date(startMs).toISOString(),
    endedAt: new Date(startMs + 60_000).toISOString(),
  };
  const label =
    'run=seconds,scenario=seconds,round=1,phase=1,server=nginx,protocol=http/1.1,instance=x';

  /** A sample as the engine makes it: its counts, and the time under load that it covers. */
  function sample(
    variant: string,
    atSeconds: number,
    seconds: number,
    { good, bad, reset, received }: Record<'good' | 'bad' | 'reset' | 'received', number>,
    generator?: number,
  ) {
    const at = BigInt(startMs + atSeconds * 1000) * 1_000_000n;
    const tags = `variant=${variant},${label}${generator === undefined ? '' : `,instance_id=${generator}`}`;
    return [
      `loadgen_connections,${tags} value=50 ${at}`,
      `loadgen_seconds,${tags} value=${seconds} ${at}`,
      `loadgen_requests,${tags} value=${good + bad + reset} ${at}`,
      `loadgen_responses,class=2xx,${tags} value=${good} ${at}`,
      `loadgen_responses,class=5xx,${tags} value=${bad} ${at}`,
      `loadgen_errors,kind=read,${tags} value=${reset} ${at}`,
      `loadgen_bytes,direction=received,part=body,${tags} value=${received} ${at}`,
    ];
  }

  beforeAll(() =>
    database.store.write([
      // Three seconds and a half of an even load.
      ...[1, 2, 3].flatMap((at) =>
        sample('even', at, 1, { good: 90_000, bad: 10_000, reset: 5000, received: 1e9 }),
      ),
      ...sample('even', 3.5, 0.5, { good: 45_000, bad: 5000, reset: 2500, received: 5e8 }),
      // A load of a quarter of a second.
      ...sample('short', 10.25, 0.25, { good: 25_000, bad: 0, reset: 0, received: 2.5e8 }),
      // Two sides that take turns within the same second.
      ...sample('one', 21, 0.6, { good: 60_000, bad: 0, reset: 0, received: 6e8 }),
      ...sample('other', 21, 0.4, { good: 20_000, bad: 0, reset: 0, received: 2e8 }),
      // Two generators that make a load together, each with half of it.
      ...[1, 2].flatMap((generator) =>
        sample('halves', 31, 1, { good: 30_000, bad: 0, reset: 0, received: 3e8 }, generator),
      ),
    ]),
  );

  it.each([
    ['live', 1],
    ['comparison', 3],
  ] as const)('is the rate that was measured, in %s panel %i', async (name, id) => {
    const [lines = []] = await database.panel(name, id, choice);
    expect(
      Object.fromEntries(
        lines.map(({ tags, rows }) => [tags?.['variant'], rows.map(({ value }) => value)]),
      ),
    ).toEqual({
      even: [100_000, 100_000, 100_000],
      short: [100_000],
      one: [100_000],
      other: [50_000],
      halves: [60_000],
    });
  });

  it('is per second under load, whatever is counted', async () => {
    const [errors = [], answers = []] = await database.panel('live', 5, choice);
    const figures = ([line]: typeof errors): Cell[] =>
      (line?.rows ?? []).map(({ value }) => value ?? null);
    expect([figures(errors), figures(answers)]).toEqual([
      [5000, 5000, 5000, 0, 0, 0],
      [10_000, 10_000, 10_000, 0, 0, 0],
    ]);
    const [connections = []] = await database.panel('live', 6, choice);
    expect(
      connections.find(({ tags }) => tags?.['variant'] === 'halves')?.rows.map(({ sum }) => sum),
    ).toEqual([100]);
    const [bytes = []] = await database.panel('live', 7, choice);
    expect(figures(bytes)).toEqual([1e9, 1e9, 1e9, 1e9, 8e8, 6e8]);
  });
});

describe('runs of one scenario', () => {
  const runAt = (startedAt: string, version: string): Result => {
    const at = { startedAt, endedAt: startedAt };
    const rounds = [{ round: 1, phases: [phase({ requests: 40_005, startedAt })] }];
    return madeUp(
      [workers, openFileCache].map((variant) => ({
        ...variant,
        server: { name: 'nginx', version, workers: 1, config: ['base'], redirections: [] },
        rounds,
      })),
      { ...at, run: `${startedAt.slice(0, 10)}-made-up`, scenario: 'made-up' },
    );
  };
  const older = runAt('2026-01-31T23:59:59.000Z', '1.22.1');
  const newer = runAt('2026-02-01T00:00:00.000Z', '1.30.0');

  beforeAll(async () => {
    for (const result of [newer, older]) await storeResult(database.store, result);
  });

  it.each([
    ['comparison', 5],
    ['history', 7],
  ] as const)('are offered and listed in %s, newest first', async (name, list) => {
    const both = [newer.run, older.run];
    expect(await database.choices(name, 'run', newer)).toEqual(both);
    expect((await database.rows(name, list, newer)).map(({ run }) => run)).toEqual(both);
  });

  it.each([
    [1, 'ratio'],
    [2, 'measured_rps'],
    [3, 'server_cpu_micros_per_request'],
    [4, 'p99_ms'],
  ] as const)(
    'are points of a line per variant and version in panel %i of History',
    async (id, of) => {
      const [answers = []] = await database.panel('history', id, newer);
      const shown = answers.flatMap(({ tags, rows }) =>
        rows.map((row) => [
          tags?.['variant'],
          tags?.['version'],
          Math.floor(Number(row['time'])),
          row[of],
        ]),
      );
      const expected = [newer, older].flatMap((result) =>
        expectedRows(['variant', 'version', of], result).map((row) => [
          row['variant'],
          row['version'],
          Date.parse(result.startedAt),
          row[of],
        ]),
      );
      expect(shown).toHaveLength(id === 1 ? 2 : 4);
      expect(shown.toSorted()).toEqual(
        expected.filter(([, , , value]) => value !== null).toSorted(),
      );
    },
  );
});
