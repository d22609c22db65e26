import {
  chmodSync,
  chownSync,
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readFileSync,
  readdirSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { spawnSync, type StdioOptions } from 'node:child_process';
import path from 'node:path';
import { afterEach, expect, it, onTestFinished, vi } from 'vitest';
import { userUmask } from '../../lib/files.ts';
import { run, type Before } from '../../lib/process.ts';
import { pidNamespace, removeLeftCgroups } from '../../lib/servers/scope.ts';
import { makeScratch, temporaryFolder } from '../../lib/servers/scratch.ts';
import { projectRoot } from '../../lib/setup/paths.ts';
import { newFolder } from '../fixtures/new-folder.ts';

afterEach(() => void vi.unstubAllEnvs());

const asRoot = it.runIf(process.getuid?.() === 0);

/** Sets the temporary folder of the system for one test. */
function temporary(mode = 0o1777) {
  const folder = newFolder();
  chmodSync(folder, mode);
  vi.stubEnv('TMPDIR', folder);
  return folder;
}

it('removes only empty cgroups left by killed processes of this namespace', () => {
  const folder = newFolder();
  const namespace = pidNamespace();
  // Above Linux's pid_max.
  const left = [`bakeoff-server-${namespace}-99999999-a`, `bakeoff-probe-${namespace}-99999999-b`];
  const others = [
    `bakeoff-server-${namespace}-${process.pid}-a`,
    `bakeoff-server-${Number(namespace) + 1}-99999999-a`,
    `bakeoff-server-${namespace}-99999999-busy`,
    'system.slice',
  ];
  for (const name of [...left, ...others]) mkdirSync(path.join(folder, name));
  mkdirSync(path.join(folder, `bakeoff-server-${namespace}-99999999-busy`, 'process'));
  removeLeftCgroups(folder);
  expect(readdirSync(folder).sort()).toEqual(others.sort());
});

asRoot('removes only folders that killed processes of this user and namespace left', async () => {
  const folder = temporary();
  const current = path.basename(await temporaryFolder());
  // Above Linux's pid_max.
  const dead = current.replace(/-\d+-\w+$/, '-99999999-');
  const precious = path.join(folder, 'elsewhere/precious');
  const made = (name: string) => {
    mkdirSync(path.join(folder, name, 'temp'), { recursive: true });
    writeFileSync(path.join(folder, name, 'temp/file'), 'x');
    return name;
  };
  made('elsewhere');
  writeFileSync(precious, 'x');
  symlinkSync(path.dirname(precious), path.join(folder, made(`${dead}gone`), 'temp/link'));
  symlinkSync(path.dirname(precious), path.join(folder, `${dead}link`));
  writeFileSync(path.join(folder, `${dead}file`), 'x');
  chownSync(path.join(folder, made(`${dead}other`)), 65_534, 65_534);
  made('bakeoff-server-1-99999999-namespace');
  const { temp, end } = await makeScratch();
  onTestFinished(end);
  expect(readdirSync(folder).toSorted()).toEqual(
    [
      'elsewhere',
      current,
      path.basename(path.dirname(temp)),
      'bakeoff-server-1-99999999-namespace',
      ...['link', 'file', 'other'].map((name) => dead + name),
    ].toSorted(),
  );
  expect(existsSync(precious)).toBe(true);
});

asRoot('waits once for what cannot be removed', async () => {
  const folder = temporary();
  const left = (await temporaryFolder()).replace(/-\d+-\w+$/, '-99999999-busy');
  mkdirSync(path.join(left, 'temp'), { recursive: true });
  const mounted = spawnSync('mount', ['-t', 'tmpfs', 'tmpfs', path.join(left, 'temp')]);
  expect(mounted.status, String(mounted.stderr)).toBe(0);
  onTestFinished(() => void spawnSync('umount', [path.join(left, 'temp')]));
  await temporaryFolder();
  expect(readdirSync(folder)).toContain(path.basename(left));
  const file = path.join(left, 'temp/file');
  writeFileSync(file, '');
  await temporaryFolder();
  expect(existsSync(file)).toBe(true);
});

asRoot('is closed to other users, and its user gets only its files', async () => {
  temporary();
  const scratch = await makeScratch({ name: 'other', uid: 65_533, gid: 65_533 });
  onTestFinished(scratch.end);
  const config = scratch.keep('/results/nginx.conf', 'text');
  const copy = scratch.keep('/tls/own.key', 'secret');
  expect(readFileSync(copy, 'utf8')).toBe('secret');
  expect(scratch.withOwnPaths(`${copy} and ${config}:3`)).toBe(
    '/tls/own.key and /results/nginx.conf:3',
  );
  const top = path.dirname(scratch.temp);
  expect(statSync(top).mode & 0o777).toBe(0o700);
  scratch.give();
  const rights = (file: string) =>
    `${statSync(file).uid} ${(statSync(file).mode & 0o777).toString(8)}`;
  expect([top, path.dirname(copy), scratch.temp, copy, config].map(rights)).toEqual([
    '0 711',
    '0 711',
    '65533 700',
    '65533 400',
    '65533 400',
  ]);
  scratch.forget();
  expect(existsSync(copy)).toBe(false);
  await scratch.end();
  expect(existsSync(top)).toBe(false);
});

asRoot("takes /tmp if root's temporary folder is closed to others", async () => {
  const folder = temporary(0o700);
  const scratch = await makeScratch();
  onTestFinished(scratch.end);
  expect(scratch.temp.startsWith('/tmp/bakeoff-server-')).toBe(true);
  expect(readdirSync(folder)).toEqual([]);
});

it('programs inside do not inherit open files of bakeoff', () => {
  const script = `
    import { run } from './lib/process.ts';
    console.log((await run({ command: 'sh', args: ['-c', 'ls -l /proc/self/fd'] })).stdout);`;
  const descriptor = openSync(path.join(newFolder(), 'precious'), 'w+');
  onTestFinished(() => closeSync(descriptor));
  // Node itself closes only the lowest descriptors in child processes.
  const stdio: StdioOptions = Array.from({ length: 40 }, () => 'ignore');
  stdio.fill('pipe', 1, 3).push(descriptor);
  const args = ['--import', 'tsx', '--input-type=module', '-e', script];
  const { stdout } = spawnSync(process.execPath, args, {
    cwd: projectRoot,
    encoding: 'utf8',
    stdio,
  });
  expect(stdout).toMatch(/ 40 -> \/dev\/null$/m);
  expect(stdout).not.toContain('precious');
});

asRoot('what runs in it has the umask that bakeoff was started with', async () => {
  temporary();
  const scratch = await makeScratch();
  onTestFinished(scratch.end);
  const closed: Before = ['sh', '-c', 'umask 077; exec "$@"', 'sh'];
  const before = [closed, ...scratch.enter];
  const { stdout } = await run({ command: 'sh', args: ['-c', 'umask'], before });
  expect(parseInt(stdout, 8)).toBe(userUmask);
  expect(userUmask).not.toBe(0o077);
});
