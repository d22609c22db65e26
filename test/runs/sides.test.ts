// Any HTTP server as a side.
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, onTestFinished, test } from 'vitest';
import { valuesIn } from '../../lib/analysis/latency.ts';
import type { VariantResult } from '../../lib/result/result.ts';
import { freePort } from '../../lib/servers/ports.ts';
import { cgroupMounts, makeCgroup, type Cgroup } from '../fixtures/cgroups.ts';
import { untilAnswers } from '../fixtures/listening.ts';
import { launch, start as startNode } from '../fixtures/node-process.ts';
import { stillRunning } from '../fixtures/processes.ts';
import {
  keptRounds,
  loadBegins,
  newOut,
  readResult,
  runFolder,
  startCommand,
  startedOf,
  startScenario,
  useHome,
} from '../scenario-run.ts';

const home = useHome(['k6']);

/** A page of 5 bytes, a missing page, a page with 50 % errors after some time, and one that says what all requests so far took. */
const server = `let left = 40;
let requests = 0;
require('node:http').createServer((asked, response) => {
  if (asked.url === '/use') return response.end(JSON.stringify({ requests, ...process.cpuUsage() }));
  requests++;
  if (asked.url === '/lost') response.statusCode = 404;
  if (asked.url === '/tired' && left-- < 0 && left % 2 === 0) { response.statusCode = 503; console.error('the database is', 'gone'); }
  response.end('hello');
}).listen(process.env.PORT, '127.0.0.1');`;

beforeAll(() => writeFileSync(join(home.folder, 'server.cjs'), server));

function start(variants: string, out: string) {
  const file = join(home.folder, 'sides.scenario.ts');
  writeFileSync(
    file,
    `import { address, command, defineScenario, h2load, wrk } from '${join(import.meta.dirname, '../../lib/scenario/index.ts')}';
    export default defineScenario({ name: 'sides', title: 'sides', knob: 'all', load: wrk('-c 4 -t 1 -d 1'), page: { path: '/', bodyBytes: 5 }, variants: [${variants}] });`,
  );
  const length = variants.includes('h2load(') ? '' : ' --warmup 100ms --duration 500ms';
  return startScenario(`${file} --rounds 1${length} --store none --out ${out}`, home.env);
}

test('a command is compared with a running server, which keeps running', async () => {
  const port = await freePort();
  const out = newOut();
  startNode([join(home.folder, 'server.cjs')], { ...process.env, PORT: String(port) });
  await untilAnswers(`http://127.0.0.1:${port}`);

  const run = start(
    `{ name: 'here', server: command('node server.cjs', { folder: '.' }) }, { name: 'again', server: command("sh -c 'exec node server.cjs'", { folder: '.' }) },
    { name: 'there', server: address('http://127.0.0.1:${port}') }`,
    out,
  );
  const started = await startedOf(run, () =>
    expect(
      readFileSync(join(runFolder(out), 'round-1', 'k6-1', loadBegins.file), 'utf8'),
    ).toContain(loadBegins.text),
  );
  expect(started.filter(({ command }) => command === 'node').length).toBeGreaterThanOrEqual(2);
  expect(await run.ended, run.stderr()).toBe(0);
  expect(stillRunning(started)).toEqual([]);
  expect(await (await fetch(`http://127.0.0.1:${port}`)).text()).toBe('hello');

  const result = readResult(out);
  const host = `127.0.0.1:${port}`;
  expect(result.variants.map((variant) => variant.server)).toMatchObject([
    { name: 'node', version: '', config: ['node server.cjs'] },
    { name: 'sh', config: ["sh -c 'exec node server.cjs'"] },
    { name: host, config: [`http://${host}`], atAddress: true },
  ]);
  const [first, again, other] = result.variants as [VariantResult, VariantResult, VariantResult];
  for (const { serverCpuMicrosPerRequest, serverShare } of [first, again]) {
    expect(serverCpuMicrosPerRequest?.median).toBeGreaterThan(1);
    expect(serverShare).toBeGreaterThan(0);
  }
  expect(other).toMatchObject({ serverCpuMicrosPerRequest: null, serverShare: null });
  expect(result.variants.map(({ successRatio }) => successRatio)).toEqual([1, 1, 1]);
  expect(result.comparisons.map(({ cpu }) => cpu === null)).toEqual([false, true]);
  expect(result.footnotes).toEqual([
    expect.stringMatching(
      `^there: bakeoff did not choose the cores of the server at http://${host}, .* is not known\\.$`,
    ),
  ]);
  expect(run.stdout()).toMatch(
    new RegExp(
      `^there: the server at http://${host} is loaded with 4 connections, and keeps running\nsides · `,
    ),
  );
  expect(run.stdout()).toMatch(
    new RegExp(`^here, again on cores? .*, k6 .* on cores? .*, ${host} where it runs · `, 'm'),
  );
  expect(
    existsSync(join(runFolder(out), `round-${keptRounds(result)[0]}`, 'here', 'output.log')),
  ).toBe(true);
});

/** CPU time in µs, as the server itself knows it. */
interface Use {
  requests: number;
  user: number;
  system: number;
}

