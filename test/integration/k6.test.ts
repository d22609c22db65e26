// k6 for k6 users: metrics and thresholds, scenarios as scripts, and the error for a scenario file.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { Socket } from 'node:net';
import { join } from 'node:path';
import { beforeAll, expect, test, vi } from 'vitest';
import { nginx } from '../../lib/scenario/index.ts';
import { run } from '../../lib/process.ts';
import { ensureTools } from '../../lib/setup/tools.ts';
import { closedPort, listening } from '../fixtures/listening.ts';
import { start } from '../fixtures/node-process.ts';
import { newFolder } from '../fixtures/new-folder.ts';
import { welcomePage, useServers } from '../fixtures/servers.ts';
import { projectRoot } from '../../lib/setup/paths.ts';

const servers = useServers();
let k6 = '';
beforeAll(async () => {
  ({ k6 } = await ensureTools(['k6']));
}, 300_000);

const bakeoff = join(projectRoot, 'bin/bakeoff.mjs');

/** Runs a command in a folder like a user. */
function ran(folder: string, command: string, ...args: string[]) {
  return run({ command, args, cwd: folder, env: { ...process.env, K6_NO_USAGE_REPORT: 'true' } });
}

const bakeoffIn = (folder: string, ...args: string[]) =>
  ran(folder, process.execPath, bakeoff, ...args);

test('the example of the engine exits with code 99 if nothing listens', async () => {
  const folder = newFolder();
  const readme = readFileSync(join(projectRoot, 'xk6-loadgen/README.md'), 'utf8');
  const [, script = ''] = /^```js\n(\/\/ dead\.js[^]*?)^```$/m.exec(readme) ?? [];
  writeFileSync(join(folder, 'dead.js'), script);
  const target = `TARGET=http://127.0.0.1:${await closedPort()}/`;
  const dead = await ran(folder, k6, 'run', 'dead.js', '-e', target);
  expect(dead.code).toBe(99);
  expect(dead.stderr).toContain("thresholds on metrics 'http_req_failed' have been crossed");
});

test('a scenario as a k6 script compares two servers', async () => {
  const folder = newFolder();
  const flags = '--k6-script two.js --rounds 4 --duration 400ms --warmup 200ms';
  const made = await bakeoffIn(folder, 'scenario', 'nginx-open-file-cache', ...flags.split(' '));
  expect(made, made.stderr).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/ run two\.js -e TARGET_A=\S+ -e TARGET_B=\S+\n$/),
  });
  const missing = await ran(folder, k6, 'run', '--quiet', 'two.js', '-e', 'TARGET_A=http://a/');
  expect(missing.stderr).toContain('TARGET_B is missing: give the address of open-file-cache');
  expect(missing.code).toBe(107);

  const a = await servers.start(nginx(['base'], { workers: 1 }));
  const b = await servers.start(nginx(['base', 'workers', 'open-file-cache'], { workers: 1 }));
  const targets = ['-e', `TARGET_A=${a.origin}`, '-e', `TARGET_B=${b.origin}${welcomePage.path}`];
  const output = ['--out', 'json=out.json', '--summary-export', 's.json'];
  const ended = await ran(folder, k6, 'run', ...output, 'two.js', ...targets);
  expect(ended, ended.stderr).toMatchObject({ code: 0 });
  expect(ended.stderr).toMatch(
    /open-file-cache against workers, 4 rounds: \S+ (%|times) \[[^\]]+\] (faster|slower|same within 1 %|inconclusive)/,
  );
  const { metrics } = JSON.parse(readFileSync(join(folder, 's.json'), 'utf8')) as {
    metrics: Record<string, { value: number; thresholds?: Record<string, boolean> }>;
  };
  const ratio = metrics['bakeoff_ratio{variant:open-file-cache,against:workers}'];
  expect(ratio?.thresholds).toEqual({ 'value>0': false });
  const [low, high] = [metrics['bakeoff_ratio_low'], metrics['bakeoff_ratio_high']];
  expect(low?.value).toBeLessThan(ratio?.value ?? 0);
  expect(high?.value).toBeGreaterThan(ratio?.value ?? Infinity);
  expect(metrics['http_req_failed{variant:workers}']?.thresholds).toEqual({ 'rate<0.01': false });

  // The ratio must match the requests in the output.
  const counts = new Map<string, number[]>();
  for (const line of readFileSync(join(folder, 'out.json'), 'utf8').trim().split('\n')) {
    const { metric, type, data } = JSON.parse(line) as {
      metric: string;
      type: string;
      data: { value: number; tags: Record<string, string> };
    };
    if (metric !== 'loadgen_rps' || type !== 'Point') continue;
    const { variant = '' } = data.tags;
    counts.set(variant, [...(counts.get(variant) ?? []), data.value]);
  }
  const [before, after] = [counts.get('workers') ?? [], counts.get('open-file-cache') ?? []];
  const logs = before.map((rps, round) => Math.log((after[round] as number) / rps));
  const mean = logs.reduce((sum, log) => sum + log, 0) / 4;
  expect(logs).toHaveLength(4);
  expect(ratio?.value).toBeCloseTo(Math.exp(mean), 6);
  expect(readFileSync(join(folder, 'out.json'), 'utf8')).toMatch(
    /"metric":"http_reqs","type":"Point".*"variant":"open-file-cache"/,
  );
});

