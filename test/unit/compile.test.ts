// The commands are compiled once for each state of their sources.
import {
  chownSync,
  cpSync,
  mkdirSync,
  readdirSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, test, vi } from 'vitest';
import { compiledCommands } from '../../bin/compile.mjs';
import { newFolder } from '../fixtures/new-folder.ts';

function project() {
  const folder = `${newFolder()}/`;
  for (const name of ['bin', 'lib/cli', 'scenarios'])
    mkdirSync(join(folder, name), { recursive: true });
  writeFileSync(
    join(folder, 'lib/cli/main.ts'),
    "export { word as said } from '../word.ts';\nexport const place = import.meta.url;\n",
  );
  writeFileSync(join(folder, 'index.ts'), "export { word } from './lib/word.ts';\n");
  return { root: folder, say: (word: string) => writeFileSync(join(folder, 'lib/word.ts'), word) };
}

const load = async (main: string): Promise<unknown> => ({
  ...((await import(pathToFileURL(main).href)) as object),
});

test('once; anew when a source has changed', async () => {
  const { root, say } = project();
  say("export const word: string = 'one';");
  const [first, second] = await Promise.all([compiledCommands(root), compiledCommands(root)]);
  expect(second).toBe(first);
  const place = pathToFileURL(join(root, 'lib/cli/main.ts')).href;
  expect(await load(first)).toEqual({ said: 'one', place });
  expect(first).toBe(join(root, 'dist/main.mjs'));
  expect(await load(join(root, 'dist/index.mjs'))).toEqual({ word: 'one' });
  const parts = () => readdirSync(join(root, 'dist')).filter((name) => name.startsWith('chunk-'));
  const [old = ''] = parts();
  expect(readdirSync(join(root, 'dist')).sort()).toEqual([old, 'index.mjs', 'main.mjs', 'state']);
  say("export const word: string = 'another';");
  await compiledCommands(root);
  // Node has the first version in memory.
  expect(await load(`${first}?another`)).toMatchObject({ said: 'another' });
  expect(parts()).toContain(old);
  // After a day, no process uses the old chunks any more.
  utimesSync(join(root, 'dist', old), new Date(0), new Date(0));
  say("export const word: string = 'a third';");
  await compiledCommands(root);
  expect(parts()).toHaveLength(2);
  expect(parts()).not.toContain(old);
});

test('a copy of a compiled project starts where nothing can be written', async () => {
  const { root, say } = project();
  say("export const word: string = 'one';");
  await compiledCommands(root);
  const copy = `${newFolder()}/`;
  cpSync(root, copy, { recursive: true });
  utimesSync(join(copy, 'lib/word.ts'), new Date(0), new Date(0));
  const before = readdirSync(join(copy, 'dist'), { withFileTypes: true }).map(({ name }) =>
    statSync(join(copy, 'dist', name)),
  );
  const main = await compiledCommands(copy);
  expect(await load(main)).toEqual({
    said: 'one',
    place: pathToFileURL(join(copy, 'lib/cli/main.ts')).href,
  });
  const after = readdirSync(join(copy, 'dist')).map((name) => statSync(join(copy, 'dist', name)));
  expect(after.map(({ ino, mtimeMs }) => [ino, mtimeMs])).toEqual(
    before.map(({ ino, mtimeMs }) => [ino, mtimeMs]),
  );
  writeFileSync(join(copy, 'lib/word.ts'), "export const word: string = 'two';");
  expect(await load(`${await compiledCommands(copy)}?two`)).toMatchObject({ said: 'two' });
});

test('a failed compilation leaves no files behind', async () => {
  const { root, say } = project();
  say('export const = 1;');
  await expect(compiledCommands(root)).rejects.toThrow('word.ts');
  expect(readdirSync(join(root, 'dist'))).toEqual([]);
});

test.runIf(process.getuid?.() === 0)("under sudo, what is compiled is the caller's", async () => {
  const { root, say } = project();
  say("export const word: string = 'one';");
  chownSync(root, 65533, 65533);
  vi.stubEnv('SUDO_UID', '65533').stubEnv('SUDO_GID', '65533');
  await compiledCommands(root);
  const dist = join(root, 'dist');
  const files = [dist, ...readdirSync(dist).map((name) => join(dist, name))];
  expect(files.map((file) => statSync(file).uid)).toEqual(files.map(() => 65533));
});
