// Whole runs over HTTP/2 with the real servers, influxd and k6: what is different from HTTP/1.1.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { PhaseResult, Result } from '../../lib/result/result.ts';
import { projectRoot } from '../../lib/setup/paths.ts';
import {
  keptRounds,
  newOut,
  wholeResult,
  runFolder,
  startScenario,
  type ScenarioRun,
  storeOf,
  useHome,
} from '../scenario-run.ts';

const home = useHome(['k6', 'nginx', 'h2o', 'nghttpd', 'influxd']);

/** @param words arguments, parted by spaces */
const start = (out: string, words: string, variables = {}): ScenarioRun =>
  startScenario([...words.split(' '), '--out', out], { ...home.env, ...variables });

/** Writes a scenario file beside the results: one of ours with other figures. `changes` are properties in TypeScript. */
function variationOf(name: string, out: string, changes: string) {
  const file = join(out, '..', `${name}.mts`);
  writeFileSync(
    file,
    `
    import { defineScenario, h2load } from ${JSON.stringify(join(projectRoot, 'lib/scenario/index.ts'))};
    import scenario from ${JSON.stringify(join(projectRoot, 'scenarios', `${name}.ts`))};
    export default defineScenario({ ...scenario, ${changes} });`,
  );
  return file;
}

/** Samples of rounds that were dropped stay in the database. */
function whereKept(result: Result) {
  return `"run" = '${result.run}' AND "round" =~ /^(${keptRounds(result).join('|')})$/`;
}

function onlyPhase(phases: readonly PhaseResult[]): PhaseResult {
  expect(phases).toHaveLength(1);
  return phases[0] as PhaseResult;
}

test('nghttpd, nginx and h2o answer the same requests over TLS, and the database has what h2load would print', async () => {
  const out = newOut();
  const run = start(out, 'nghttpd-index --quick --rounds 1');
  const result = await wholeResult(run, out);
  expect(result.variants.map(({ name }) => name)).toEqual(['nghttpd', 'nginx', 'h2o']);
  expect(result.comparisons.map(({ variant, baseline }) => [variant, baseline])).toEqual([
    ['nginx', 'nghttpd'],
    ['h2o', 'nghttpd'],
  ]);
  expect(result.environment.versions).toMatchObject({
    nghttpd: expect.any(String),
    nginx: expect.any(String),
    h2o: expect.any(String),
  });

  const store = await storeOf(home);
  for (const variant of result.variants) {
    expect(variant.rounds).toHaveLength(1);
    const phase = onlyPhase(variant.phases);
    expect(phase.responses).toEqual({ '2xx': 10_000, '3xx': 0, '4xx': 0, '5xx': 0 });
    expect(phase.tls).toEqual({
      version: 'TLSv1.2',
      cipher: 'ECDHE-RSA-AES128-GCM-SHA256',
      keyExchange: 'P-256',
    });
    const { bytes } = phase;
    expect(bytes.body).toBe(10_000 * 612);
    expect(bytes.received).toBeGreaterThan(bytes.body + bytes.headers);
    expect(bytes.headers).toBeLessThan(bytes.headersDecoded);
    expect(phase.headerSavingsPercent).toBeCloseTo(
      100 * (1 - bytes.headers / bytes.headersDecoded),
      9,
    );
    for (const times of [phase.connectMs, phase.firstByteMs, phase.latencyMs])
      expect(times.min).toBeGreaterThan(0);
    const [row] = await store.query(
      'SELECT "measured_rps", "header_bytes", "header_savings", "connect_ms_mean", "first_byte_ms_max", "client_rps_sd", "tls" FROM "bench_phase"' +
        ` WHERE "run" = '${result.run}' AND "variant" = '${variant.name}' AND "phase" = '1' AND "protocol" = 'h2'`,
    );
    expect(row?.values.map((values) => values.slice(1))).toEqual([
      [
        phase.rps.median,
        bytes.headers,
        (phase.headerSavingsPercent as number) / 100,
        phase.connectMs.mean,
        phase.firstByteMs.max,
        phase.perConnectionRps.sd,
        'TLSv1.2 ECDHE-RSA-AES128-GCM-SHA256 P-256',
      ],
    ]);
    const [total] = await store.query(
      `SELECT SUM("value") FROM "loadgen_requests" WHERE ${whereKept(result)} AND "variant" = '${variant.name}' AND "protocol" = 'h2'`,
    );
    expect(total?.values[0]?.[1]).toBe(10_000);
  }
  const article = await store.query(
    `SELECT "published_header_bytes", "published_connect_ms_mean" FROM "bench_phase" WHERE "run" = '${result.run}'`,
  );
  expect(article[0]?.values.map((values) => values.slice(1))).toEqual([[1_105_350, 259.5]]);
  expect(result.integrity).toMatchObject({ requests: 30_000, stored: 30_000, lost: 0 });
});

