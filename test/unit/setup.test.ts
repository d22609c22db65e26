import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { ensureTools, missingTools } from '../../lib/setup/tools.ts';
import {
  findGo,
  hashOfSources,
  k6Package,
  k6Path,
  lookForK6,
  quickFlags,
  sourcesFile,
} from '../../lib/setup/k6.ts';
import { Progress, atLeast, thisMachine } from '../../lib/setup/machine.ts';
import { projectRoot } from '../../lib/setup/paths.ts';
import { run } from '../../lib/process.ts';
import { script, source, testMachine, tinyK6 } from '../fixtures/machine.ts';
import { screen } from '../fixtures/screen.ts';
import { main } from '../../lib/cli/main.ts';

test('a command that ignores TERM is ended by KILL', async () => {
  const machine = testMachine();
  const stubborn = script(machine, 'stubborn', 'trap "" TERM; echo up; while :; do sleep 1; done');
  const controller = new AbortController();
  let pid = 0;
  const over = run({
    command: stubborn,
    args: [],
    env: machine.env,
    signal: controller.signal,
    started: (id) => void (pid = id),
  });
  await vi.waitFor(
    () => expect(readFileSync(`/proc/${pid}/cmdline`, 'utf8')).toContain('stubborn'),
    20_000,
  );
  controller.abort(new Error('enough'));
  await expect(over).rejects.toThrow('enough');
  expect(existsSync(`/proc/${pid}`)).toBe(false);
}, 20_000);

test('a variable takes precedence over PATH, and PATH over other folders', async () => {
  const machine = testMachine();
  const sbin = join(machine.folder, 'sbin');
  mkdirSync(sbin);
  machine.extraFolders = [sbin];
  for (const name of ['nginx', 'wrk']) writeFileSync(join(sbin, name), '', { mode: 0o755 });
  script(machine, 'nginx', 'exit 0');
  const program = script(machine, 'my-nginx', 'exit 0');
  const k6 = script(machine, 'my-k6', 'exit 0');
  machine.env.NGINX_BIN = program;
  machine.env.K6_BIN = k6;
  expect(await ensureTools(['nginx', 'k6'], machine)).toEqual({ nginx: program, k6 });
  machine.env.NGINX_BIN = '';
  expect(await ensureTools(['nginx', 'wrk'], machine)).toEqual({
    nginx: join(machine.binFolder, 'nginx'),
    wrk: join(sbin, 'wrk'),
  });
  expect(machine.printed()).toBe('');
});

test('a k6 package for another architecture is not used', async () => {
  const machine = testMachine();
  const folder = join(machine.folder, 'node_modules', k6Package(process.arch));
  mkdirSync(folder, { recursive: true });
  source(machine, 'go.mod', 'module tiny\n\ngo 1.21\n');
  writeFileSync(join(folder, 'package.json'), '{}');
  writeFileSync(join(folder, sourcesFile), await hashOfSources(machine.k6Sources));
  const header = readFileSync(process.execPath).subarray(0, 64);
  writeFileSync(join(folder, 'k6'), header, { mode: 0o755 });
  writeFileSync(join(folder, 'sizes.json'), JSON.stringify({ k6: 64 }));
  expect(await lookForK6(machine)).toEqual({ path: join(folder, 'k6') });
  const other = Buffer.from(header);
  // The processor in an ELF header: 62 is x86-64, 183 is ARM64.
  other.writeUInt16LE(header.readUInt16LE(18) === 62 ? 183 : 62, 18);
  writeFileSync(join(folder, 'k6'), other);
  await expect(lookForK6(machine)).rejects.toThrow();
  expect(machine.printed()).toBe(
    `k6 of the package ${k6Package(process.arch)} is of another architecture: it is built instead\n`,
  );
});

test('other flags for Go lead to another build', async () => {
  const machine = testMachine();
  source(machine, 'go.mod', 'module tiny\n\ngo 1.21\n');
  const go = { binary: '/bin/go', version: 'go1.26', architecture: 'amd64' };
  const path = await k6Path(machine, go);
  expect(await k6Path(machine, go, quickFlags)).toBe(path);
  expect(await k6Path(machine, go, quickFlags.slice(1))).not.toBe(path);
});