const countingScenario = `import { defineScenario, h2load, nginx } from 'server-bakeoff';
const server = nginx(['base'], { workers: 1 });
export default defineScenario({
  name: 'own',
  title: 'own',
  knob: 'b',
  load: h2load('--h1 -c 5 -n 50'),
  page: { docroot: './www', path: '/a' },
  variants: [{ name: 'a', server }, { name: 'b', server: { ...server, workers: 2 } }],
});
`;

test('a k6 script warms up the servers once, before the first load that counts requests', async () => {
  const asked: { path: string; connection: Socket }[] = [];
  const server = createServer((request, response) => {
    asked.push({ path: request.url ?? '', connection: request.socket });
    response.end('hi');
  });
  const port = await listening(server);
  const folder = newFolder();
  mkdirSync(join(folder, 'www'));
  writeFileSync(join(folder, 'www/a'), 'hi');
  writeFileSync(join(folder, 'own.ts'), countingScenario);
  const flags = ['--rounds', '4', '--warmup', '100ms', '--k6-script', 'own.js'];
  const made = await bakeoffIn(folder, 'scenario', './own.ts', ...flags);
  expect(made, made.stderr).toMatchObject({ code: 0 });
  const targets = ['a', 'b'].map(
    (side) => `TARGET_${side.toUpperCase()}=http://127.0.0.1:${port}/${side}`,
  );
  const args = targets.flatMap((target) => ['-e', target]);
  const ended = await ran(folder, k6, 'run', 'own.js', '--summary-export', 's.json', ...args);
  expect(ended, ended.stderr).toMatchObject({ code: 0 });
  const { metrics } = JSON.parse(readFileSync(join(folder, 's.json'), 'utf8')) as {
    metrics: Record<string, { count: number }>;
  };
  for (const path of ['/a', '/b']) {
    const requests = asked.filter((request) => request.path === path);
    // 4 rounds of 50 requests over 5 connections, and the warm-up.
    expect(requests.length).toBeGreaterThan(4 * 50);
    expect(new Set(requests.map(({ connection }) => connection)).size).toBe(5 * (4 + 1));
  }
  expect(metrics['http_reqs']?.count).toBe(2 * 4 * 50);
});

test('k6 explains that a scenario is no script, and what to do', async () => {
  const file = join(projectRoot, 'scenarios/nginx-open-file-cache.ts');
  const { code, stderr } = await ran(newFolder(), k6, 'run', '--quiet', file);
  expect(code).toBe(107);
  expect(stderr).toMatch(
    /a scenario is not a k6 script: npm run scenario -- NAME, or --k6-script to/,
  );
  expect(stderr.trim().split('\n')).toHaveLength(1);
});

test('k6 without arguments prints the path; a signal ends k6 cleanly, with the exit code of k6', async () => {
  const folder = newFolder();
  expect(await bakeoffIn(folder, 'k6')).toMatchObject({ code: 0, stdout: `${k6}\n` });
  const script = join(folder, 'long.js');
  writeFileSync(
    script,
    `import { sleep } from 'k6';
    export default function () { console.log('began'); sleep(600); }
    export function teardown() { console.log('torn down'); }`,
  );
  const started = start([bakeoff, 'k6', 'run', '--quiet', script], process.env);
  await vi.waitFor(() => expect(started.stderr()).toContain('began'), 60_000);
  started.process.kill('SIGTERM');
  // k6's code for a signal.
  expect(await started.ended).toEqual([105, null]);
  expect(started.stderr()).toContain('torn down');
});
