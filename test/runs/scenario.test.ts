// Complete runs: their output, and their state after failures.
import { chmodSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { expect, test, vi } from 'vitest';
import { cpusOf, readProcessors } from '../../lib/machine/processors.ts';
import { descendants, halt, stillRunning, type Seen } from '../fixtures/processes.ts';
import { wrk } from '../../lib/scenario/load/generators.ts';
import { storeOf } from '../fixtures/local-store.ts';
import {
  keptRounds,
  newOut,
  readResult,
  runFolder,
  startCommand,
  startScenario,
  underLoad,
  useHome,
  wholeResult,
  writeScenario,
} from '../scenario-run.ts';

const name = 'nginx-open-file-cache';
const soon = { timeout: 30_000, interval: 20 };
const home = useHome(['k6', 'nginx', 'influxd']);

const start = (out: string, args: string, variables = {}) =>
  startScenario(`${args} --out ${out}`, { ...home.env, ...variables });

async function allGone(processes: readonly Seen[]) {
  expect(processes.map(({ command }) => command)).toEqual(
    expect.arrayContaining(['k6', 'nginx', 'influxd']),
  );
  await vi.waitFor(() => expect(stillRunning(processes)).toEqual([]), soon);
}

const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0);

test('result.json, the summary of k6 and InfluxDB agree', async () => {
  const out = newOut();
  const run = start(out, `${name} --rounds 2 --warmup 100ms --duration 500ms --json`);
  const result = await wholeResult(run, out);
  expect(JSON.parse(run.stdout())).toEqual(result);
  expect(result).toMatchObject({
    state: 'complete',
    looks: [2],
    variants: [{ name: 'workers' }, { name: 'open-file-cache' }],
    comparisons: [
      { variant: 'open-file-cache', baseline: 'workers', verdict: 'none', why: 'needs 4 rounds' },
    ],
  });
  const bootId = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
  expect(result.environment.bootId).toBe(bootId);
  const rows = result.variants.flatMap(({ name: variant, rounds }) =>
    rounds.flatMap(({ round, phases }) => phases.map((phase) => ({ variant, round, phase }))),
  );
  const [first = NaN, second = NaN] = keptRounds(result);
  expect(second).toBeGreaterThan(first);
  expect(rows.map(({ round }) => round)).toEqual([first, second, first, second]);
  const requests = sum(rows.map(({ phase }) => phase.requests));
  expect(requests).toBeGreaterThan(1000);
  const { written = 0 } = result.integrity?.points ?? {};
  expect(written).toBeGreaterThan(100);
  expect(result.integrity).toEqual({
    requests,
    stored: requests,
    backfilled: 0,
    lost: 0,
    points: { written, stored: written, backfilled: 0, lost: 0 },
  });

  const store = await storeOf(home);
  const query = async (expression: string): Promise<unknown[] | undefined> =>
    (await store.query(expression))[0]?.values.map((row) => row.slice(1));
  for (const { variant, round, phase } of rows) {
    expect(phase.responses['2xx']).toBe(phase.requests);
    expect(phase.bytes.body).toBe(phase.requests * 612);
    // A window begins and ends with a response: beside other work it is shorter than the load.
    expect(phase.seconds).toBeGreaterThan(0.25);
    expect(phase.seconds).toBeLessThan(1);
    expect(phase.serverCpuSeconds).toBeGreaterThan(0);
    expect(phase.serverCpuSeconds).toBeLessThan(phase.seconds * 1.05);
    expect(phase.noise?.loadAverage).toBeGreaterThan(0);
    const summary = JSON.parse(
      readFileSync(join(runFolder(out), `round-${round}`, 'k6-1', 'k6-summary.json'), 'utf8'),
    ) as { metrics: Record<string, { count: number }> };
    expect(summary.metrics['loadgen_requests']?.count).toBe(
      sum(rows.flatMap((row) => (row.round === round ? [row.phase.requests] : []))),
    );
    const where = `"run" = '${result.run}' AND "scenario" = '${name}' AND "variant" = '${variant}' AND "round" = '${round}'`;
    expect(
      await query(
        `SELECT SUM("value") FROM "loadgen_requests" WHERE ${where} AND "phase" = '1' AND "server" = 'nginx' AND "protocol" = 'http/1.1'`,
      ),
    ).toEqual([[phase.requests]]);
    expect(
      await query(`SELECT "requests", "measured_rps" FROM "bench_round" WHERE ${where}`),
    ).toEqual([[phase.requests, phase.rps]]);
  }
  const config = join(runFolder(out), `round-${second}`, 'open-file-cache', 'nginx.conf');
  expect(readFileSync(config, 'utf8')).toMatch(/open_file_cache max=100 inactive=20s;/);
  expect(run.stderr()).toMatch(
    /^round 2 of 2 · open-file-cache · [\d,]+ requests\/s · 0 errors(?: \(round-\d+\))?$/m,
  );
});

