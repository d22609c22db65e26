// The commands are compiled once for each state of their sources.
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';
// @ts-expect-error It is plain JavaScript, which runs before there is anything else.
import { compiledCommands as untyped } from '../../bin/compile.mjs';

const compiledCommands = untyped as (projectRoot: string) => Promise<string>;

function project(): string {
  const folder = `${mkdtempSync(join(tmpdir(), 'bakeoff-compile-'))}/`;
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const files = {
    'lib/cli/main.ts': 'import { word } from \'../word.ts\';\nexport const said: string = word;\nexport const place = import.meta.url;\n',
    'lib/word.ts': 'export const word: string = \'one\';\n', 'bench/bench.ts': '', 'package.json': '{}', 'package-lock.json': '{}', 'xk6-loadgen/metrics.json': '{}', 'node_modules/none': '',
  };
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), text);
  }
  return folder;
}

const load = async (main: string): Promise<unknown> => ({ ...await import(pathToFileURL(main).href) as object });

test('once, also where two start together; anew when a source has changed', async () => {
  const root = project();
  const [first, second] = await Promise.all([compiledCommands(root), compiledCommands(root)]);
  expect(second).toBe(first);
  expect(await load(first)).toEqual({ said: 'one', place: pathToFileURL(join(root, 'lib/cli/main.ts')).href });
  expect(readdirSync(join(root, 'node_modules'))).toEqual(['.bakeoff-commands', 'none']);
  writeFileSync(join(root, 'lib/word.ts'), 'export const word: string = \'another\';\n');
  const third = await compiledCommands(root);
  expect(await load(third)).toMatchObject({ said: 'another' });
  expect(existsSync(first)).toBe(true);
  // A day later nothing runs from it any more.
  utimesSync(dirname(first), new Date(0), new Date(0));
  writeFileSync(join(root, 'lib/word.ts'), 'export const word: string = \'a third\';\n');
  await compiledCommands(root);
  expect([existsSync(first), existsSync(third)]).toEqual([false, true]);
});

test('what cannot be compiled leaves nothing behind', async () => {
  const root = project();
  writeFileSync(join(root, 'lib/word.ts'), 'export const = 1;\n');
  await expect(compiledCommands(root)).rejects.toThrow('word.ts');
  expect(readdirSync(join(root, 'node_modules'))).toEqual(['none']);
});
