// The dashboards' queries against a real influxd with synthetic runs of every scenario, written like real ones. Real runs would
// take too long and vary from run to run.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { additions } from '../../lib/cli/main.ts';
import { decideClaim } from '../../lib/report/claims.ts';
import { madeBy, ownFigures } from '../../lib/report/own-figures.ts';
import { verdictSentences } from '../../lib/report/sentences.ts';
import type { Result } from '../../lib/result/result.ts';
import type { Scenario } from '../../lib/scenario/model.ts';
import { DashboardDatabase, columnsOf } from '../dashboard-database.ts';
import { type Cell, expectedPhaseRows, expectedRows } from '../dashboard-figures.ts';
import { shippedScenario, shippedScenarios } from '../fixtures/h2-result.ts';
import { phase } from '../fixtures/phase.ts';
import { openFileCache, result as madeUp, workers } from '../fixtures/result.ts';
import { madeUpRun, madeUpWhy, storeResult } from '../made-up-runs.ts';

const articleIds = ['000', '001', '002', '003', '004'];
const claimsTitle = 'What it claims, and whether that holds here';
const barsTitle = "${scenario}: requests/s, of the first row's";

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

  /** A selection of scenarios; the results of the others have the same kinds of data. */
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

  it('is in the pickers of every dashboard that can show it', async () => {
    const newestFirst = scenarios.map(({ name }) => name).toReversed();
    const articles = new Map(scenarios.map(({ name, article }) => [name, article?.id]));
    const any = resultOf('aa');
    for (const board of ['comparison', 'history'] as const) {
      const offered = (kind: string) => database.choices(board, 'scenario', { ...any, kind });
      expect(await offered('.*')).toEqual(newestFirst);
      expect(await offered('.+')).toEqual(newestFirst.filter((name) => articles.get(name)));
      expect(await offered('()')).toEqual(newestFirst.filter((name) => !articles.get(name)));
    }
    expect(await database.choices('articles', 'article', any)).toEqual(articleIds);
    for (const id of articleIds) {
      const ofArticle = newestFirst.filter((name) => articles.get(name) === id);
      const [first = ''] = ofArticle;
      expect(await database.choices('articles', 'scenario', resultOf(first))).toEqual(ofArticle);
      // A link to Articles must show the article of the selected scenario.
      expect(await database.choices('comparison', 'article', resultOf(first))).toEqual([id]);
    }
    // Synthetic runs have no samples per second.
    expect(await database.choices('live', 'scenario', any)).toEqual([]);
  });

  it.each([
    // Synthetic runs have no samples per second.
    ['comparison', ['Responses/s over time']],
    ['articles', []],
    ['history', []],
  ] as const)('returns data for every query of %s that can have data', async (name, never) => {
    const empty: (readonly string[])[] = [];
    const offered = oneOfAKind.filter(
      (scenario) => name !== 'articles' || resultOf(scenario).article !== undefined,
    );
    for (const scenario of offered) {
      // The range of History includes the control runs.
      const range =
        name === 'history'
          ? { startedAt: '2026-02-01T00:00:00.000Z', endedAt: '2026-02-05T00:00:00.000Z' }
          : {};
      empty.push(await database.emptyPanels(name, { ...resultOf(scenario), ...range }));
    }
    const [first = [], ...others] = empty;
    expect(first.filter((title) => others.every((titles) => titles.includes(title)))).toEqual(
      never,
    );
  });

  it.each([
    ['comparison', '${scenario}: verdicts and figures'],
    ['comparison', 'Behind the figures'],
    ['comparison', 'CPU per request, and how sure the verdicts are'],
    ['comparison', 'What went over the link'],
    ['comparison', 'Attempts that failed, by cause'],
    ['articles', '${scenario}: published beside measured'],
    ['articles', '${scenario}: what else the article prints of a row'],
  ] as const)('shows a row per variant with the stored figures in %s, %s', async (name, title) => {
    const overLinks = ['What went over the link', 'Attempts that failed, by cause'];
    const linked = ['nginx-tuning-under-delay'];
    for (const scenario of overLinks.includes(title) ? linked : results.keys())
      expect(await database.rows(name, title, resultOf(scenario))).toEqual(
        expectedRows(columnsOf(name, title), resultOf(scenario)),
      );
  });

  it('shows verdict and effect of each comparison at the top', async () => {
    const result = resultOf('h2o-vs-nginx');
    const shown = expectedRows(['variant', 'baseline', 'verdict', 'effect'], result).filter(
      ({ baseline }) => baseline !== null,
    );
    // Variants with published figures only have no verdict.
    const withSpdy = resultOf('http1-vs-h2-small-file');
    const names = (of: Result['variants']) => of.map(({ name }) => name);
    expect(names(withSpdy.variants.filter(({ server }) => server === null))).not.toEqual([]);
    expect(await database.choices('comparison', 'compared', withSpdy)).toEqual(
      names(withSpdy.variants.slice(1).filter(({ server }) => server !== null)),
    );
    expect(shown.length).toBeGreaterThan(2);
    for (const { variant, verdict, effect } of shown)
      expect(
        await database.rows('comparison', '${compared:csv}', {
          ...result,
          variant: String(variant),
        }),
      ).toEqual([{ verdict, effect }]);
  });

  it('shows every claim of an article, with the same decision as on the page', async () => {
    for (const id of articleIds) {
      const { article = expect.fail(id) } =
        scenarios.find((scenario) => scenario.article?.id === id) ?? expect.fail(id);
      const { claims = [], scenarios: names = [] } = article;
      const rows = await database.rows('articles', claimsTitle, resultOf(names[0] ?? ''));
      // Claims on variants that run by name only are not written, so that the decision of another run stays.
      const isRun = (claim: (typeof claims)[number]) =>
        !decideClaim(claim, article, results).seen.includes('is run by its name only');
      expect(rows).toEqual(
        claims.filter(isRun).map((claim) => {
          const scenario = claim.rests[0]?.scenario ?? '';
          const { text, figures } = claim;
          const { run } = resultOf(scenario);
          const makes = madeBy(ownFigures(claim, article, results)) || null;
          return { text, figures, makes, ...decideClaim(claim, article, results), scenario, run };
        }),
      );
      expect(rows.some(({ state }) => state !== 'not decided')).toBe(true);
    }
  });

  it('shows the machines of an article and its newest run, with links to the pages', async () => {
    const result = resultOf('nginx-tuning-under-delay');
    const [places] = await database.rows('articles', 'Article ${article}', result);
    expect(places).toMatchObject({
      article_title: 'nginx tuning under delay (2017-01-14)',
      article_machine: expect.stringContaining('two EC2 t2.micro'),
      machine: expect.stringContaining(result.environment.cpuModel),
    });
    const runs = await database.rows('articles', 'Runs of article ${article}', result);
    const names = scenarios
      .filter((scenario) => scenario.article?.id === '004')
      .map(({ name }) => name);
    const newestFirst = names
      .map((name) => resultOf(name).run)
      .sort()
      .reverse();
    expect(names.length).toBeGreaterThan(1);
    expect(runs.map(({ run, report }) => [run, report])).toEqual(
      newestFirst.map((run) => [run, `/results/${run}/report.html`]),
    );
  });

  it("draws published and measured figures as multiples of the article's first row", async () => {
    const result = resultOf('h2o-vs-nginx');
    const rows = await database.rows('articles', barsTitle, result);
    const [first] = result.variants;
    expect(rows).toEqual(
      result.variants.map(({ name, published, rps }) => ({
        variant: name,
        published_to_first: (published?.rps ?? NaN) / (first?.published?.rps ?? NaN),
        measured_to_first: (rps?.median ?? NaN) / (first?.rps?.median ?? NaN),
      })),
    );
    expect(rows[0]).toMatchObject({ published_to_first: 1, measured_to_first: 1 });
    // A scenario without published figures.
    const [unpublished] = await database.rows('articles', barsTitle, resultOf('aa'));
    expect(unpublished).toMatchObject({ published_to_first: null, measured_to_first: 1 });
  });

  it("stores the parts of each side's CPU time", async () => {
    const result = resultOf('aa');
    const columns = ['variant', 'part', 'calls_per_request', 'cpu_us', 'cpu_sd_us'];
    expect(await database.stored('bench_why', columns, result)).toEqual(
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

  it('stores the pages of a mix', async () => {
    const result = resultOf('aa');
    const [first, second] = result.variants.map(({ name }) => name);
    const figures = ['share', 'body_bytes', 'p50_ms', 'p99_ms', 'effect', 'verdict', 'unexpected'];
    const columns = ['variant', 'page', ...figures];
    expect(await database.stored('bench_page', columns, result)).toMatchObject([
      { variant: first, page: '/', share: 0.75, body_bytes: 204, p50_ms: 1.5, p99_ms: 4 },
      { variant: second, page: '/', effect: '+50 % [50, 50]', verdict: 'slower' },
      { variant: first, page: 'POST /a', share: 0.25, body_bytes: 612, effect: null },
      { variant: second, page: 'POST /a', unexpected: 6, effect: null, verdict: null },
    ]);
  });

  it('shows the sentences of the report at the top, followed by the warnings', async () => {
    for (const result of results.values()) {
      expect(
        await database.rows('comparison', '${scenario}: what was found', result),
      ).toMatchObject([
        ...verdictSentences(result, additions.contributionsTo(result)).map(({ kind, text }) => ({
          kind,
          text,
        })),
        ...result.warnings.map((text) => ({ kind: 'warning', text })),
      ]);
    }
  });

  it.each([
    ['comparison', 'Load phases: published beside measured'],
    ['comparison', 'Traffic: published beside measured'],
    ['comparison', 'Time for a request'],
    ['comparison', 'Time to connect, TLS included'],
    ['comparison', 'Time to first byte, from the start of a connection'],
    ['comparison', 'Requests/s per client (connection)'],
    ['comparison', 'Requests/s per thread of the generator, sampled each 100 ms as wrk does'],
    ['comparison', 'TLS as negotiated, and what did not succeed'],
    ['articles', '${scenario}: each load as its tool printed it'],
  ] as const)('shows a row per variant and phase in %s, %s', async (name, title) => {
    for (const scenario of oneOfAKind)
      expect(await database.rows(name, title, resultOf(scenario))).toEqual(
        expectedPhaseRows(columnsOf(name, title), resultOf(scenario)),
      );
  });

  it("shows a histogram of each server, in the article's buckets", async () => {
    const rate = resultOf('h2o-vs-nginx-h2-rate');
    expect(await database.choices('comparison', 'variant', rate)).toEqual(['h2o', 'nginx']);
    for (const { name, phases } of rate.variants) {
      const rows = await database.rows('comparison', 'Answers by latency: ${variant:csv}', {
        ...rate,
        variant: name,
      });
      expect(rows).toHaveLength(10);
      expect(rows[7]).toMatchObject({ bucket: '1–2 ms' });
      expect(rows.map(({ count, share }) => [count, share])).toEqual(
        phases[0]?.buckets.map(({ count, share }) => [count, share]),
      );
    }
  });

  it('leaves unpublished figures out of the tables', async () => {
    for (const [name, left] of [
      ['aa', ['published']],
      ['h2o-vs-nginx', []],
    ] as const)
      expect(await database.choices('comparison', 'unpublished', resultOf(name))).toEqual(left);
  });

  it('draws a ladder in order, with the effect of each step', async () => {
    const ladder = resultOf('h2o-vs-nginx');
    const compared = ladder.variants.slice(1);
    const { names, marks } = await database.intervals(ladder);
    const row = (name: string) =>
      -1 - ladder.variants.findIndex((variant) => variant.name === name);
    expect(names).toEqual(ladder.variants.map(({ name }) => ({ variant: name, row: row(name) })));
    expect(await database.choices('comparison', 'compared', ladder)).toEqual(
      compared.map(({ name }) => name),
    );
    for (const { name } of compared) {
      const comparison =
        ladder.comparisons.find(({ variant }) => variant === name) ?? expect.fail();
      const { ratio, ci95, publishedRatio } = comparison;
      // The reference line, the bounds of the interval, and both ratios; the last column is the row.
      const ofVariant = marks.filter(({ variant }) => variant === name);
      expect(ofVariant.map((mark) => [mark['ratio'], Object.values(mark).at(-1)])).toEqual(
        [1, ...ci95, ratio, publishedRatio].map((at) => [at, row(name)]),
      );
      const [ratios = [], intervals = []] = await database.panel(
        'comparison',
        'Ratio per round: ${compared:csv}',
        {
          ...ladder,
          variant: name,
        },
      );
      const rows = ratios.flatMap((answer) => answer.rows);
      expect(rows.map(({ ratio }) => ratio)).toEqual(comparison.roundRatios);
      expect(rows.at(-1)).toMatchObject({ ratio_so_far: ratio });
      expect(intervals.flatMap((answer) => answer.rows)).toEqual([
        { time: rows.at(-1)?.['time'], ci_low: ci95[0], ci_high: ci95[1] },
      ]);
    }
  });

  it('shows the noise floor as a band, starting at the control run', async () => {
    const control = resultOf('aa');
    const range = {
      ...resultOf('nginx-tcp-nopush'),
      startedAt: '2026-02-03T00:00:00.000Z',
      endedAt: '2026-02-03T09:00:00.000Z',
    };
    const [ratios = [], high = [], low = []] = await database.panel(
      'history',
      '${scenario}: ratio to the baseline, run by run',
      range,
    );
    expect(ratios.map(({ rows }) => rows.length)).toEqual([1]);
    const ends = (answers: typeof high): Cell[] =>
      (answers[0]?.rows ?? []).map(({ last }) => last ?? null);
    const { ratio = NaN } = control.noiseFloor ?? {};
    // The band is hourly; the run was at 04:05.
    expect(ends(high)).toEqual([null, null, null, null, ratio, ratio, ratio, ratio, ratio, ratio]);
    expect(ends(low).at(-1)).toBe(1 / ratio);
  });
});

describe('samples of k6 per second', () => {
  const startMs = Date.parse('2026-02-05T06:07:08.000Z');
  const choice = {
    scenario: 'seconds',
    run: 'seconds',
    startedAt: new Date(startMs).toISOString(),
    endedAt: new Date(startMs + 60_000).toISOString(),
  };
  const label =
    'run=seconds,scenario=seconds,round=1,phase=1,server=nginx,protocol=http/1.1,instance=x';

  /** A sample like the engine's: counts, and the time under load. */
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
      // 3.5 seconds of constant load.
      ...[1, 2, 3].flatMap((at) =>
        sample('even', at, 1, { good: 90_000, bad: 10_000, reset: 5000, received: 1e9 }),
      ),
      ...sample('even', 3.5, 0.5, { good: 45_000, bad: 5000, reset: 2500, received: 5e8 }),
      // A load of a quarter of a second.
      ...sample('short', 10.25, 0.25, { good: 25_000, bad: 0, reset: 0, received: 2.5e8 }),
      // Two sides with turns within the same second.
      ...sample('one', 21, 0.6, { good: 60_000, bad: 0, reset: 0, received: 6e8 }),
      ...sample('other', 21, 0.4, { good: 20_000, bad: 0, reset: 0, received: 2e8 }),
      // Two generators with half of the load each.
      ...[1, 2].flatMap((generator) =>
        sample('halves', 31, 1, { good: 30_000, bad: 0, reset: 0, received: 3e8 }, generator),
      ),
    ]),
  );

  it.each([
    ['live', 'Responses/s'],
    ['comparison', 'Responses/s over time'],
  ] as const)('is the measured rate in %s, %s', async (name, title) => {
    const [lines = []] = await database.panel(name, title, choice);
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

  it('are per second under load, for any counter', async () => {
    const [errors = [], answers = []] = await database.panel('live', 'Failures per second', choice);
    const figures = ([line]: typeof errors): Cell[] =>
      (line?.rows ?? []).map(({ value }) => value ?? null);
    expect([figures(errors), figures(answers)]).toEqual([
      [5000, 5000, 5000, 0, 0, 0],
      [10_000, 10_000, 10_000, 0, 0, 0],
    ]);
    const [connections = []] = await database.panel('live', 'Connections', choice);
    expect(
      connections.find(({ tags }) => tags?.['variant'] === 'halves')?.rows.map(({ sum }) => sum),
    ).toEqual([100]);
    const [bytes = []] = await database.panel('live', 'Bytes/s', choice);
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
    ['comparison', 'Runs of ${scenario}'],
    ['history', 'Runs of ${scenario}: a click opens the Comparison'],
  ] as const)('are offered and listed in %s, newest first', async (name, list) => {
    const both = [newer.run, older.run];
    expect(await database.choices(name, 'run', newer)).toEqual(both);
    expect((await database.rows(name, list, newer)).map(({ run }) => run)).toEqual(both);
  });

  it.each([
    ['${scenario}: ratio to the baseline, run by run', 'ratio'],
    ['Requests/s, run by run', 'measured_rps'],
    ["The server's CPU time per request, run by run", 'server_cpu_micros_per_request'],
    ['99th percentile of latency, run by run', 'p99_ms'],
  ] as const)('are points of a line per variant and version in History, %s', async (title, of) => {
    const [answers = []] = await database.panel('history', title, newer);
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
    expect(shown).toHaveLength(of === 'ratio' ? 2 : 4);
    expect(shown.toSorted()).toEqual(expected.filter(([, , , value]) => value !== null).toSorted());
  });
});

it('shows for each claim the newest run that could decide it', async () => {
  const scenario = await shippedScenario('h2o-vs-nginx-h2');
  const newer = await madeUpRun(scenario, Date.parse('2026-02-06T00:00:00.000Z'));
  const [nginx, h2o] = newer.variants;
  expect([nginx?.name, h2o?.name]).toEqual(['nginx', 'h2o']);
  const shown = async () => {
    const [first] = await database.rows('articles', claimsTitle, newer);
    return [first?.['run'], first?.['state']];
  };
  const slower = newer.comparisons.map((comparison) => ({
    ...comparison,
    verdict: 'slower' as const,
  }));
  await storeResult(database.store, { ...newer, comparisons: slower });
  expect(await shown()).toEqual([newer.run, 'opposite here']);
  // With --variants nginx.
  const variants = newer.variants.slice(0, 1);
  const startedAt = '2026-02-06T01:00:00.000Z';
  await storeResult(database.store, { ...newer, run: 'alone', startedAt, variants });
  expect(await shown()).toEqual([newer.run, 'opposite here']);
});