test.each([
  ['is closed', 'exec "$@" >&-', 2, /^--json: stdout is closed: /],
  ['is full', 'exec "$@" > /dev/full', 1, /^--json: stdout did not take .*ENOSPC.*result\.json /m],
  [
    'has no reader',
    '"$@" | head -c 0; exit ${PIPESTATUS[0]}',
    1,
    /^--json: stdout did not take .*EPIPE.*result\.json /m,
  ],
])('--json is not lost in silence if stdout %s', async (_what, script, code, message) => {
  const out = newOut();
  const args = `scenario ${name} --variants workers --rounds 1 --warmup 100ms --duration 300ms --store none --json --out ${out}`;
  const run = startCommand(args, home.env, ['bash', '-c', script, 'bash']);
  expect(await run.ended, run.stderr()).toBe(code);
  expect(run.stderr()).toMatch(message);
});

test('counts the same requests as the log of the server, with shared cores and a user config', async () => {
  const out = newOut();
  const folder = join(out, '..');
  const logFile = join(folder, 'access.log');
  writeFileSync(logFile, '');
  chmodSync(logFile, 0o666);
  writeFileSync(join(folder, 'logged.conf'), `http {\n    access_log ${logFile} combined;\n}\n`);
  const file = writeScenario(
    out,
    'logged',
    `load: { ...ab('-c 10 -n 3000 -k'), threads: 4 }, sharedCores: true,
      variants: [{ name: 'logged', server: nginx(['base', '${folder}/logged.conf'], { workers: 1 }) }],`,
  );
  const result = await wholeResult(start(out, `${file} --rounds 1 --store none`), out);
  expect(result.integrity).toBeNull();
  const [{ load, rounds } = expect.fail()] = result.variants;
  expect(rounds[0]?.phases[0]).toMatchObject({
    requests: 3000,
    inFlight: 0,
    warmupRequests: 0,
    responses: { '2xx': 3000 },
    noise: expect.any(Object),
  });
  const all = cpusOf(readProcessors().cores);
  expect(result.environment).toMatchObject({ serverCpus: all, generatorCpus: all });
  expect(load.threads).toBe(Math.min(4, all.length));
  // The other requests are readiness checks. A disturbed round that was repeated is in the log as well.
  const log = readFileSync(logFile, 'utf8')
    .trimEnd()
    .split('\n')
    .filter((line) => !line.includes('bakeoff-ready'));
  expect(log).toHaveLength(3000 * (keptRounds(result)[0] ?? NaN));
});

test('Ctrl-C keeps finished rounds, ends all processes and exits with 130', async () => {
  const out = newOut();
  const csv = `${out}.csv`;
  const run = start(out, `${name} --rounds 3 --warmup 100ms --duration 1500ms --export-csv ${csv}`);
  await underLoad(run, out, 2);
  // Leftovers of a killed run.
  expect(readResult(out)).toMatchObject({
    state: 'partial',
    variants: [{ rounds: [{}] }, { rounds: [{}] }],
  });
  const started = descendants(run.pid);
  run.kill('SIGINT');
  // A terminal signals the whole group.
  const bundler = started.find(({ command }) => command === 'esbuild')?.pid as number;
  process.kill(bundler, 'SIGINT');
  // One signal from the terminal, and one from npm.
  await delay(5);
  run.kill('SIGINT');
  expect(await run.ended).toBe(130);
  await allGone(started);
  const result = readResult(out);
  expect(result.state).toBe('partial');
  expect(result.variants.map(({ rounds }) => rounds.length)).toEqual([1, 1]);
  expect(result.integrity).toMatchObject({ lost: 0 });
  expect(run.stdout()).toMatch(/^open-file-cache +700,324/m);
  expect(run.stdout()).toContain('Ended early, after 1 of 3 rounds. The reason: interrupted.');
  expect(readFileSync(csv, 'utf8')).toMatch(/^open-file-cache,.*,partial,.*\r$/m);
  expect(readFileSync(join(runFolder(out), 'report.html'), 'utf8')).toContain('</html>');
  expect(run.stderr()).toContain('ending the run cleanly');
});