test('a variable without an executable file is an error', async () => {
  const machine = testMachine();
  script(machine, 'nginx', 'exit 0');
  const plain = join(machine.folder, 'plain');
  writeFileSync(plain, 'text');
  for (const wrong of [plain, machine.folder]) {
    machine.env.NGINX_BIN = wrong;
    await expect(ensureTools(['nginx'], machine)).rejects.toThrow(
      `NGINX_BIN=${wrong} is not an executable file: correct it, or unset it`,
    );
  }
});

test.each([
  ['apt-get', 'apt-get install --no-install-recommends', 'nghttp2-server', 'apache2-utils'],
  ['pacman', 'pacman -S', undefined, 'apache'],
])(
  'without root, %s: one line per missing tool, with the command',
  async (manager, command, nghttpd, ab) => {
    const machine = testMachine();
    script(machine, manager, 'exit 1');
    script(machine, 'wrk', 'exit 0');
    const line = (tool: string, name: string | undefined) =>
      `${tool} is missing: ${name === undefined ? 'get it from https://nghttp2.org' : `install it with: sudo ${command} ${name}`}, or set ${tool.toUpperCase()}_BIN to its path`;
    await expect(ensureTools(['wrk', 'nginx', 'nghttpd', 'ab'], machine)).rejects.toMatchObject({
      message: [line('nginx', 'nginx'), line('nghttpd', nghttpd), line('ab', ab)].join('\n'),
      exitCode: 1,
    });
  },
);

test('tools that cannot be installed are listed, each with a remedy', async () => {
  const machine = testMachine();
  script(machine, 'apt-get', 'exit 1');
  script(machine, 'nginx', 'exit 0');
  const missing = await missingTools(['nginx', 'h2o'], machine);
  expect([...missing]).toEqual([
    [
      'h2o',
      expect.stringMatching(/^h2o is missing: .*sudo apt-get install .* h2o, or set H2O_BIN/),
    ],
  ]);
  expect(await missingTools(['h2o'], { ...machine, isRoot: true, mayInstall: true })).toEqual(
    new Map(),
  );
});

test('root gets no sudo; without a package manager the remedy is a URL', async () => {
  const machine = testMachine({ isRoot: true });
  await expect(ensureTools(['influxd'], machine)).rejects.toThrow(
    'influxd is missing: get it from https://docs.influxdata.com/',
  );
  script(machine, 'apk', 'exit 1');
  await expect(ensureTools(['influxd'], machine)).rejects.toThrow(
    'install it with: apk add influx',
  );
});

test('without Go: the required version and the URL', async () => {
  const machine = testMachine();
  tinyK6(machine, 'one');
  source(machine, 'go.mod', 'module tiny\n\ngo 1.26\n');
  await expect(ensureTools(['k6', 'wrk'], machine)).rejects.toThrow(
    /^Go is missing: k6 is built with Go 1\.26 or newer, get it from https:\/\/go\.dev\/dl\/, or set K6_BIN .*\nwrk is missing: .*$/,
  );
});

test('a newer Go is accepted; an old Go is named', async () => {
  const machine = testMachine();
  source(machine, 'go.mod', 'module tiny\n\ngo 1.25.3\n');
  const old = script(machine, 'go', 'echo go1.19.8; echo amd64');
  await expect(findGo(machine)).rejects.toThrow(
    `Go is too old (${old} is go1.19.8): k6 is built with Go 1.25.3 or newer`,
  );
  const folder = join(machine.folder, 'usr-local-go');
  mkdirSync(folder);
  const newer = join(folder, 'go');
  writeFileSync(newer, '#!/bin/sh\necho go1.25.3; echo arm64\n', { mode: 0o755 });
  machine.extraFolders = [folder];
  expect(await findGo(machine)).toMatchObject({ binary: newer, architecture: 'arm64' });
});

test.each([
  ['go1.26.8', '1.26', true],
  ['go1.9', '1.10', false],
  ['devel go1.27-abc123', '1.26', true],
  ['weekly', '1.26', false],
])('%s is at least %s: %s', (version, needed, expected) => {
  expect(atLeast(version, needed)).toBe(expected);
});

test('progress in a pipe: a line at the start and the end of each step', async () => {
  let text = '';
  const progress = new Progress({ write: (more) => void (text += more) });
  await progress.step('nginx', 'installing', async (step) => step.result('ready'));
  const failing = progress.step('k6', 'building', () => Promise.reject(new Error('no')));
  await expect(failing).rejects.toThrow('no');
  expect(quick(text)).toBe(
    'nginx: installing …\nnginx: ready, 0.0 s\nk6: building …\nk6: failed, 0.0 s\n',
  );
});

