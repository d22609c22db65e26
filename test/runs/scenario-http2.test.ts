// Complete runs over HTTP/2: differences from HTTP/1.1.
import { readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { total } from '../../lib/analysis/statistics.ts';
import { projectRoot } from '../../lib/setup/paths.ts';
import {
  keptRounds,
  newOut,
  wholeResult,
  runFolder,
  startScenario,
  type ScenarioRun,
  useHome,
} from '../scenario-run.ts';

const home = useHome(['k6', 'nginx', 'h2o', 'nghttpd', 'influxd']);

const start = (out: string, args: string, variables = {}): ScenarioRun =>
  startScenario([...args.split(' '), '--out', out], { ...home.env, ...variables });

test('nghttpd, nginx and h2o answer the same requests over TLS', async () => {
  const out = newOut();
  const run = start(out, 'nghttpd-index --quick --rounds 1');
  const result = await wholeResult(run, out);
  expect(result.variants.map(({ name }) => name)).toEqual(['nghttpd', 'nginx', 'h2o']);
  for (const variant of result.variants) {
    const [phase = expect.fail(), ...others] = variant.phases;
    expect([variant.rounds.length, others]).toEqual([1, []]);
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
    for (const times of [phase.connectMs, phase.firstByteMs, phase.latencyMs])
      expect(times.min).toBeGreaterThan(0);
  }
  expect(result.integrity).toMatchObject({ requests: 30_000, stored: 30_000, lost: 0 });
});

test('where connections take all files that nghttpd may open, it answers 4xx', async () => {
  const out = newOut();
  // nghttpd closes the page's file 2 s after the last connection. In the first phase the file is still open from the readiness
  // check; in later phases connections use up all descriptors first.
  const file = join(out, '..', 'limits.mts');
  const [index, shipped] = ['lib/scenario/index.ts', 'scenarios/nghttpd-img.ts'].map((name) =>
    JSON.stringify(join(projectRoot, name)),
  );
  writeFileSync(
    file,
    `import { defineScenario, nghttpd } from ${index};
    import scenario from ${shipped};
    const server = (fileLimit) => nghttpd(['h2', 'streams-1024'], { workers: 1, fileLimit });
    export default defineScenario({
      ...scenario, load: { ...scenario.load, connections: 124, requests: 124 }, phases: { count: 3, pauseSeconds: 3 },
      page: { docroot: 'nginx', path: '/', bodyBytes: 612 },
      // The article has published failures, so the run does not fail by them.
      variants: [{ ...scenario.variants[0], name: 'limited', server: server(128) }, { name: 'free', server: server(512) }],
    });`,
  );
  const run = start(out, `${file} --no-look`);
  const result = await wholeResult(run, out);
  const [limited, free] = result.variants;
  for (const variant of [limited, free]) {
    expect(variant?.rounds).toHaveLength(1);
    const phases = variant?.rounds[0]?.phases ?? [];
    expect(phases.map(({ requests }) => requests)).toEqual([124, 124, 124]);
    for (const [index, { startedAt }] of phases.slice(1).entries()) {
      expect(
        Date.parse(startedAt) - Date.parse(phases[index]?.endedAt as string),
      ).toBeGreaterThanOrEqual(3000);
    }
  }
  // One of two phases is enough: on a busy machine the page may be requested before all connections are accepted.
  expect(total(limited?.phases ?? [], ({ responses }) => responses['4xx'])).toBeGreaterThan(0);
  expect(free?.phases.map(({ responses }) => responses['2xx'])).toEqual([124, 124, 124]);
  expect(free?.traffic?.bytes.body).toBe(372 * 612);
  expect(result.comparisons[0]).toMatchObject({
    variant: 'free',
    verdict: 'none',
    why: expect.stringMatching(/ % of the requests of limited failed$/),
  });
  expect(result.warnings).toContainEqual(
    expect.stringMatching(
      /^limited: .*[\d,]+ answers with 4\d\d among 372 requests: requests\/s alone do not compare$/,
    ),
  );
  expect(result.integrity).toMatchObject({ requests: 744, stored: 744, lost: 0 });
});

test('a variant with published figures only is not run', async () => {
  const out = newOut();
  const run = start(
    out,
    'http1-vs-h2-small-file --rounds 1 --warmup 100ms --duration 300ms --variants nginx-http1,nginx-spdy --store none',
    { ...home.env, H2O_BIN: '/nowhere/h2o', NGHTTPD_BIN: '/nowhere/nghttpd' },
  );
  const result = await wholeResult(run, out);
  const { variants, environment } = result;
  expect(variants).toMatchObject([
    { name: 'nginx-http1', server: { name: 'nginx' }, rounds: [{}] },
    { name: 'nginx-spdy', server: null, rounds: [] },
  ]);
  expect(environment.versions).not.toHaveProperty('nghttpd');
  expect(readdirSync(join(runFolder(out), `round-${keptRounds(result)[0]}`))).toEqual([
    'k6-1',
    'nginx-http1',
  ]);
});
