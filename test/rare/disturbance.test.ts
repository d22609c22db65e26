// Disturbed rounds with a real nginx are dropped and repeated.
import { mkdirSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { expect, test, vi } from 'vitest';
import { linkOf } from '../../lib/files.ts';
import { sendIfThere } from '../../lib/process.ts';
import { descendants, halt, isRunning } from '../fixtures/processes.ts';
import {
  inEachTry,
  loadBegins,
  newOut,
  wholeResult,
  startCommand,
  startScenario,
  underLoad,
  useHome,
  writeScenario,
  type ScenarioRun,
} from '../scenario-run.ts';

/** Long enough that a disturbance after a second ends within it on a busy machine. */
const seconds = 10;

const home = useHome(['k6', 'nginx']);

const args = (out: string, duration = `${seconds}s`) => [
  writeScenario(
    out,
    'one-nginx',
    `load: { ...wrk('-c 10 -t 1 -d ${seconds}'), warmupSeconds: 0.2 }, variants: [{ name: 'kept', server: nginx(['base'], { workers: 1 }) }]`,
  ),
  ...`--rounds 1 --duration ${duration} --store none --out ${out}`.split(' '),
];

/**
 * Disturbs the first round; also its next try, if a busy machine has disturbed the round in another way. Returns when a round is
 * dropped for the reason returned by `act`.
 */
async function disturb(run: ScenarioRun, out: string, act: () => Promise<RegExp> | RegExp) {
  for (let round = 0; ;) {
    // On a busy machine the window begins late.
    const inWindow = { file: 'record.ndjson', text: '"loadgen_requests"' };
    ({ round } = await underLoad(run, out, 1, { ...inWindow, after: round }));
    await delay(1200);
    const reason = await act();
    const dropped = (): RegExpMatchArray[] => [
      ...run.stderr().matchAll(/^round 1 is dropped and repeated: (.*)$/gm),
    ];
    await vi.waitUntil(() => run.hasEnded() || dropped().length >= round, {
      timeout: 60_000,
      interval: 10,
    });
    if (reason.test(dropped()[round - 1]?.[1] ?? '')) return reason;
  }
}

function workerOf(run: ScenarioRun) {
  const worker = descendants(run.pid)
    .filter(({ command }) => command === 'nginx')
    .at(-1);
  if (worker === undefined) throw new Error('there is no nginx');
  return worker.pid;
}

test.each<[string, (run: ScenarioRun) => Promise<RegExp> | RegExp]>([
  [
    'a bakeoff that is stopped for a while',
    async (run) => {
      halt(run.pid);
      await delay(3000);
      run.kill('SIGCONT');
      return /nothing was sampled for [\d.]+ s of the load: bakeoff was stopped/;
    },
  ],
  [
    'a worker that is stopped for a while',
    async (run) => {
      const worker = workerOf(run);
      halt(worker);
      await delay(1400);
      process.kill(worker, 'SIGCONT');
      return /nginx stalled: no response came for [1-9]\.\d+ s while requests were under way/;
    },
  ],
  [
    'a worker that crashes, though its master starts another one',
    async (run) => {
      const worker = workerOf(run);
      process.kill(worker, 'SIGSEGV');
      await vi.waitFor(() => expect(isRunning(worker)).toBe(false), 20_000);
      return /nginx crashed under load, as its log says: \[alert\] worker process exited on signal 11/;
    },
  ],
])('%s invalidates a round, and a later round is complete', async (_, act) => {
  const out = newOut();
  const run = startScenario(args(out), home.env);
  const reason = await disturb(run, out, () => act(run));
  const { state, variants, warnings } = await wholeResult(run, out);
  expect(warnings).toContainEqual(
    expect.stringMatching(
      new RegExp(`^round \\d was dropped and repeated as round \\d: kept: ${reason.source}`),
    ),
  );
  const [round, ...others] = variants[0]?.rounds ?? [];
  expect({ state, others }).toEqual({ state: 'complete', others: [] });
  expect(round?.round).toBeGreaterThan(1);
  const [phase] = round?.phases ?? [];
  expect(phase?.serverCpuSeconds).toBeGreaterThan(0);
  expect(phase?.serverCpuSeconds).toBeLessThan(1.05 * seconds);
});

test('a user page that changes is reported, and the round is kept', async () => {
  const out = newOut();
  const www = join(home.folder, 'www');
  mkdirSync(www);
  writeFileSync(join(www, 'index.html'), 'hello'.repeat(200));
  for (const name of ['a.conf', 'b.conf'])
    writeFileSync(
      join(home.folder, name),
      `events { }\nhttp { access_log off; server { listen 8080; root ${www}; } }\n# ${name}\n`,
    );
  const args = `compare a.conf b.conf --rounds 1 --duration 1s --store none --out ${out}`;
  const run = startCommand(args.split(' '), { ...home.env, INIT_CWD: home.folder });
  await inEachTry(run, out, loadBegins, ({ round }) => {
    writeFileSync(join(www, 'new'), 'hello'.repeat(200 + 6 * round), { mode: 0o644 });
    renameSync(join(www, 'new'), join(www, 'index.html'));
  });
  const { variants, warnings } = await wholeResult(run, out);
  expect(variants.map(({ rounds }) => rounds.length)).toEqual([1, 1]);
  expect(warnings.filter((line) => line.includes('bodies'))).toEqual(
    ['a', 'b'].map(
      (name) =>
        `${name}: under load the bodies had another length on average than when the server was started: part of what is seen is theirs`,
    ),
  );
});

/** The workers of a side of `compare`, found by the log file of their master. */
function workersOf(run: ScenarioRun, side: string): number[] {
  const all = descendants(run.pid).filter(({ command }) => command === 'nginx');
  const ofSide = all.filter(({ pid }) => linkOf(`/proc/${pid}/fd/2`).includes(`/${side}/`));
  const masters = ofSide.map(({ pid }) => pid);
  return masters.flatMap((master) => descendants(master).map(({ pid }) => pid));
}

test('a side that is repeatedly stopped is named, and gets no verdict', async () => {
  const out = newOut();
  for (const name of ['a.conf', 'b.conf'])
    writeFileSync(
      join(home.folder, name),
      `events { }\nhttp { access_log off; server { listen 8080; return 200 hello; } }\n# ${name}\n`,
    );
  const args = `compare a.conf b.conf --rounds 2 --duration 1s --store none --no-look --out ${out}`;
  const run = startCommand(args.split(' '), { ...home.env, INIT_CWD: home.folder });
  while (!run.hasEnded()) {
    const stopped = workersOf(run, 'b');
    for (const pid of stopped) sendIfThere(pid, 'SIGSTOP');
    await Promise.race([run.ended, delay(500)]);
    for (const pid of stopped) sendIfThere(pid, 'SIGCONT');
    await Promise.race([run.ended, delay(300)]);
  }
  const { comparisons, warnings, variants } = await wholeResult(run, out);
  const why = expect.stringMatching(/^b was stopped in \d+ % of its time$/);
  expect(comparisons).toEqual([expect.objectContaining({ verdict: 'none', why })]);
  expect(warnings).toContainEqual(
    expect.stringMatching(/^b was stopped in \d+ % of its time, so .*: find what stops it/),
  );
  const ofA = variants[0]?.rounds.flatMap(({ phases }) => phases) ?? [];
  expect(ofA.map(({ stoppedShare }) => stoppedShare)).toEqual([0, 0]);
});
