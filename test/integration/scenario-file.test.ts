// What the code of a scenario file does to bakeoff's process: nothing.
import { execFileSync } from 'node:child_process';
import {
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import path from 'node:path';
import { afterEach, expect, test, vi } from 'vitest';
import { run } from '../../lib/process.ts';
import { articleOf } from '../../lib/cli/article.ts';
import { exportedScenario, findScenario, findScenarios } from '../../lib/cli/find-scenario.ts';
import { bakeoffFolder, projectRoot } from '../../lib/setup/paths.ts';
import { sharedFolder } from '../fixtures/new-folder.ts';
import { start } from '../fixtures/node-process.ts';
import { isRunning } from '../fixtures/processes.ts';
import { refusalOf } from '../fixtures/refused.ts';

afterEach(() => void vi.unstubAllEnvs());

const valid = `
  import { defineScenario, nginx, wrk } from 'server-bakeoff';
  export default defineScenario({
    name: 'mine', title: 'mine', knob: 'x', load: wrk('-c 1 -t 1 -d 1'), page: { docroot: 'nginx', path: '/' },
    variants: [{ name: 'only', server: nginx(['base'], { workers: 1 }) }],
  });`;

const shared = sharedFolder();

/** Writes `text` as a scenario file. Its folder is the folder for temporary files, too. */
function written(text: string, name = 'mine.ts') {
  const folder = mkdtempSync(path.join(shared, 'own-'));
  const temporary = path.join(folder, 'tmp');
  mkdirSync(temporary);
  const file = path.join(folder, name);
  writeFileSync(file, text);
  writeFileSync(path.join(folder, 'ends.ts'), 'process.exit(0);');
  return { folder, file, temporary };
}

/** The folders of a command that runs a scenario file. For root those of temporary files are in /tmp if others may not enter `temporary`. */
const foldersOf = (pid: number | undefined, temporary: string) =>
  [temporary, '/tmp', bakeoffFolder]
    .flatMap((place) => readdirSync(place))
    .filter((name) => new RegExp(`^bakeoff-\\w+-\\d+-${pid}-`).test(name));

const program = path.join(projectRoot, 'bin/bakeoff.mjs');

const ending = /^\S+mine\.ts: its code ends the process \(.*\): a scenario only exports data\n$/;
const asUsual = /^there is no variant of mine "none": there is only\n$/;

// In a separate process, because vitest replaces Node's process.exit.
test.concurrent.each([
  ['process.exit', `process.exit(0);${valid}`, ending, 1],
  ['process.exit in a module that it imports', `import './ends.ts';${valid}`, ending, 1],
  ['process.exit once it is loaded', `${valid} setImmediate(() => process.exit(0));`, ending, 1],
  [
    'a handler that sets the exit code',
    `${valid} process.on('exit', () => { process.exitCode = 0; });`,
    asUsual,
    2,
  ],
  ['a handler that exits', `${valid} process.on('exit', () => process.exit(0));`, asUsual, 2],
  ['a timer for ever', `${valid} setInterval(() => undefined, 1000);`, asUsual, 2],
  [
    'a top-level await that waits for nothing',
    `${valid} await new Promise(() => undefined);`,
    /^\S+mine\.ts: its top-level await waits for what never comes\n$/,
    1,
  ],
  [
    'a rejection that nobody handles',
    `${valid} void Promise.reject(new Error('it is late'));`,
    /^\S+mine\.ts: it is late\n$/,
    1,
  ],
  [
    'output',
    `${valid} console.log('it says');`,
    /^it says\nthere is no variant of mine "none": there is only\n$/,
    2,
  ],
])(
  'a scenario file with %s neither makes a command green nor silent',
  async (_, text, stderr, code) => {
    const { file, temporary } = written(text);
    const { stdout, ...ended } = await run({
      command: process.execPath,
      args: [program, 'scenario', file, '--variants', 'none'],
      env: { ...process.env, TMPDIR: temporary },
      limit: { seconds: 30, message: 'it does not end' },
    });
    expect(ended).toEqual({ stderr: expect.stringMatching(stderr), code, signal: null });
    expect(stdout).toBe('');
    expect(readdirSync(temporary)).toEqual([]);
  },
);

test('Ctrl-C while a scenario file is loaded leaves nothing', async () => {
  const { folder, file, temporary } = written(
    `import { writeFileSync } from 'node:fs';
     writeFileSync(new URL('begun', import.meta.url), String(process.pid));
     setInterval(() => undefined, 1000);
     await new Promise(() => undefined);`,
  );
  const command = start([program, 'scenario', file], { ...process.env, TMPDIR: temporary });
  const begun = path.join(folder, 'begun');
  await vi.waitFor(() => expect(readdirSync(folder)).toContain('begun'), 30_000);
  command.process.kill('SIGINT');
  expect(await command.ended).toEqual([130, null]);
  expect(foldersOf(command.process.pid, temporary)).toEqual([]);
  const pid = execFileSync('cat', [begun], { encoding: 'utf8' });
  expect(() => process.kill(Number(pid), 0)).toThrow('ESRCH');
});

test('a list of scenarios is an article, and nothing else', async () => {
  const list = valid.replace('export default', 'const one =');
  const { file } = written(`${list}; export default [one, { ...one, name: 'other' }];`);
  const found = await findScenarios(file);
  expect(found).toMatchObject([{ name: 'mine' }, { name: 'other' }]);
  await expect(findScenario(file)).rejects.toThrow('has a list of scenarios, an article');
  expect(() => articleOf([found].flat())).toThrow('give all of them the same `article`');
  const rests = [{ scenario: 'mine', variant: 'a', against: 'z', is: 'faster' as const }];
  const claim = { quote: 'a', place: 'b', text: 'c', figures: 'd', rests };
  const article = { id: '1', title: 't', date: '2026', claims: [claim] };
  const both = [found].flat().map((one) => ({ ...one, article }));
  expect(() => articleOf(both)).toThrow('there is no variant for the claim "c" "a"');
  const { claims: _, ...withoutClaims } = article;
  expect(articleOf(both.map((one) => ({ ...one, article: withoutClaims }))).scenarios).toEqual([
    'mine',
    'other',
  ]);
  const { file: none } = written('export default [];');
  expect(await refusalOf(findScenarios(none))).toMatch('it has no scenario as its default export');
});

test('code that runs for ever is ended', async () => {
  const { file } = written(
    'setInterval(() => undefined, 1000); await new Promise(() => undefined);',
  );
  await expect(exportedScenario(file, 1)).rejects.toThrow('its code has not ended after 1 s');
});

/** Starts a process that leaves its group and its session, and writes its id to the file `left` beside the scenario. */
const leaving = `
  import { spawn } from 'node:child_process';
  import { renameSync, writeFileSync } from 'node:fs';
  const child = spawn('sleep', ['300'], { detached: true, stdio: 'ignore' });
  child.unref();
  const left = new URL('left', import.meta.url);
  writeFileSync(new URL('unfinished', left), String(child.pid));
  renameSync(new URL('unfinished', left), left);
`;

test('a process that the code leaves in the background ends with it', async () => {
  const { folder, file } = written(leaving + valid);
  expect(await findScenario(file)).toMatchObject({ name: 'mine' });
  const left = Number(readFileSync(path.join(folder, 'left'), 'utf8'));
  expect(left).toBeGreaterThan(1);
  expect(isRunning(left)).toBe(false);
});

test('KILL while a scenario file is loaded leaves neither processes nor files', async () => {
  const { folder, file, temporary } = written(
    `${leaving} setInterval(() => undefined, 1000); await new Promise(() => undefined);`,
  );
  const command = start([program, 'scenario', file], { ...process.env, TMPDIR: temporary });
  await vi.waitFor(() => expect(readdirSync(folder)).toContain('left'), 30_000);
  const left = Number(readFileSync(path.join(folder, 'left'), 'utf8'));
  const { pid } = command.process;
  expect(foldersOf(pid, temporary)).toHaveLength(1);
  command.process.kill('SIGKILL');
  expect(await command.ended).toEqual([null, 'SIGKILL']);
  // Processes may take 5 s to end by themselves.
  await vi.waitFor(() => expect(foldersOf(pid, temporary)).toEqual([]), 20_000);
  expect(isRunning(left)).toBe(false);
});

test('a pipe in the place of the answer does not hang the command', async () => {
  const { file } = written(`
    import { execFileSync } from 'node:child_process';
    import { readFileSync } from 'node:fs';
    const [, , folder] = readFileSync('/proc/self/cmdline', 'utf8').split('\\0');
    execFileSync('mkfifo', [folder + '/answer']);
    process.exit(0);`);
  expect(await refusalOf(findScenario(file))).toBe(`${file}: its data: ${special}`);
});

const special = 'it is a pipe, socket or device, not a file';

test('a pipe, a device and a file without end are refused, also as an import', async () => {
  const { folder, file } = written(`import './pipe.ts';${valid}`);
  vi.stubEnv('TMPDIR', path.join(folder, 'tmp'));
  const pipe = path.join(folder, 'pipe.ts');
  const long = path.join(folder, 'long.ts');
  execFileSync('mkfifo', [pipe]);
  writeFileSync(long, '');
  truncateSync(long, 2 ** 40);
  for (const [name, problem] of [
    [pipe, special],
    ['/dev/zero', special],
    [file, `${pipe}: ${special} (line 1)`],
    [long, 'it has more than 100 MB'],
  ] as const)
    expect(await refusalOf(findScenario(name))).toBe(`${name}: ${problem}`);
  expect(readdirSync(path.join(folder, 'tmp'))).toEqual([]);
});

test('a function in a scenario is refused', async () => {
  const { file } = written(valid.replace("title: 'mine'", "$&, prepare: () => 'true'"));
  // defineScenario says it first.
  expect(await refusalOf(findScenario(file))).toMatch(/: scenario mine: prepare has to be a text/);
  writeFileSync(file, "export default { name: 'plain', title: () => 'x', variants: [] };");
  expect(await refusalOf(findScenario(file))).toMatch(/: a scenario may have data only: \(\) => /);
});

test('a tsconfig.json in a parent folder leads no import elsewhere', async () => {
  const { folder } = written('');
  const own = path.join(folder, 'own');
  mkdirSync(own);
  const paths = { named: ['./elsewhere.ts'] };
  writeFileSync(path.join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions: { paths } }));
  writeFileSync(path.join(folder, 'elsewhere.ts'), 'export const title = "elsewhere";');
  const file = path.join(own, 'mine.ts');
  writeFileSync(file, `import { title } from 'named';${valid.replace("title: 'mine'", 'title')}`);
  expect(await refusalOf(findScenario(file))).toBe(`${file}: Could not resolve "named" (line 1)`);
});