test('a second Ctrl-C ends a run at once; no other run may measure at the same time', async () => {
  const out = newOut();
  const run = start(out, `${name} --rounds 3 --warmup 100ms --duration 5s`);
  await underLoad(run, out, 1);
  // Even with a different store and BAKEOFF_HOME.
  const second = start(newOut(), `${name} --store none`, { BAKEOFF_HOME: newOut() });
  expect(await second.ended).toBe(1);
  expect(second.stderr()).toMatch(
    new RegExp(
      `^another run of bakeoff is measuring \\(process ${run.pid} of \\S+: scenario ${name}, .*\\n$`,
    ),
  );
  await underLoad(run, out, 2);
  const started = descendants(run.pid);
  // k6 waits for a database that does not respond, until the grace period of 10 s is over. The run would end in order after that.
  const influxd = started.find(({ command }) => command === 'influxd')?.pid as number;
  halt(influxd);
  run.kill('SIGINT');
  await vi.waitFor(() => expect(run.stderr()).toContain('again to end it at once'), soon);
  // Soon after the first, or while the run has no core, a signal counts as the same Ctrl-C.
  await vi.waitFor(
    () => {
      run.kill('SIGINT');
      expect(run.hasEnded()).toBe(true);
    },
    { ...soon, interval: 500 },
  );
  expect(await run.ended).toBe(130);
  // What an end in order prints of the first round.
  expect(run.stdout()).not.toContain('Ended early');
  // A run that has ended lets influxd go on, to end in order.
  await allGone(started);
});

test('a server that dies invalidates the round; a second time, the run ends with the results so far', async () => {
  const out = newOut();
  const run = start(out, `${name} --rounds 3 --warmup 100ms --duration 1500ms`);
  const { round, master } = await underLoad(run, out, 1);
  process.kill(master, 'SIGKILL');
  const first = await underLoad(run, out, 2);
  process.kill(first.master, 'SIGKILL');
  process.kill((await underLoad(run, out, 2, { after: first.round })).master, 'SIGKILL');
  expect(await run.ended).toBe(1);
  expect(run.stderr()).toMatch(/^round 1 is dropped and repeated: \S+: nginx \(pid/m);
  expect(run.stderr().trimEnd().split('\n').at(-1)).toMatch(
    /^round 2 failed twice: \S+: nginx \(pid \d+\) ended by SIGKILL/,
  );
  const result = readResult(out);
  expect(result).toMatchObject({
    state: 'partial',
    integrity: { lost: 0 },
    variants: [{ rounds: [{}] }, { rounds: [{}] }],
  });
  expect(keptRounds(result)[0]).toBeGreaterThan(round);
  expect(result.warnings.join('\n')).toContain(
    `round ${round} was dropped and repeated as round ${round + 1}: `,
  );
  expect(run.stdout()).toContain('Ended early, after 1 of 3 rounds');
});

test('an article runs the sides of an open claim alone; one that does not start fails the article', async () => {
  const server = (milliseconds: number) =>
    `node -e "require('http').createServer((asked, answer) => setTimeout(() => answer.end('a'), ${milliseconds})).listen(process.env.PORT, '127.0.0.1')"`;
  const variants = [
    { name: 'slow', server: { name: 'command', command: server(40) } },
    { name: 'fast', server: { name: 'command', command: server(5) }, onRequest: true },
    { name: 'ends', server: { name: 'command', command: 'node -e 0' }, onRequest: true },
  ];
  const claims = ['fast', 'ends'].map((variant) => ({
    quote: 'q',
    place: 'p',
    text: `${variant} is faster`,
    figures: 'none',
    rests: [{ scenario: 'waits', variant, against: 'slow', is: 'faster' }],
  }));
  const scenario = {
    name: 'waits',
    title: 'Two that wait',
    knob: 'wait',
    article: { id: 'own', title: 'Own', date: '2026', claims },
    load: wrk('-c 4 -d 1'),
    page: { path: '/' },
    variants,
  };
  const file = join(home.folder, 'own.mjs');
  writeFileSync(file, `export default [${JSON.stringify(scenario)}];`);
  const out = newOut();
  const quickly = '--rounds 4 --warmup 100ms --duration 300ms --no-look --store none';
  const run = start(out, `${file} ${quickly}`);
  expect(await run.ended, run.stderr()).toBe(1);
  expect(run.stdout(), run.stderr()).toContain('slow and fast alone, about');
  expect(run.stdout()).toMatch(/^fast is faster .* fast against slow: /m);
  expect(run.stdout()).toMatch(/^ends is faster +not decided .*ends: node .* ended/m);
});
