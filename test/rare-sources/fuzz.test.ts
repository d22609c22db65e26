// Fuzzing of the engine and its parsers, with the race detector.
import { basename, join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { run } from '../../lib/process.ts';
import { thisMachine } from '../../lib/setup/machine.ts';
import { ensureTools } from '../../lib/setup/tools.ts';
import { sharedFolder } from '../fixtures/new-folder.ts';
import { runGo, quickly } from '../go.ts';

const packages = [
  'engine',
  'internal/h1',
  'internal/h2',
  'internal/h3',
  'internal/headers',
  'internal/tlsconn',
];
const folder = sharedFolder();

beforeAll(async () => {
  const { gcc } = await ensureTools(['gcc']);
  const args = ['test', '-vet=off', '-race', '-c', '-o', `${folder}/`];
  const env = { ...quickly.env, CGO_ENABLED: '1', CC: gcc };
  await runGo([...args, ...packages.map((path) => `./${path}`)], { ...quickly, env });
}, 900_000);

test.each(packages)('fuzzing of %s', async (path) => {
  const { stdout } = await runTests(path, ['-test.list', '^Fuzz']);
  const targets = stdout.match(/^Fuzz\w*$/gm) ?? [];
  expect(targets).not.toEqual([]);
  for (const target of targets) {
    const { code, ...printed } = await runTests(path, [
      '-test.run=^$',
      `-test.fuzz=^${target}$`,
      `-test.fuzzcachedir=${folder}`,
      '-test.fuzztime=2s',
      '-test.fuzzminimizetime=1s',
    ]);
    const output = printed.stdout + printed.stderr;
    // Before 1.27, Go may report the end of -fuzztime as a failure if a worker is late (golang/go#75804).
    const endedLate = /^--- FAIL: \S+ \([\d.]+s\)\n +context deadline exceeded\n(FAIL|exit)/m;
    if (code !== 0) expect(output).toMatch(endedLate);
    else expect(output).toContain('fuzz: elapsed');
  }
});

/** Runs the tests of a package as built with the race detector. Go stores an input that fails in the package's testdata, as a test. */
function runTests(path: string, args: readonly string[]) {
  const machine = thisMachine();
  return run({
    command: join(folder, `${basename(path)}.test`),
    args,
    cwd: join(machine.k6Sources, path),
    // An interrupted Go fuzzer leaves 100 MB per worker in TMPDIR.
    env: { ...machine.env, GOGC: '100', TMPDIR: folder },
  });
}
