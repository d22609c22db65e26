// User commands as servers: start, refusals and end.
import { spawn } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { once } from 'node:events';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { beforeEach, expect, it, onTestFinished, vi } from 'vitest';
import { address, command } from '../../lib/scenario/index.ts';
import type { CommandServer } from '../../lib/scenario/model.ts';
import { startServer, type StartedServer, type StartOptions } from '../../lib/servers/index.ts';
import { freePort } from '../../lib/servers/ports.ts';
import { find, thisMachine } from '../../lib/setup/machine.ts';
import { cgroupMounts, makeCgroup } from '../fixtures/cgroups.ts';
import { listening } from '../fixtures/listening.ts';
import { ownFiles } from '../fixtures/own-files.ts';
import { pidIn } from '../fixtures/node-process.ts';
import { isRunning } from '../fixtures/processes.ts';

/** Answers "hi" at the address in the first argument, on the port from the arguments or $PORT. */
const server = `
  const { spawn } = require('node:child_process');
  const http = require('node:http');
  const [address = '127.0.0.1', port = process.env.PORT] = process.argv.slice(2);
  http.createServer((asked, response) => {
    if (asked.url === '/about') return response.end(JSON.stringify({ env: process.env, folder: process.cwd(), pid: process.pid }));
    response.statusCode = asked.url === '/lost' ? 404 : 200;
    response.setHeader('content-type', 'text/plain');
    response.end('hi');
  }).listen(Number(port), address);
`;

const groups = cgroupMounts().flatMap((mount, index) => makeCgroup(mount, index) ?? []);

let files = '';
beforeEach(async () => {
  files = await ownFiles({
    'server.cjs': server,
    // The child leaves process group, session and process tree, and ignores TERM.
    'leaves.cjs': `require('node:child_process').spawn('setsid', ['-f', 'sh', '-c', 'trap "" TERM; echo $$ > left.pid; while :; do sleep 1; done']); ${server}`,
    'tidy.cjs': `let told = ''; process.on('SIGTERM', () => { told += 'TERM'; setTimeout(() => { require('node:fs').writeFileSync('tidied', told); process.exit(); }, 1000); }); ${server}`,
    'loud.cjs': `const line = 'x'.repeat(1e6); setInterval(() => { for (let i = 0; i < 20; i++) require('node:fs').writeSync(1, line); }, 10); ${server}`,
    'late.cjs': `const http = require('node:http'); http.createServer().listen(0, '127.0.0.1'); setTimeout(() => { ${server} }, 300);`,
    'slow.cjs': `setTimeout(() => { ${server} }, 1000);`,
    // exit(2) ends the first thread.
    'threads.pl': `use threads; use IO::Socket::INET;
      threads->create(sub {
        my $listening = IO::Socket::INET->new(LocalAddr => '127.0.0.1', LocalPort => $ENV{PORT}, Listen => 16);
        while (my $client = $listening->accept) {
          sysread $client, my $asked, 4096;
          print $client "HTTP/1.1 200 OK\\r\\nContent-Type: text/plain\\r\\nContent-Length: 2\\r\\nConnection: close\\r\\n\\r\\nhi";
          close $client;
        }
      });
      syscall(${process.arch === 'x64' ? 60 : 93}, 0);`,
    'broken.cjs': `console.log('reading its config'); throw new Error('the database is not there');`,
  });
});

async function start(
  spec: CommandServer,
  options: Partial<StartOptions> = {},
): Promise<StartedServer> {
  const folder = path.join(files, 'round');
  const usual = { binaries: {}, folder, cpus: [0], workers: 1, page: { path: '/' } };
  const started = await startServer({ folder: files, ...spec }, { ...usual, ...options });
  onTestFinished(started.stop);
  return started;
}

async function refusal(line: string, options: Partial<CommandServer> = {}) {
  const message = await start(command(line, options)).then(
    () => expect.fail(`${line} was started`),
    (error: Error) => error.message,
  );
  for (const [, pids = ''] of message.matchAll(/\(pid ([\d, ]+)\)/g))
    for (const pid of pids.split(', '))
      expect(isRunning(Number(pid)), `${pid} of: ${message}`).toBe(false);
  return message.replaceAll(/\(pid [\d, ]+\)/g, '(pid N)');
}

