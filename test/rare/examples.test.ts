// The view of an outside project: the installed package, the examples, docs/scenarios.md.
import { execFileSync } from 'node:child_process';
import { createServer } from 'node:http';
import { mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import type { Result } from '../../lib/result/result.ts';
import { findGo } from '../../lib/setup/k6.ts';
import { thisMachine } from '../../lib/setup/machine.ts';
import { projectRoot } from '../../lib/setup/paths.ts';
import { run } from '../../lib/process.ts';
import { installPackage, inProject, type InstalledPackage } from '../fixtures/installed-package.ts';
import { listening } from '../fixtures/listening.ts';
import { sharedFolder } from '../fixtures/new-folder.ts';
import { readResult, useHome } from '../scenario-run.ts';

const home = useHome(['k6', 'nginx', 'openssl']);
const outside = sharedFolder();
let installed: InstalledPackage;
beforeAll(() => {
  installed = installPackage(outside);
});

const shortest = '--quick --rounds 1 --warmup 100ms --duration 200ms --store none'.split(' ');

function filesOf(folder: string) {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .map((file) => `${file} ${statSync(join(folder, file)).mtimeMs}`)
    .sort();
}

function expectMeasured(result: Result, variants: readonly string[]) {
  expect(result.variants.map(({ name }) => name)).toEqual(variants);
  for (const { successRatio, rounds } of result.variants) {
    expect(successRatio).toBe(1);
    expect(rounds[0]?.phases[0]?.requests).toBeGreaterThan(0);
  }
}

async function ran(project: string, args: readonly string[], env = {}) {
  const ended = await inProject(project, [...args, ...shortest], { ...home.env, ...env });
  expect(ended).toMatchObject({ code: 0 });
  return { ...ended, result: readResult(join(project, 'results')) };
}

test('TLS handshakes by key, key exchange and resumption', async () => {
  const project = installed.project('handshakes', {}, 'tls-handshakes');
  const { binary: go } = await findGo(thisMachine());
  // The first compilation of its packages may exceed the time limit for a start.
  execFileSync(go, ['build', '-o', '/dev/null', 'server.go'], { cwd: project });
  const PATH = [dirname(go), process.env.PATH].join(delimiter);
  const { result } = await ran(project, ['npm', 'run', '-s', 'handshakes', '--'], { PATH });
  expectMeasured(result, ['ecdsa', 'rsa', 'post-quantum', 'resumed']);
  const phases = result.variants.map(({ rounds }) => rounds[0]?.phases[0]);
  const curve = 'X25519';
  const exchanges = [curve, curve, 'X25519MLKEM768', curve];
  expect(phases.map((phase) => phase?.tls?.keyExchange)).toEqual(exchanges);
  const resumed = phases.map((phase) => phase?.perRequest?.resumed);
  expect(resumed.slice(0, 3)).toEqual([0, 0, 0]);
  expect(resumed[3]).toBeGreaterThan(0.5);
}, 300_000);

test("an article of one's own: its scenario runs, and its claims are on a page", async () => {
  const project = installed.project('claims', {}, 'tls-handshakes');
  const command = ['npm', 'run', '-s', 'claims', '--', ...shortest];
  const ended = await inProject(project, command, home.env);
  expect(ended).toMatchObject({ code: 0 });
  expect(ended.stdout).toMatch(
    /^resumed sessions make more requests\/s +not decided .*needs 4 rounds/m,
  );
  const results = join(project, 'results');
  const page = readdirSync(results).find((name) => name.endsWith('article-nginx-https')) ?? '';
  const text = readFileSync(join(results, page, 'article.html'), 'utf8');
  expect(text).toContain('the first is by enabling keepalive connections');
}, 300_000);

test('the requests of a log against two configs, from a subfolder: nothing is written to node_modules', async () => {
  // 3 of the 120 logged requests are for pages that no longer exist.
  const log = readFileSync(join(projectRoot, 'examples/traffic/access.log'), 'utf8');
  const files = { 'access.log': log.replaceAll('HTTP/1.1" 404', 'HTTP/1.1" 200') };
  const project = installed.project('traffic', files, 'traffic');
  mkdirSync(join(project, 'below'));
  const before = filesOf(installed.package);
  // npm runs a script in the package's folder, whatever the working directory.
  const command = ['npm', '--prefix', project, 'run', '-s', 'api', '--'];
  const ended = await ran(project, command, { INIT_CWD: join(project, 'below') });
  expect(filesOf(installed.package)).toEqual(before);
  const { stdout, stderr, result } = ended;
  const differs =
    /^Of 10 requests gzip answers 3 \(such as \/api\/items\?page=…\) with another encoding than plain\.$/m;
  expect(stderr).toMatch(differs);
  expect(stderr.search(differs)).toBeLessThan(stderr.indexOf('round 1 of 1 · plain'));
  expect(stdout).toMatch(differs);
  expect(stdout).toContain(
    'plain answers 2.5 % of the requests with another status than the log: /favicon.ico (404, not 200).',
  );
  expect(stdout).toMatch(/^\/api\/items +\d+ % +1,729 /m);
  expectMeasured(result, ['plain', 'gzip']);
});

test('a k6 script with two phases, and thresholds that set the exit code', async () => {
  const project = installed.project('k6', {}, 'k6-script');
  let status = 200;
  const port = await listening(
    createServer((_, response) => response.writeHead(status).end('hello')),
  );
  const env = { ...home.env, TARGET: `http://127.0.0.1:${port}/`, DURATION: '300ms' };
  const load = () =>
    inProject(project, ['npm', 'run', '-s', 'load', '--', '--summary-export', 'summary.json'], env);

  const good = await load();
  expect(good.stdout + good.stderr).toMatch(
    /steady: \d+ requests\/s, p50 [\d.]+ ms, p99 [\d.]+ ms, 0 errors[^]*full: \d+ requests\/s/,
  );
  const { metrics } = JSON.parse(readFileSync(join(project, 'summary.json'), 'utf8')) as {
    metrics: Record<string, { value: number; thresholds?: Record<string, boolean> }>;
  };
  // The speed depends on the machine, but the threshold must be evaluated.
  expect(metrics['loadgen_latency_ms{phase:steady,stat:p99,scope:run}']).toMatchObject({
    value: expect.any(Number),
    thresholds: { 'value<50': expect.any(Boolean) },
  });
  expect(metrics['loadgen_success_ratio{phase:steady}']).toMatchObject({
    value: 1,
    thresholds: { 'value==1': false },
  });

  status = 500;
  expect((await load()).code).toBe(99);
});

test('the scripts of the k6 module', async () => {
  const scripts = join(installed.package, 'xk6-loadgen');
  const url = `http://127.0.0.1:${await listening(createServer((_, response) => response.end()))}/`;
  const each = ['smoke.js', 'examples/run.js', 'examples/alternate.js'];
  const line = [
    'set -e; k6="$(bakeoff k6)"',
    ...each.map((file) => `"$k6" run --quiet '${join(scripts, file)}'`),
  ];
  const { code, stdout, stderr } = await inProject(
    installed.folder,
    ['npm', 'exec', '-c', line.join('; ')],
    { ...home.env, TARGET: url, TARGETS: `${url} ${url}`, DURATION: '300ms', P99_MS: '5000' },
  );
  expect(code, stderr).toBe(0);
  expect(stdout + stderr).toMatch(/[\d.]+ responses\/s, .* 0 errors[^]*makes \d\.\d+ times/);
});

/** The files shown in docs/scenarios.md. */
function filesOfPage() {
  const page = readFileSync(join(projectRoot, 'docs/scenarios.md'), 'utf8');
  const blocks = [...page.matchAll(/^`([^`]+)`:\n\n```\w+\n([^]*?)^```$/gm)];
  return Object.fromEntries(blocks.map(([, file, text]) => [file, text])) as Record<string, string>;
}

test('the scenario in docs/scenarios.md', async () => {
  const project = installed.project('page', filesOfPage());
  // As npm init creates it: a package without "type" is CommonJS.
  writeFileSync(join(project, 'package.json'), '{ "name": "page", "main": "index.js" }');
  const { result } = await ran(project, ['bakeoff', 'scenario', './my.scenario.ts']);
  expectMeasured(result, ['one', 'all']);
});

test('a shipped scenario over TLS with a different page, typed, in ten lines', async () => {
  const { 'tls.scenario.ts': text = '' } = filesOfPage();
  expect(text.trim().split('\n').length).toBeLessThanOrEqual(10);
  const project = installed.project('reuse', {
    'tls.scenario.ts': text,
    'package.json': '{ "type": "module" }',
    'tsconfig.json': tsconfig({ exactOptionalPropertyTypes: true }),
    'place.mjs':
      "import { readFileSync } from 'node:fs';\n" +
      "import base from 'server-bakeoff/scenarios/nginx-open-file-cache';\n" +
      "const config = new URL(import.meta.resolve('server-bakeoff/server-configs/nginx/tls.conf'));\n" +
      "console.log(base.name, /listen 443 ssl;/.test(readFileSync(config, 'utf8')));\n",
  });
  mkdirSync(join(project, 'www'));
  writeFileSync(join(project, 'www/page.txt'), 'x'.repeat(2000));
  const checked = await inProject(project, ['tsc', '-p', '.', '--skipLibCheck', 'false']);
  expect(checked).toMatchObject({ code: 0, stdout: '' });
  const { result } = await ran(project, ['bakeoff', 'scenario', './tls.scenario.ts']);
  expect(result.variants.map(({ load }) => load['bodyBytes'])).toEqual([2000, 2000]);
  expectMeasured(result, ['workers', 'open-file-cache']);
  expect(result.variants.map(({ published }) => published)).toEqual([null, null]);
  for (const { rounds } of result.variants)
    expect(rounds[0]?.phases[0]?.tls?.version).toMatch(/^TLSv1/);
  // A program must resolve the package's modules.
  const { stdout: printed } = await run({
    command: process.execPath,
    args: ['place.mjs'],
    cwd: project,
  });
  expect(printed).toBe('nginx-open-file-cache true\n');
});

const tsconfig = (more: object) => {
  const strict = { target: 'es2023', module: 'nodenext', strict: true, noEmit: true, types: [] };
  return JSON.stringify({ compilerOptions: { ...strict, ...more } });
};

test('types: strict, including those of the package; mistakes are found', async () => {
  const scenario = `import { defineScenario, extendScenario, h2o, nghttpd, ab, h2load, vegeta, weighttp, wrk, nginx, type LoadResult, type Result, type Scenario } from 'server-bakeoff';
    const variants = [{ name: 'a', server: nginx(['base'], { workers: 1 }) }];
    export const loads = [ab('-n 1'), h2load('-n 1'), vegeta('-duration=1s'), weighttp('-n 1'), wrk('-c 2')];
    export const servers = [h2o(['h2'], { workers: 1 }), nghttpd(['h2'], { workers: 'server-cores' })];
    export const rpsOf = (result: Result, load: LoadResult): number => (result.variants[0]?.rps?.median ?? 0) + load.rps;
    const page = { docroot: 'nginx', path: '/', bodyBytes: 612 };
    const scenario: Scenario = defineScenario({ name: 'x', title: 'x', knob: 'x', load: wrk('-c 2'), page, variants });
    // @ts-expect-error
    defineScenario({ name: 'x', title: 'x', knob: 'x', load: wrk('-c 2'), page, variants, round: 3 });
    // @ts-expect-error
    extendScenario(scenario, { page });
    // @ts-expect-error
    extendScenario(scenario, { name: 'y', pages: page });
    // @ts-expect-error
    nginx('base', { workers: 1 });
    // @ts-expect-error
    h2o(['h2'], { workers: 'all' });
    export default scenario;`;
  const script = `import loadgen from 'k6/x/loadgen';
    export default function () {
      const p99: number = loadgen.run({ url: 'http://127.0.0.1/', duration: '1s' }).latencyMs.p99;
      // @ts-expect-error
      loadgen.run({ url: 'http://127.0.0.1/', duration: '1s', conections: 1 });
      // @ts-expect-error
      console.log(p99, loadgen.run({ url: 'http://127.0.0.1/', requests: 1 }).latency);
    }`;
  const bundler = { module: 'esnext', moduleResolution: 'bundler' };
  const projects = [
    ...['traffic', 'k6-script', 'tls-handshakes'].map((example) =>
      installed.project(`types-${example}`, {}, example),
    ),
    installed.project('types-scenario', {
      'package.json': '{ "type": "module" }',
      'x.ts': scenario,
      'tsconfig.json': tsconfig({ exactOptionalPropertyTypes: true }),
    }),
    // tsc lets CommonJS require an ES module, like Node since 22.12.
    installed.project('types-commonjs', {
      'package.json': '{}',
      'x.ts': scenario,
      'tsconfig.json': tsconfig({}),
    }),
    installed.project('types-bundler', {
      'x.ts': scenario,
      'script.ts': script,
      'tsconfig.json': tsconfig({ ...bundler, types: ['k6', 'server-bakeoff/loadgen'] }),
    }),
  ];
  const command = 'tsc -p . --skipLibCheck false'.split(' ');
  const checks = await Promise.all(
    projects.map(async (project) => ({ project, ...(await inProject(project, command)) })),
  );
  for (const check of checks) expect(check).toMatchObject({ code: 0, stdout: '' });
});

test('each packed command finds its modules and prints a usage line', async () => {
  const say = (...args: string[]) => inProject(installed.folder, ['bakeoff', ...args]);
  const { stdout: list } = await say('--help');
  expect(list).toMatch(/^Commands, each as npx server-bakeoff NAME …\n/);
  // k6 prints its own help.
  const commands = [...list.matchAll(/^ {2}(?!k6 )(\w+) /gm)].map(([, name]) => name as string);
  expect(commands).toEqual(expect.arrayContaining(['scenario', 'compare']));
  const [k6, ...helps] = await Promise.all([
    inProject(installed.folder, ['bakeoff', 'k6', 'run', '--help'], home.env),
    ...commands.map((name) => say(name, '--help')),
  ]);
  expect([k6.code, k6.stdout]).toEqual([0, expect.stringContaining('--summary-export')]);
  for (const [index, help] of helps.entries())
    expect(help, commands[index]).toMatchObject({ code: 0, stderr: '' });
  expect(helps[commands.indexOf('scenario')]?.stdout).toMatch(
    /^npx server-bakeoff scenario NAME\|FILE\.ts \[flags\] [^]*\n {2}--rounds N /m,
  );
  expect((await say('scenario')).stdout).toMatch(/^ {2}nginx-open-file-cache +\d+ s /m);
});

test('npx finds the command by package name, too', async () => {
  const npx = (name: string) =>
    inProject(installed.folder, ['npm', 'exec', '--offline', '--', name, '--version']);
  const [byCommand, byPackage] = await Promise.all([npx('bakeoff'), npx('server-bakeoff')]);
  expect(byCommand).toMatchObject({ code: 0, stdout: expect.stringMatching(/^\d+\.\d+\.\d+\n$/) });
  expect(byPackage).toMatchObject({ code: 0, stdout: byCommand.stdout });
});

test('a missing dist/ and missing packages are one-line errors', async () => {
  rmSync(join(installed.package, 'dist'), { recursive: true });
  const version = () => inProject(installed.folder, ['bakeoff', '--version']);
  const [, command = ''] =
    /^bakeoff was installed without the script that .*: make it with (node .*)\n$/.exec(
      (await version()).stderr,
    ) ?? [];
  execFileSync('sh', ['-c', command]);
  expect(await version()).toMatchObject({ code: 0, stderr: '' });
  rmSync(join(installed.folder, 'node_modules/fastest-levenshtein'));
  const { code, stderr } = await inProject(installed.folder, ['bakeoff', 'scenario']);
  expect(code).toBe(1);
  expect(stderr).toMatch(
    /^bakeoff cannot start: .* 'fastest-levenshtein' .* \(install server-bakeoff anew, .*\)\n$/,
  );
});
