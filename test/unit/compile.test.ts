// The commands are compiled once for each state of their sources.
import { mkdirSync, readdirSync, utimesSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, test } from 'vitest';
import { compiledCommands } from '../../bin/compile.mjs';
import { newFolder } from '../fixtures/new-folder.ts';

function project() {
  const folder = `${newFolder()}/`;
  const files = {
    'lib/cli/main.ts':
      "import { word } from '../word.ts';\nexport const said: string = word;\nexport const place = import.meta.url;\n",
    'lib/word.ts': "export const word: string = 'one';\n",
    'lib/index.ts': "export { word } from './word.ts';\n",
    'bin/none.mjs': '',
  };
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), text);
  }
  return folder;
}

const load = async (main: string): Promise<unknown> => ({
  ...((await import(pathToFileURL(main).href)) as object),
});

test('once, also where two start together; anew when a source has changed', async () => {
  const root = project();
  const [first, second] = await Promise.all([compiledCommands(root), compiledCommands(root)]);
  expect(second).toBe(first);
  expect(await load(first)).toEqual({
    said: 'one',
    place: pathToFileURL(join(root, 'lib/cli/main.ts')).href,
  });
  expect(first).toBe(join(root, 'dist/main.mjs'));
  expect(await load(join(root, 'dist/index.mjs'))).toEqual({ word: 'one' });
  const parts = () => readdirSync(join(root, 'dist')).filter((name) => name.startsWith('chunk-'));
  const [old = ''] = parts();
  expect(readdirSync(join(root, 'dist')).sort()).toEqual([old, 'index.mjs', 'main.mjs', 'state']);
  writeFileSync(join(root, 'lib/word.ts'), "export const word: string = 'another';\n");
  await compiledCommands(root);
  // Node has the first one in memory.
  expect(await load(`${first}?another`)).toMatchObject({ said: 'another' });
  expect(parts()).toContain(old);
  // A day later nothing runs from it any more.
  utimesSync(join(root, 'dist', old), new Date(0), new Date(0));
  writeFileSync(join(root, 'lib/word.ts'), "export const word: string = 'a third';\n");
  await compiledCommands(root);
  expect(parts()).toHaveLength(2);
  expect(parts()).not.toContain(old);
});

test('what cannot be compiled leaves nothing behind', async () => {
  const root = project();
  writeFileSync(join(root, 'lib/word.ts'), 'export const = 1;\n');
  await expect(compiledCommands(root)).rejects.toThrow('word.ts');
  expect(readdirSync(join(root, 'dist'))).toEqual([]);
});
