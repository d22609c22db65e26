import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { expect, test, vi } from 'vitest';
import { findScenario } from '../../lib/cli/find-scenario.ts';
import { findVariants } from '../../lib/scenario/catalogue.ts';
import { projectRoot } from '../../lib/setup/paths.ts';
import { run } from '../../lib/process.ts';
import { sharedFolder } from '../fixtures/new-folder.ts';
import { refusalOf } from '../fixtures/refused.ts';

const folder = sharedFolder();

const api = path.join(projectRoot, 'lib/scenario/index.ts');
const source = (name: string) => `
  import { defineScenario, nginx, ab } from ${JSON.stringify(api)};
  export default defineScenario({
    name: '${name}', title: 'mine', article: { id: '000', title: 'x', date: '2015' }, knob: 'x', load: ab('-c 1 -n 10'),
    page: { docroot: 'nginx', path: '/', bodyBytes: 612 },
    variants: [{ name: 'only', server: nginx(['base'], { workers: 1, articleWorkers: 1 }) }],
  });`;

test('findScenario accepts the path of a user file', async () => {
  await mkdir(path.join(folder, 'deeper'));
  await writeFile(path.join(folder, 'mine.ts'), source('mine'));
  vi.stubEnv('INIT_CWD', path.join(folder, 'deeper'));
  for (const file of [path.join(folder, 'mine.ts'), '../mine.ts'])
    expect((await findScenario(file)).name).toBe('mine');
  vi.stubEnv('INIT_CWD', folder);
  expect((await findScenario('mine.ts')).load.command).toBe('ab -c 1 -n 10');
});

// In a separate process, because vitest replaces Node's module loader.
test.concurrent.each([
  ['one in a CommonJS package, with an import and an odd name', 'my # 100%.ts'],
  ['CommonJS, with a module of Node and where it is itself', 'mine.cts'],
])('findScenario loads %s', async (_, file) => {
  const userFolder = path.join(folder, 'own');
  await mkdir(userFolder, { recursive: true });
  await writeFile(path.join(userFolder, 'package.json'), '{}');
  await writeFile(
    path.join(userFolder, 'name.ts'),
    "export const name: string = 'from-its-own-module';",
  );
  const text = file.endsWith('.cts')
    ? `const { basename } = require('node:path');
      if (basename(__dirname) !== 'own') throw new Error(__dirname);
      ${source('from-its-own-module')
        .replace(/import \{(.*?)\} from (.*?);/, 'const {$1} = require($2);')
        .replace('export default', 'module.exports =')}`
    : `import { name } from './name.ts';${source('mine').replace("'mine'", 'name')}`;
  await writeFile(path.join(userFolder, file), text);
  const command = ['scenario', path.join(userFolder, file), '--variants', 'none'];
  const args = [path.join(projectRoot, 'bin/bakeoff.mjs'), ...command];
  expect(await run({ command: process.execPath, args })).toMatchObject({
    stderr: 'there is no variant of from-its-own-module "none": there is only\n',
    code: 2,
  });
});

test('findScenario accepts kernel settings by name and by file', async () => {
  const userFile = path.join(folder, 'networks/own.conf');
  await mkdir(path.dirname(userFile));
  await writeFile(userFile, 'net.core.somaxconn = 1\n');
  const network = (settings: string) =>
    `network: { toServer: { delayMs: 1 }, toClient: { delayMs: 1 }, serverSettings: ${settings}, clientSettings: [] },`;
  const variants = `${network("['article', './own.conf']")}$& ${network("['../networks/own.conf']")}`;
  const file = path.join(folder, 'networks/mine.ts');
  await writeFile(file, source('mine').replace('variants: [{', variants));
  expect(await findScenario(file)).toMatchObject({
    network: { serverSettings: ['article', userFile] },
    variants: [{ network: { serverSettings: [userFile], clientSettings: [] } }],
  });
});

const wrong = source('wrong');
test('all that a scenario file lacks is told, a line each', async () => {
  const file = path.join(folder, 'half.ts');
  await writeFile(file, 'export default { name: "half", variants: [] };');
  const error: unknown = await findScenario(file).catch((reason: unknown) => reason);
  const lines = (error as Error).message.split('\n');
  expect(lines[0]).toBe(`${file}: scenario half: title is missing`);
  expect(lines.slice(1)).toContain('scenario half: load is missing');
  expect(lines.every((line) => line.includes('scenario half: '))).toBe(true);
});

test.each([
  ['nothing.ts', undefined, /there is no scenario file .*nothing\.ts$/],
  ['no-default.ts', 'export const name = 1;', /it has no scenario as its default export/],
  ['broken.ts', wrong.replace('-c 1 -n 10', '-c 1 -X 10'), /ab: -X cannot be honoured/],
  ['throws.ts', 'throw new Error("first line\\nsecond line");', /: first line$/],
])('findScenario: %s is refused in one line', async (file, text, message) => {
  if (text !== undefined) await writeFile(path.join(folder, file), text);
  const loading = findScenario(path.join(folder, file));
  await expect(loading).rejects.toMatchObject({ exitCode: text === undefined ? 2 : 1 });
  const refusal = await refusalOf(loading);
  expect(refusal).toMatch(message);
  expect(refusal).toContain(file);
});

const scenario = await findScenario('nginx-open-file-cache');
const names = (list?: string[]) => findVariants(scenario, list).map((variant) => variant.name);

test("findVariants: the article's by default; named ones in the scenario's order", () => {
  expect(names()).toEqual(['workers', 'open-file-cache']);
  const named = ['workers-unlimited', 'open-file-cache-unlimited'];
  expect(names([named[1] as string, ` ${named[0]} `])).toEqual(named);
});