test('a package that code can do without need not be there', async () => {
  const { file } = written(`try { require('optional'); } catch {}\n${valid}`);
  expect(await exportedScenario(file)).toMatchObject({ name: 'mine' });
});

test('what code imports by a computed name is not looked for among temporary files', async () => {
  const { file, folder, temporary } = written('');
  for (const place of [temporary, folder]) mkdirSync(path.join(place, 'node_modules'));
  const planted = path.join(temporary, 'node_modules/planted.cjs');
  writeFileSync(planted, `require('node:fs').writeFileSync('${folder}/ran', '')`);
  const asked = `const name = ['planted', 'cjs'].join('.'); await import(name).catch(() => undefined);`;
  writeFileSync(file, asked + valid);
  vi.stubEnv('TMPDIR', temporary);
  expect(await exportedScenario(file)).toMatchObject({ name: 'mine' });
  expect(existsSync(path.join(folder, 'ran'))).toBe(false);
});

test.runIf(process.geteuid?.() === 0)(
  'root compiles no scenario beside packages of another user',
  async () => {
    const { file, folder } = written(valid);
    mkdirSync(path.join(folder, 'node_modules'));
    chownSync(path.join(folder, 'node_modules'), 12_345, 12_345);
    expect(await refusalOf(findScenario(file))).toBe(
      `${file}: ${folder}/node_modules belongs to user 12345, and Node reads it for the scenario: remove it, or move the scenario`,
    );
  },
);
