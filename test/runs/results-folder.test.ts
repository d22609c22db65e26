// The results folder: impossible folders, and file systems that are small or become full.
import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import {
  newOut,
  readResult,
  runFolder,
  startScenario,
  underLoad,
  useHome,
  type ScenarioRun,
} from '../scenario-run.ts';

const name = 'nginx-open-file-cache';
const nobody = 65534;
const home = useHome(['k6', 'nginx']);

const start = (flags: string): ScenarioRun => startScenario(`${name} ${flags}`, home.env);

test('an impossible results folder is refused before anything starts', async () => {
  const out = newOut();
  writeFileSync(out, 'a file in the way');
  const run = start(`--out ${join(out, 'deeper')}`);
  expect(await run.ended).toBe(1);
  expect(run.stderr()).toMatch(
    /^cannot write results to .*deeper: there is a file of that name in its path; [^\n]*\n$/,
  );
  expect(run.stdout()).toBe('');
  expect(readFileSync(out, 'utf8')).toBe('a file in the way');
});

test('a folder in place of a file ends the run with one line', async () => {
  const out = newOut();
  const run = start(`--rounds 2 --warmup 100ms --duration 200ms --store none --out ${out}`);
  const inTheWay = 'round-2/k6-1/load.json';
  await vi.waitFor(
    () => {
      // Until the run has a file in it, the folder has to be empty.
      expect(readdirSync(runFolder(out))).not.toEqual([]);
      mkdirSync(join(runFolder(out), inTheWay), { recursive: true });
    },
    { timeout: 60_000, interval: 10 },
  );
  expect(await run.ended).toBe(1);
  expect(run.stderr().trimEnd().split('\n').at(-1)).toMatch(
    /^cannot write results to .*: there is a folder where a file has to be; fix that or name another folder with --out$/,
  );
  expect(readResult(out).state).toBe('partial');
});

test.runIf(process.getuid?.() === 0)(
  'a run of root keeps to its folder when the owner of the one above puts another in its place',
  async () => {
    const out = newOut();
    mkdirSync(out);
    chownSync(out, nobody, nobody);
    chmodSync(dirname(out), 0o711);
    const run = start(`--rounds 2 --warmup 100ms --duration 200ms --store none --out ${out}`);
    const swap = 'mv "$1" "$2"; mkdir "$1"; echo "throw new Error()" >"$1/script.js"';
    await vi.waitFor(() => expect(existsSync(join(runFolder(out), 'script.js'))).toBe(true), {
      timeout: 60_000,
      interval: 1,
    });
    const mine = runFolder(out);
    execFileSync('sh', ['-c', swap, 'sh', mine, join(out, 'kept')], { uid: nobody, gid: nobody });
    expect(await run.ended, run.stderr()).toBe(0);
    expect(readdirSync(mine)).toEqual(['script.js']);
    const kept = readdirSync(join(out, 'kept'));
    expect(kept).toEqual(expect.arrayContaining(['report.html', 'result.json', 'round-2']));
    expect(run.stdout()).toContain(join(mine, 'report.html'));
    expect(run.stdout() + readFileSync(join(out, 'kept/result.json'), 'utf8')).not.toContain(
      '/proc/',
    );
  },
);

test('a small file system is refused, and a full one keeps the finished rounds', async ({
  skip,
}) => {
  const out = newOut();
  mkdirSync(out);
  mountSmall(out, skip);
  const refused = start(`--rounds 100 --store none --out ${out}`);
  expect(await refused.ended).toBe(1);
  expect(refused.stderr()).toMatch(/has too little space, this run needs \d+ MB: [^\n]*\n$/);
  expect(readdirSync(out)).toEqual([]);

  const run = start(`--rounds 3 --warmup 100ms --duration 700ms --store none --out ${out}`);
  await underLoad(run, out, 2);
  fill(join(runFolder(out), 'filler'));
  expect(await run.ended).toBe(1);
  expect(run.stderr().trimEnd().split('\n').at(-1)).toMatch(
    /^cannot write results to .*: its file system is full; fix that or name another folder with --out$/,
  );
  expect(readResult(out)).toMatchObject({
    state: 'partial',
    variants: [{ rounds: [{}] }, { rounds: [{}] }],
  });
  // The second round may still have been complete.
  expect(run.stdout()).toMatch(/Ended early, after [12] of 3 rounds/);
});

function mountSmall(folder: string, skip: (note: string) => void) {
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=4m', 'tmpfs', folder], { stdio: 'pipe' });
  } catch (error) {
    skip(`a small file system needs root and the right to mount: ${(error as Error).message}`);
  }
  onTestFinished(() => void execFileSync('umount', ['--lazy', folder]));
}

function fill(file: string) {
  for (let size = 1 << 20; size >= 4096;) {
    try {
      writeFileSync(file, Buffer.alloc(size), { flag: 'a' });
    } catch {
      size /= 2;
    }
  }
  expect(existsSync(file)).toBe(true);
}