const [cgroup] = cgroupMounts().map(makeCgroup);

test.skipIf(cgroup === undefined)(
  'a running server has CPU figures by its control group',
  async () => {
    const { folder, enter } = cgroup as Cgroup;
    const port = await freePort();
    const out = newOut();
    const words = [...enter, process.execPath, join(home.folder, 'server.cjs')];
    const { process: child } = launch(words, { ...process.env, PORT: String(port) });
    onTestFinished(() => void child.kill('SIGKILL'));
    await untilAnswers(`http://127.0.0.1:${port}`);
    const run = start(
      `{ name: 'here', server: command('node server.cjs', { folder: '.' }) },
    { name: 'there', server: address('http://127.0.0.1:${port}', { cgroup: '${folder}' }) }`,
      out,
    );
    expect(await run.ended, run.stderr()).toBe(0);
    const { variants, comparisons, footnotes } = readResult(out);
    const [, there] = variants as [VariantResult, VariantResult];
    const use = (await (await fetch(`http://127.0.0.1:${port}/use`)).json()) as Use;
    // All that the process used since its start, for the requests of warm-ups too.
    const usPerRequest = (use.user + use.system) / use.requests;
    expect(there.serverCpuMicrosPerRequest?.median).toBeGreaterThan(usPerRequest / 4);
    expect(there.serverCpuMicrosPerRequest?.median).toBeLessThan(usPerRequest * 1.5);
    expect(there.serverShare).toBeNull();
    expect(comparisons[0]?.cpu).not.toBeNull();
    expect(footnotes).toEqual([expect.stringContaining(`its CPU use is that of ${folder}.`)]);
  },
);

test('a count of requests follows a warm-up with connections of its own, and is exact', async () => {
  const out = newOut();
  const side = (name: string) =>
    `{ name: '${name}', server: command('node server.cjs', { folder: '.' }), load: h2load('-n 700 -c 4 --h1') }`;
  expect(await start([side('a'), side('b')].join(), out).ended).toBe(0);
  const result = readResult(out);
  expect(result.warnings.filter((text) => text.includes('no warm-up'))).toEqual([]);
  for (const { rounds } of result.variants)
    for (const { requests, responses, connectMs, warmupRequests, continuous } of rounds.flatMap(
      ({ phases }) => phases,
    )) {
      expect([requests, responses['2xx']]).toEqual([700, 700]);
      expect(valuesIn(connectMs)).toBe(4);
      expect(warmupRequests).toBeGreaterThan(0);
      expect(continuous).toMatchObject({ apart: true });
    }
});

test('an expected status is no failure; an unexpected one is reported with the log', async () => {
  const page = (path: string, status: number) =>
    `server: command('node server.cjs', { folder: '.' }), page: { path: '${path}', bodyBytes: 5, status: ${status} }`;
  const out = newOut();
  const run = start(
    `{ name: 'lost', ${page('/lost', 404)} }, { name: 'tired', ${page('/tired', 200)} }`,
    out,
  );
  expect(await run.ended, run.stderr()).toBe(1);
  expect(run.stderr()).toMatch(/nothing was compared: \d+ % of the requests of tired failed$/m);
  const {
    variants: [lost, tired],
    warnings,
  } = readResult(out);
  expect(lost).toMatchObject({ successRatio: 1, load: { status: 404 } });
  expect(tired?.successRatio).toBeLessThan(1);
  expect(warnings.filter((line) => /answers with|its log/.test(line))).toEqual([
    expect.stringMatching(
      /^tired: [\d,]+ answers with 503 among [\d,]+ requests: requests\/s alone do not compare$/,
    ),
    'tired: the last line of its log after requests had failed: the database is gone',
  ]);
});

test('a command runs before the servers start in each round; once it fails, the run ends and its rounds stay', async () => {
  const out = newOut();
  const isMeasured = `grep -qs '"round": ' ${out}/*/result.json`;
  const command = `echo again >>calls; ! ${isMeasured} || { echo no more rows >&2; exit 4; }`;
  const sides = ['one', 'two'].map((name) => `${name}=node server.cjs`);
  const words = [
    ...sides,
    '--prepare',
    command,
    '--rounds',
    '3',
    '--warmup',
    '100ms',
    '--duration',
    '300ms',
  ];
  const run = startCommand(['compare', ...words, '--no-look', '--store', 'none', '--out', out], {
    ...home.env,
    INIT_CWD: home.folder,
  });
  expect(await run.ended, run.stderr()).toBe(1);
  expect(run.stderr()).toMatch(/^prepare 'echo again .*…' ended with code 4: no more rows$/m);
  expect(run.stdout()).toContain(`before the servers start, in each round: ${command}\n`);
  const result = readResult(out);
  expect(result).toMatchObject({ state: 'partial', prepare: command });
  expect(result.variants.map(({ rounds }) => rounds.length)).toEqual([1, 1]);
  // Before the sides are tried, and in two rounds; a busy machine has rounds repeated.
  const calls = readFileSync(join(home.folder, 'calls'), 'utf8').match(/again/g);
  expect(calls?.length).toBeGreaterThanOrEqual(3);
});