/** Starts a program with an empty environment and an unrelated parent and process group, and returns its pid. */
async function orphan(cwd: string, ...line: readonly string[]) {
  const shell = spawn('sh', ['-c', 'env -i "$@" > /dev/null 2>&1 & echo $!', 'sh', ...line], {
    cwd,
    detached: true,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [output] = (await once(shell.stdout, 'data')) as [Buffer];
  const pid = Number(output);
  onTestFinished(() => void process.kill(pid, 'SIGKILL'));
  return pid;
}

it.each([
  ['told its port in its line', 'node server.cjs 127.0.0.1 {port}'],
  ['told its port as a shell would', 'node "server.cjs" 127.0.0.1 $PORT'],
  ['in a shell of its own', `sh -c 'echo starting | cat; exec node server.cjs'`],
  ['that takes its time, and listens for an administrator first', 'node late.cjs'],
  ['whose first thread has ended', 'perl threads.pl'],
])('a command %s', async (_, line) => {
  const { name, origin, answer, pid, stop } = await start(command(line));
  expect(name).toBe(line.split(' ')[0]);
  expect(answer).toMatchObject({ status: 200, bytes: 2, type: 'text/plain', encoding: '' });
  expect(await (await fetch(origin)).text()).toBe('hi');
  await stop();
  expect(isRunning(pid)).toBe(false);
});

it('a command runs in the given folder on the cores of the server, with a temporary folder that is removed', async () => {
  vi.stubEnv('npm_config_loglevel', 'silent');
  onTestFinished(() => void vi.stubEnv('npm_config_loglevel', undefined));
  const { origin, pid, stop } = await start(command('node server.cjs'));
  const { env, folder } = JSON.parse(await (await fetch(`${origin}/about`)).text()) as {
    env: Record<string, string>;
    folder: string;
  };
  expect(env).not.toHaveProperty('npm_config_loglevel');
  expect([folder, env['HOME'], env['PORT']]).toEqual([
    files,
    process.env['HOME'],
    new URL(origin).port,
  ]);
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  expect(status).toMatch(/^Cpus_allowed_list:\t0$/m);
  expect(status).toMatch(new RegExp(`^Uid:\t${process.getuid?.()}\t`, 'm'));
  expect(existsSync(env['TMPDIR'] as string)).toBe(true);
  await stop();
  expect(existsSync(env['TMPDIR'] as string)).toBe(false);
});

it('the time that a command takes to start is its own, up to its answer', async () => {
  const beganMs = performance.now();
  const { startupMs } = await start(command('node slow.cjs'));
  const wholeMs = performance.now() - beganMs;
  expect(startupMs).toBeLessThan(wholeMs);
  // It waits for a second; on a busy machine its begin is seen late.
  expect(startupMs).toBeGreaterThan(500);
});

it('a command may have a fixed port', async () => {
  const port = await freePort();
  expect((await start(command(`node server.cjs 127.0.0.1 ${port}`, { port }))).origin).toBe(
    `http://127.0.0.1:${port}`,
  );
  expect(await refusal(`node server.cjs 127.0.0.1 ${port}`, { port })).toBe(
    `port ${port} of 127.0.0.1 is in use: end what listens there, or take another port`,
  );
});

it('a command is ended with all processes, including those that left the group and the session', async () => {
  const { pid, stop } = await start(command('node leaves.cjs'));
  const left = await pidIn(path.join(files, 'left.pid'));
  await stop();
  expect([pid, left].map(isRunning)).toEqual([false, false]);
});

it.runIf(groups.length > 0)(
  'a command is ended with the processes that left its control group',
  async () => {
    const moves = groups.map(({ folder }) => `echo $$ >${folder}/cgroup.procs`).join('; ');
    const script = `${moves}\nexec setsid sh -c 'echo $$ >left.pid; sleep 300'\n`;
    writeFileSync(path.join(files, 'moves.sh'), script);
    const { stop } = await start(command(`sh -c 'sh moves.sh & exec node server.cjs'`));
    const left = await pidIn(path.join(files, 'left.pid'));
    expect(isRunning(left)).toBe(true);
    await stop();
    expect(isRunning(left)).toBe(false);
  },
);

it('the crash of a command does not end unrelated processes', async () => {
  const { pid, died } = await start(command('node server.cjs'));
  const inFolder = await orphan(files, 'sleep', '62');
  process.kill(pid, 'SIGKILL');
  expect(await died).toBe(`node (pid ${pid}) ended by SIGKILL`);
  expect(isRunning(inFolder)).toBe(true);
});

it('a command that does not listen is reported, with the foreign process on the port', async () => {
  const port = await freePort();
  const starting = start(command('sleep 300', { port }), { readyLimitMs: 2000 }).then(
    () => expect.fail(),
    (error: Error) => error.message,
  );
  // Before this file exists, the port is checked.
  await vi.waitFor(() => expect(existsSync(path.join(files, 'round/output.log'))).toBe(true), {
    timeout: 10_000,
  });
  await listening(
    createServer((_, response) => response.end('hi')),
    port,
  );
  expect(await starting).toMatch(
    new RegExp(
      `^sleep \\(pid \\d+\\) does not listen on 127\\.0\\.0\\.1:${port} within 2 s, where somebody else answers: `,
    ),
  );
}, 60_000);

it.each(['docker', '/usr/bin/podman'])(
  'a container is refused at once, with the way to compare it: %s',
  async (program) => {
    const starting = start(command(`${program} run --rm -p 127.0.0.1:{port}:80 nginx`));
    await expect(starting).rejects.toThrow(
      / only asks for a container, which .*: have --prepare start it \((docker|podman) run -d .*\), and compare http:/,
    );
  },
);

it('a command has time for a clean shutdown, and gets one signal', async () => {
  const { stop } = await start(command(`sh -c 'node tidy.cjs; :'`));
  await stop();
  expect(readFileSync(path.join(files, 'tidied'), 'utf8')).toBe('TERM');
});

it('a command may write unlimited output', async () => {
  const { logFile, origin, stop } = await start(command('node loud.cjs'));
  let cuts = 0;
  for (let last = 0; cuts < 2; await delay(20)) {
    const { size } = statSync(logFile);
    if (size < last) cuts++;
    last = size;
  }
  expect((await fetch(origin)).status).toBe(200);
  await stop();
  expect(statSync(logFile).size).toBeLessThanOrEqual(64 * 1024);
}, 60_000);

it.each([
  [
    'ends at once',
    'node broken.cjs',
    /^node \(pid N\) ended with code 1; its log ends: (?:.* \| )?Error: the database is not there$/,
  ],
  [
    'listens for all',
    'node server.cjs 0.0.0.0',
    /^node \(pid N\) listens on 0\.0\.0\.0:\d+, where others on the network can reach it: have it listen on loopback alone, such as with --listen 127\.0\.0\.1:\{port\}, /,
  ],
  [
    'listens on another port',
    'node server.cjs 127.0.0.1 0',
    /^node \(pid N\) listens on 127\.0\.0\.1:(\d+), and not on 127\.0\.0\.1:\d+: write \{port\} where its port belongs \(PORT in its environment says it too\), or say which port it has fixed \(--port \1; in a scenario port: \1\)$/,
  ],
  [
    'listens on another address',
    'node server.cjs ::1',
    /^node \(pid N\) listens on \[::1\]:(\d+), and not on 127\.0\.0\.1:\1: write 127\.0\.0\.1 where its address belongs$/,
  ],
  [
    'goes to the background of its shell',
    `sh -c 'node server.cjs &'`,
    /^sh \(pid N\) went on in the background \(pid N\), and was ended: keep it in the foreground, such as /,
  ],
  [
    'is not there',
    'no-such-server',
    /^there is no program no-such-server on PATH: install it, or write its path \(\.\/no-such-server\)$/,
  ],
  [
    'cannot be run',
    './server.cjs',
    /\/server\.cjs cannot be run: check that it exists and is executable \(chmod \+x\)$/,
  ],
])(
  'a command that %s is refused, and leaves nothing behind',
  async (_, line, why) => {
    expect(await refusal(line)).toMatch(why);
  },
  30_000,
);

it('an address without a listener is refused', async () => {
  const options = { binaries: {}, folder: files, cpus: [0], workers: 1, page: { path: '/' } };
  await expect(
    startServer(address(`http://127.0.0.1:${await freePort()}`), options),
  ).rejects.toThrow(/ECONNREFUSED \S+: start what is to listen there$/);
});

const hasApache = (await find('apache2', thisMachine())) !== undefined;
if (!hasApache)
  console.warn('SKIPPED: the tests with Apache (apache2 of Debian), which is not installed');

/** A folder with a config of Apache that has a port, a page and `lines`; its folder for logs is where Apache writes by itself. */
async function apacheFolder(lines: string): Promise<string> {
  const folder = await ownFiles({ 'logs/kept': '', page: 'hi' });
  const modules = ['mpm_event', 'authz_core'].map(
    (name) => `LoadModule ${name}_module /usr/lib/apache2/modules/mod_${name}.so`,
  );
  const usual = ['Listen 127.0.0.1:${PORT}', 'ServerName localhost'];
  const config = [`ServerRoot ${folder}`, `DocumentRoot ${folder}`, ...usual, ...modules, lines];
  writeFileSync(path.join(folder, 'a.conf'), config.join('\n'));
  return folder;
}

it.runIf(hasApache).each([
  ['says no files', 'User nobody\nGroup nogroup\n'],
  ['says files', 'User nobody\nGroup nogroup\nPidFile logs/pid\nErrorLog logs/own\n'],
  [
    "has Debian's variables",
    'User ${APACHE_RUN_USER}\nGroup ${APACHE_RUN_GROUP}\nDefaultRuntimeDir ${APACHE_RUN_DIR}\nPidFile ${APACHE_PID_FILE}\nErrorLog ${APACHE_LOG_DIR}/error.log\n',
  ],
])('Apaches of one config run at once, and write nothing beside it: it %s', async (_, lines) => {
  const folder = await apacheFolder(lines);
  const line = `apache2 -DFOREGROUND -f ${folder}/a.conf`;
  const page = { path: '/page' };
  const first = await start(command(line), { page });
  const second = await start(command(line), { page, folder: path.join(files, 'second') });
  expect([first, second].map(({ answer: { status } }) => status)).toEqual([200, 200]);
  expect(first.redirections).toEqual([
    'PidFile → a temporary file',
    'ErrorLog → output.log of this run',
  ]);
  await Promise.all([first.stop(), second.stop()]);
  expect(readdirSync(path.join(folder, 'logs'))).toEqual(['kept']);
  expect(readFileSync(first.logFile, 'utf8')).toContain('resuming normal operations');
});

it('two Apaches with one PidFile are told how to have two', async () => {
  // No process has this number.
  const message = await refusal(`sh -c "echo 'httpd (pid 99999999) already running'"`);
  expect(message).toContain('already running: two Apaches have one PidFile: give apache2 itself ');
});
