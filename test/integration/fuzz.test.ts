// Short fuzzing with the real Go, of packages whose targets find something or do not.
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { fuzz, fuzzSeconds, fuzzTargets, type GoPackage } from '../../lib/cli/fuzz.ts';
import { findGo, goEnvironment } from '../../lib/setup/k6.ts';
import { thisMachine } from '../../lib/setup/machine.ts';
import { newFolder } from '../fixtures/new-folder.ts';
import { descendants, stillRunning } from '../fixtures/processes.ts';

/** A module with this text in engine/engine_test.go, without its first lines. */
async function goPackage(text: string, signal?: AbortSignal): Promise<GoPackage> {
  const module = newFolder();
  mkdirSync(join(module, 'engine'));
  writeFileSync(join(module, 'go.mod'), 'module tiny\n\ngo 1.21\n');
  writeFileSync(join(module, 'engine/engine_test.go'), `package engine\n\nimport "testing"\n\n${text}`);
  const go = await findGo(thisMachine());
  return {
    command: go.binary, module, folder: './engine', flags: ['-trimpath', '-buildvcs=false'], env: goEnvironment(process.env), ...(signal === undefined ? {} : { signal }),
  };
}

const target = (name: string, body: string): string => `func ${name}(f *testing.F) {\n\tf.Add([]byte("seed"))\n\tf.Fuzz(func(t *testing.T, in []byte) {\n\t\t${body}\n\t})\n}\n`;

test('each target is found and fuzzed; what fails is kept, named, and tried by go test', async () => {
  const engine = await goPackage(`${target('FuzzGood', '_ = in')}\n${target('FuzzBad', 'if len(in) > 9 { t.Fatal("too long") }')}\nfunc TestOther(t *testing.T) {}\n`);
  expect((await fuzzTargets(engine)).targets).toEqual(['FuzzGood', 'FuzzBad']);
  expect(await fuzz('FuzzGood', 1, engine)).toMatchObject({ passed: 1, failed: 0 });
  expect(existsSync(join(engine.module, 'engine/testdata'))).toBe(false);

  const bad = await fuzz('FuzzBad', 30, engine);
  expect(bad).toMatchObject({ passed: 0, failed: 1, output: expect.stringContaining('too long') });
  const kept = /^the input is kept in (.+)$/m.exec(bad.output)?.[1] as string;
  expect(kept.startsWith(join(engine.module, 'engine/testdata/fuzz/FuzzBad/'))).toBe(true);
  expect(readFileSync(kept, 'utf8')).toMatch(/^go test fuzz v1\n/);
  // The input is a seed now, so it fails before anything else is tried, and no other file is named.
  expect(await fuzz('FuzzBad', 30, engine)).toMatchObject({ passed: 0, failed: 1, output: expect.stringContaining(kept.split('/').at(-1) as string) });
});

test('a package without targets, or one that does not compile, has none, and says why', async () => {
  expect((await fuzzTargets(await goPackage('func TestOther(t *testing.T) {}\n'))).targets).toEqual([]);
  const broken = await goPackage('func FuzzOne(f *testing.F) { undefinedName() }\n');
  expect(await fuzzTargets(broken)).toEqual({ targets: [], output: expect.stringContaining('undefined: undefinedName') });
  expect(await fuzz('FuzzOne', 1, broken)).toMatchObject({ passed: 0, failed: 1, output: expect.stringContaining('undefined: undefinedName') });
});

test('Ctrl-C ends it and all that it started, and nothing of it stays', async () => {
  const interrupt = new AbortController();
  const temporary = newFolder();
  const made = await goPackage(target('FuzzGood', '_ = in'), interrupt.signal);
  const engine = { ...made, env: { ...made.env, TMPDIR: temporary } };
  vi.stubEnv('TMPDIR', temporary);
  onTestFinished(() => void vi.unstubAllEnvs());
  const fuzzing = expect(fuzz('FuzzGood', 100, engine)).rejects.toThrow('Ctrl-C');
  // The first one divides the work, the others do it.
  const tests = await vi.waitFor(() => {
    const found = descendants(process.pid).filter(({ command }) => command === 'engine.test');
    expect(found.length).toBeGreaterThan(1);
    return found;
  }, { timeout: 100_000, interval: 50 });
  interrupt.abort(new Error('Ctrl-C'));
  await fuzzing;
  await vi.waitFor(() => expect(stillRunning(tests)).toEqual([]), 5000);
  expect(readdirSync(temporary)).toEqual([]);
});

test.each([[1, 5], [4, 5], [10, 2]])('%i targets get %d s each: 20 s in all at most', (targets, seconds) => {
  expect(fuzzSeconds(targets)).toBe(seconds);
});

test("Go's late end of the time is no failure, and anything beside it is one", async () => {
  const printed = (text: string): Promise<{ passed: number }> => {
    const script = join(newFolder(), 'go');
    writeFileSync(script, `#!/bin/sh\ncat <<'END'\n${text}END\nexit 1\n`, { mode: 0o755 });
    return fuzz('FuzzOne', 1, { command: script, module: tmpdir(), folder: './engine', flags: [] });
  };
  const late = 'fuzz: elapsed: 3s, execs: 40304 (0/sec), new interesting: 104 (total: 108)\n--- FAIL: FuzzOne (3.20s)\n    context deadline exceeded\nFAIL\nexit status 1\nFAIL\ttiny/engine\t3.202s\n';
  expect(await printed(late)).toMatchObject({ passed: 1 });
  expect(await printed(late.replace('FAIL\nexit', '    \n    Failing input written to testdata/fuzz/FuzzOne/1\nFAIL\nexit'))).toMatchObject({ passed: 0 });
  expect(await printed(late.replace('    context', '    fuzz_test.go:9: context'))).toMatchObject({ passed: 0 });
  expect(await printed(late.replace('FAIL\nexit', '    fuzz_test.go:9: more\nFAIL\nexit'))).toMatchObject({ passed: 0 });
});
