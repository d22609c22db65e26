// The start of every command: bin/bakeoff.mjs in a temporary project.
import {
  cpSync,
  mkdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { textOf } from '../../lib/files.ts';
import { projectRoot } from '../../lib/setup/paths.ts';
import { realPath, script, testMachine } from '../fixtures/machine.ts';
import { pidIn, start } from '../fixtures/node-process.ts';
import { isRunning } from '../fixtures/processes.ts';

/** `npm` is shell code that replaces npm; by default the real npm runs, with an empty cache. */
function freshClone(npm?: string) {
  const machine = testMachine({ commands: ['cat', 'flock', 'mkdir', 'ln', 'sleep'] });
  const folder = join(machine.folder, 'project');
  for (const name of ['lib/cli', 'scenarios']) mkdirSync(join(folder, name), { recursive: true });
  for (const file of ['bin', 'package.json', 'package-lock.json', 'tsconfig.json'])
    cpSync(join(projectRoot, file), join(folder, file), { recursive: true });
  writeFileSync(join(folder, 'index.ts'), '');
  const writeMain = (text: string) => writeFileSync(join(folder, 'lib/cli/main.ts'), text);
  writeMain(
    'export async function main(argv: string[]): Promise<number> { console.log(JSON.stringify(argv)); return 7; }\n',
  );
  machine.env.npm_config_cache = join(machine.folder, 'npm-cache');
  machine.env.CALLS = join(machine.folder, 'calls');
  machine.env.FOLDER = machine.folder;
  if (npm === undefined) machine.env.PATH = process.env.PATH;
  else script(machine, 'npm', `echo call >>"$CALLS"; echo "npm notice"; ${npm}`);
  return {
    folder,
    machine,
    run: (...args: string[]) => start([join(folder, 'bin/bakeoff.mjs'), ...args], machine.env),
    npmCalls: () => textOf(machine.env.CALLS as string).split('\n').length - 1,
    writeMain,
  };
}

const makesNodeModules = `mkdir -p node_modules && ln -s ${join(projectRoot, 'node_modules/esbuild')} node_modules/esbuild`;

test('a fresh clone gets packages once, and again for a changed lock file', async () => {
  const { folder, run, npmCalls } = freshClone(makesNodeModules);
  const first = run('scenario', '--json');
  expect(await first.ended).toEqual([7, null]);
  expect(first.stdout()).toBe('["scenario","--json"]\n');
  expect(first.stderr()).toMatch(
    /^Node packages: installing \(npm ci\) …\nNode packages: done in \d+\.\d s\n$/,
  );

  const second = run('compare');
  expect(await second.ended).toEqual([7, null]);
  expect([second.stdout(), second.stderr(), npmCalls()]).toEqual(['["compare"]\n', '', 1]);

  writeFileSync(join(folder, 'package-lock.json'), '{}\n');
  rmSync(join(folder, 'node_modules'), { recursive: true });
  expect(await run().ended).toEqual([7, null]);
  expect(npmCalls()).toBe(2);
});

test.each([
  ['--no-install', {}],
  ['scenario', { BAKEOFF_INSTALL: 'no' }],
])(
  'a fresh clone reports missing packages if it may not install them: %s',
  async (word, variables) => {
    const { machine, run, npmCalls } = freshClone(makesNodeModules);
    Object.assign(machine.env, variables);
    const child = run(word);
    expect(await child.ended).toEqual([1, null]);
    expect(child.stderr()).toMatch(
      /^the Node packages .* none may be installed: run npm ci, or leave out --no-install and .*\n$/,
    );
    expect([child.stdout(), npmCalls()]).toEqual(['', 0]);
  },
);

test('packages from npm ci of the user are kept, unless they differ', async () => {
  const { folder, run, npmCalls } = freshClone(`/bin/rm -r node_modules; ${makesNodeModules}`);
  const lock = 'node_modules/.package-lock.json';
  const listed = readFileSync(join(projectRoot, lock), 'utf8');
  mkdirSync(join(folder, 'node_modules'));
  symlinkSync(join(projectRoot, 'node_modules/esbuild'), join(folder, 'node_modules/esbuild'));
  writeFileSync(join(folder, lock), listed);
  expect(await run().ended).toEqual([7, null]);
  expect(npmCalls()).toBe(0);
  writeFileSync(join(folder, lock), listed.replace(/"sha512-[^"]+"/, '"sha512-another"'));
  expect(await run().ended).toEqual([7, null]);
  expect(npmCalls()).toBe(1);
});

test('two starts at once: one installs, the other waits for it', async () => {
  const { folder, machine, run, npmCalls } = freshClone(
    `i=0; while [ ! -e "$FOLDER/go-on" ] && [ $i -lt 600 ]; do sleep 0.1; i=$((i+1)); done; ${makesNodeModules}`,
  );
  const first = run('one');
  await vi.waitFor(() => expect(npmCalls()).toBe(1), 10_000);
  const second = run('two');
  await vi.waitFor(
    () => expect(waitsForLock(second.process.pid as number, folder)).toBe(true),
    10_000,
  );
  writeFileSync(join(machine.folder, 'go-on'), '');
  for (const { ended } of [first, second]) expect(await ended).toEqual([7, null]);
  expect([first.stdout(), second.stdout(), npmCalls()]).toEqual(['["one"]\n', '["two"]\n', 1]);
});

test('node_modules are not replaced under a running command', async () => {
  const { folder, run, npmCalls, writeMain } = freshClone(
    `/bin/rm -rf node_modules; ${makesNodeModules}`,
  );
  writeMain(
    `export const main = (): Promise<number> => new Promise((resolve) => {
  const timer = setTimeout(resolve, 60_000, 1);
  process.on('SIGTERM', () => { clearTimeout(timer); resolve(7); });
  console.log('runs');
});
`,
  );
  const running = run();
  await vi.waitFor(() => expect(running.stdout()).toBe('runs\n'), 20_000);
  writeFileSync(join(folder, 'package-lock.json'), '{}\n');
  const second = run();
  expect(await second.ended).toEqual([1, null]);
  expect(second.stderr()).toContain('other bakeoff commands still use node_modules');
  expect(npmCalls()).toBe(1);
  running.process.kill('SIGTERM');
  expect(await running.ended).toEqual([7, null]);
  const third = run();
  await vi.waitFor(() => expect(third.stdout()).toBe('runs\n'), 20_000);
  expect(npmCalls()).toBe(2);
}, 60_000);

test('an interrupt ends npm, and the next start installs again', async () => {
  const { machine, run, npmCalls } = freshClone(
    `[ -e "$FOLDER/go-on" ] || { echo $$ >"$FOLDER/pid"; exec sleep 60; }; ${makesNodeModules}`,
  );
  const first = run();
  const npmPid = await pidIn(join(machine.folder, 'pid'));
  first.process.kill('SIGINT');
  expect(await first.ended).toEqual([null, 'SIGINT']);
  await vi.waitFor(() => expect(isRunning(npmPid)).toBe(false), 10_000);
  writeFileSync(join(machine.folder, 'go-on'), '');
  expect(await run().ended).toEqual([7, null]);
  expect(npmCalls()).toBe(2);
});

test('damaged packages are a one-line error', async () => {
  const { run } = freshClone('mkdir -p node_modules');
  const child = run();
  expect(await child.ended).toEqual([1, null]);
  expect(child.stderr()).toMatch(
    /\nbakeoff cannot start: Cannot find package 'esbuild' .* \(remove node_modules and start again; .*\n$/,
  );
});

test.each(['sh', 'bash'])('npm run with %s hands a signal on to the command', async (shell) => {
  const { folder, machine, run, writeMain } = freshClone(makesNodeModules);
  await run().ended;
  rmSync(join(machine.binFolder, 'npm'));
  writeMain(
    `export function main(): Promise<number> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, 20_000, 1);
      process.on('SIGTERM', () => { clearTimeout(timer); console.log('ended in order'); resolve(130); });
      console.log(process.pid);
    });
  }`,
  );
  const env = {
    ...machine.env,
    PATH: process.env.PATH,
    npm_config_update_notifier: 'false',
    npm_config_script_shell: shell,
  };
  const npm = start(
    [realpathSync(realPath('npm')), '--prefix', folder, 'run', '--silent', 'scenario'],
    env,
  );
  const pid = await vi.waitFor(
    () => Number(/^\d+$/m.exec(npm.stdout())?.[0] ?? expect.fail()),
    30_000,
  );
  npm.process.kill('SIGTERM');
  expect(await npm.ended).toEqual([130, null]);
  expect(npm.stdout()).toBe(`${pid}\nended in order\n`);
});

test('no registry: a one-line error with the reason from npm', async () => {
  const { machine, run } = freshClone();
  machine.env.npm_config_registry = 'http://127.0.0.1:1/';
  machine.env.npm_config_fetch_retries = '0';
  // Child processes inherit npm run -s.
  machine.env.npm_config_loglevel = 'silent';
  const child = run('scenario');
  expect(await child.ended).toEqual([1, null]);
  expect(child.stdout()).toBe('');
  expect(child.stderr().split('\n').slice(1)).toEqual([
    expect.stringMatching(/^Node packages could not be installed \(npm ci\): .*ECONNREFUSED/),
    '',
  ]);
});

/** Whether a child process is waiting for a lock on the file. */
function waitsForLock(parent: number, file: string) {
  const { ino } = statSync(file);
  const waiting = readFileSync('/proc/locks', 'utf8')
    .split('\n')
    .filter((line) => line.includes('-> FLOCK') && line.includes(`:${ino} `));
  return waiting.some(
    (line) =>
      readFileSync(`/proc/${line.trim().split(/\s+/)[5]}/stat`, 'utf8')
        .split(') ')[1]
        ?.split(' ')[1] === String(parent),
  );
}