test('progress on a terminal: a line per running step, below finished ones', async () => {
  let text = '';
  const write = (more: string): void => void (text += more);
  const progress = new Progress({ isTTY: true, columns: 24, write });
  await progress.step('k6', 'building from sources', async () => {
    await progress.step('nginx', 'installing', async () => {});
  });
  expect(quick(screen(text))).toBe('nginx: done, 0.0 s\nk6: done, 0.0 s\n');
  const beforeEnd = text.slice(0, text.lastIndexOf('\r'));
  expect(quick(screen(beforeEnd))).toBe('nginx: done, 0.0 s\nk6: building from sourc');
});

/** Replaces durations below 10 s, which depend on the machine's load. */
const quick = (text: string) => text.replaceAll(/\d\.\d s/g, '0.0 s');

const program = join(projectRoot, 'bin/bakeoff.mjs');

const start = (change: string) =>
  run({
    command: process.execPath,
    args: ['--import', `data:text/javascript,${change}`, program, '--help'],
  });
const onNode = (version: string) =>
  `Object.defineProperty(process, "versions", { value: { ...process.versions, node: "${version}" } })`;

test.each([
  ['20.19.0', true],
  ['22.11.0', false],
])('Node %s: %s', async (version, fits) => {
  expect(await start(onNode(version))).toMatchObject({
    code: fits ? 0 : 1,
    stderr: fits
      ? ''
      : expect.stringMatching(new RegExp(`^bakeoff needs Node .* ${version}: .*\n$`)),
  });
});

test('a limit on the address space is a one-line error', async () => {
  const limited = (bytes: number) =>
    run({ command: 'prlimit', args: [`--as=${bytes}`, process.execPath, program, '--help'] });
  expect(await limited(4_096_000_000)).toMatchObject({
    code: 1,
    stdout: '',
    stderr: expect.stringMatching(/^the address space .* 4\.1 GB here, .* ulimit -v unlimited\n$/),
  });
  expect(await limited(64e9)).toMatchObject({ code: 0, stderr: '' });
});

test('a temporary folder that is not there: a one-line error', () => {
  const env = { ...process.env, TMPDIR: '/no/such/folder' };
  const { stderr } = spawnSync(process.execPath, [program, '--help'], { env, encoding: 'utf8' });
  expect(stderr).toBe(
    'no files can be written to /no/such/folder: make that folder, or name another one in TMPDIR\n',
  );
});

test('a limit of open files that is too low: a one-line error', async () => {
  const limited = (files: number) =>
    run({ command: 'prlimit', args: [`--nofile=${files}`, process.execPath, program, '--help'] });
  expect(await limited(40)).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/^40 files may be open at a time here, .* ulimit -n 1024\n$/),
  });
  expect(await limited(128)).toMatchObject({ code: 0, stderr: '' });
});

test('BAKEOFF_INSTALL must be yes or no', () => {
  const may = ['no', '', 'yes'].map((value) => {
    stubInstall(value);
    return thisMachine().mayInstall;
  });
  expect(may).toEqual([false, true, true]);
  stubInstall('0');
  expect(() => thisMachine()).toThrow(
    expect.objectContaining({ message: 'BAKEOFF_INSTALL=0: write no or yes', exitCode: 2 }),
  );
});

function stubInstall(value: string) {
  vi.stubEnv('BAKEOFF_INSTALL', value);
}

test.each(['scenario', 'compare', 'calibrate'])('--no-install is a word of %s', async (command) => {
  stubInstall('');
  const logged = vi.spyOn(console, 'error').mockImplementation(() => undefined);
  expect(await main([command, '--no-install', '--rounded'])).toBe(2);
  expect(logged.mock.calls.flat().join('\n')).not.toContain('"--no-install"');
  expect(process.env['BAKEOFF_INSTALL']).toBe('no');
});

test('another operating system is refused in one line', async () => {
  const change = 'Object.defineProperty(process, "platform", { value: "darwin" })';
  expect(await start(change)).toMatchObject({
    code: 1,
    stdout: '',
    stderr: 'bakeoff measures on Linux only, this is darwin\n',
  });
});
