// Short fuzzing with the real Go, of packages whose targets find something or do not.
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { findGo, goEnvironment } from '../../lib/setup/k6.ts';
import { thisMachine } from '../../lib/setup/machine.ts';
import { newFolder } from '../fixtures/new-folder.ts';
import { fuzz, fuzzTargets, type GoPackage } from '../fuzz.ts';

/** A module with this text in engine/engine_test.go, without its first lines. */
async function goPackage(text: string): Promise<GoPackage> {
  const module = newFolder();
  mkdirSync(join(module, 'engine'));
  writeFileSync(join(module, 'go.mod'), 'module tiny\n\ngo 1.21\n');
  writeFileSync(
    join(module, 'engine/engine_test.go'),
    `package engine\n\nimport "testing"\n\n${text}`,
  );
  const go = await findGo(thisMachine());
  return {
    command: go.binary,
    module,
    folder: './engine',
    flags: ['-trimpath', '-buildvcs=false'],
    env: goEnvironment(process.env),
  };
}

const target = (name: string, body: string): string =>
  `func ${name}(f *testing.F) {\n\tf.Add([]byte("seed"))\n\tf.Fuzz(func(t *testing.T, in []byte) {\n\t\t${body}\n\t})\n}\n`;

test('each target is found and fuzzed; an input that fails is kept and named', async () => {
  const engine = await goPackage(
    `${target('FuzzGood', '_ = in')}\n${target('FuzzBad', 'if len(in) > 9 { t.Fatal("too long") }')}\nfunc TestOther(t *testing.T) {}\n`,
  );
  expect((await fuzzTargets(engine)).targets).toEqual(['FuzzGood', 'FuzzBad']);
  expect(await fuzz('FuzzGood', 1, engine)).toMatchObject({ passed: 1, failed: 0 });
  expect(existsSync(join(engine.module, 'engine/testdata'))).toBe(false);

  const bad = await fuzz('FuzzBad', 30, engine);
  expect(bad).toMatchObject({ passed: 0, failed: 1, output: expect.stringContaining('too long') });
  const [, kept = ''] = /Failing input written to (\S+)/.exec(bad.output) ?? [];
  expect(existsSync(join(engine.module, 'engine', kept))).toBe(true);
});

test('a package that does not compile fails, and says why', async () => {
  const broken = await goPackage('func FuzzOne(f *testing.F) { undefinedName() }\n');
  expect(await fuzzTargets(broken)).toEqual({
    targets: [],
    output: expect.stringContaining('undefined: undefinedName'),
  });
  expect(await fuzz('FuzzOne', 1, broken)).toMatchObject({
    passed: 0,
    failed: 1,
    output: expect.stringContaining('undefined: undefinedName'),
  });
});

test("Go's late end of the time is no failure, and anything beside it is one", async () => {
  const printed = (text: string): Promise<{ passed: number }> => {
    const script = join(newFolder(), 'go');
    writeFileSync(script, `#!/bin/sh\ncat <<'END'\n${text}END\nexit 1\n`, { mode: 0o755 });
    return fuzz('FuzzOne', 1, { command: script, module: tmpdir(), folder: './engine', flags: [] });
  };
  const late =
    'fuzz: elapsed: 3s, execs: 40304 (0/sec), new interesting: 104 (total: 108)\n--- FAIL: FuzzOne (3.20s)\n    context deadline exceeded\nFAIL\nexit status 1\nFAIL\ttiny/engine\t3.202s\n';
  expect(await printed(late)).toMatchObject({ passed: 1 });
  expect(
    await printed(
      late.replace(
        'FAIL\nexit',
        '    \n    Failing input written to testdata/fuzz/FuzzOne/1\nFAIL\nexit',
      ),
    ),
  ).toMatchObject({ passed: 0 });
  expect(await printed(late.replace('    context', '    fuzz_test.go:9: context'))).toMatchObject({
    passed: 0,
  });
  expect(
    await printed(late.replace('FAIL\nexit', '    fuzz_test.go:9: more\nFAIL\nexit')),
  ).toMatchObject({ passed: 0 });
});