test('a file limit of 1024 costs nghttpd 4xx answers, phase after phase on one server; 4096 costs none', async () => {
  const out = newOut();
  // nghttpd closes the page 2 s after its last connection. The first phase finds it open, since the look whether it is ready
  // was just before; in the later ones connections take all descriptors first.
  const file = variationOf(
    'nghttpd-img',
    out,
    `load: { ...scenario.load, requests: 1020 }, phases: { count: 3, pauseSeconds: 3 },
    page: { docroot: 'nginx', path: '/', bodyBytes: 612 }`,
  );
  const run = start(out, `${file} --variants nghttpd-1024,nghttpd-4096`);
  const result = await wholeResult(run, out);
  const [limited, free] = result.variants;
  for (const variant of [limited, free]) {
    expect(variant?.rounds).toHaveLength(1);
    const phases = variant?.rounds[0]?.phases ?? [];
    expect(phases.map(({ requests }) => requests)).toEqual([1020, 1020, 1020]);
    for (const [index, { startedAt }] of phases.slice(1).entries()) {
      expect(
        Date.parse(startedAt) - Date.parse(phases[index]?.endedAt as string),
      ).toBeGreaterThanOrEqual(3000);
    }
  }
  // One of two phases is enough: where the machine is busy, the page may be asked for before all connections are accepted.
  expect(limited?.phases.reduce((sum, { responses }) => sum + responses['4xx'], 0)).toBeGreaterThan(
    0,
  );
  expect(limited?.phases.map(({ errors }) => errors.total)).toEqual([0, 0, 0]);
  expect(free?.phases.map(({ responses }) => responses['2xx'])).toEqual([1020, 1020, 1020]);
  expect(free?.traffic?.bytes.body).toBe(3060 * 612);
  expect(result.comparisons[0]).toMatchObject({
    variant: 'nghttpd-4096',
    verdict: 'none',
    why: expect.stringMatching(/ % of the requests of nghttpd-1024 failed$/),
  });
  expect(result.warnings).toContainEqual(
    expect.stringMatching(
      /^nghttpd-1024: [\d,]+ answers with 4\d\d among 3,060 requests: requests\/s alone do not compare$/,
    ),
  );

  const store = await storeOf(home);
  const ratios = await store.query(
    `SELECT "success_ratio" FROM "bench_phase" WHERE "run" = '${result.run}' AND "variant" = 'nghttpd-1024' GROUP BY "phase"`,
  );
  expect(ratios.map(({ tags, values }) => [tags?.['phase'], values[0]?.[1]])).toEqual(
    limited?.phases.map(({ phase, successRatio }) => [String(phase), successRatio]),
  );
  const requests = await store.query(
    `SELECT SUM("value") FROM "loadgen_requests" WHERE ${whereKept(result)} AND "variant" = 'nghttpd-4096' GROUP BY "phase"`,
  );
  expect(requests.map(({ tags, values }) => [tags?.['phase'], values[0]?.[1]])).toEqual([
    ['1', 1020],
    ['2', 1020],
    ['3', 1020],
  ]);
  expect(result.integrity).toMatchObject({ requests: 6120, stored: 6120, lost: 0 });
});

test('a column that is published only is shown and not run, and its servers alone are started', async () => {
  const out = newOut();
  const run = start(
    out,
    'http1-vs-h2-small-file --quick --rounds 1 --variants nginx-http1,nginx-spdy --store none',
    { ...home.env, H2O_BIN: '/nowhere/h2o', NGHTTPD_BIN: '/nowhere/nghttpd' },
  );
  const result = await wholeResult(run, out);
  const { variants, comparisons, environment } = result;
  expect(variants).toMatchObject([
    { name: 'nginx-http1', server: { name: 'nginx' }, rounds: [{}] },
    {
      name: 'nginx-spdy',
      server: null,
      publishedOnly: expect.any(String),
      rounds: [],
      phases: [],
      rps: null,
    },
  ]);
  expect(comparisons).toMatchObject([
    {
      variant: 'nginx-spdy',
      baseline: 'nginx-http1',
      why: 'published only',
      publishedRatio: expect.closeTo(77_331 / 44_326, 9),
    },
  ]);
  expect(environment.versions).not.toHaveProperty('nghttpd');
  expect(readdirSync(join(runFolder(out), `round-${keptRounds(result)[0]}`))).toEqual([
    'k6-1',
    'nginx-http1',
  ]);
  expect(readFileSync(join(runFolder(out), 'table.md'), 'utf8')).toMatch(
    /\| nginx-spdy \|.*\| published only \|/,
  );
});
