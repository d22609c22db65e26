// A server's processes, how they end, and errors in the log.
import { once } from 'node:events';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect, it, vi } from 'vitest';
import { textOf } from '../../lib/files.ts';
import { statFields } from '../../lib/proc-files.ts';
import { startChild } from '../../lib/process.ts';
import { openScope } from '../../lib/servers/scope.ts';
import { alarmsIn, watchLifecycle, type LogAlarms } from '../../lib/servers/lifecycle.ts';
import { newFolder } from '../fixtures/new-folder.ts';
import { ownFiles } from '../fixtures/own-files.ts';
import { descendants, isRunning } from '../fixtures/processes.ts';
import type { ServerName } from '../../lib/setup/servers.ts';

it.each([
  ['may tidy up', 'while kill -0 $1 2>&-; do sleep 0.01; done; sleep 0.1; rm -r tidy', false],
  ['is killed if it stays', 'trap "" TERM; while :; do sleep 1; done', true],
])('after the end of the server, a helper %s', async (_, helper, isUntidy) => {
  const folder = await ownFiles({ 'tidy/x': '' });
  const scope = await openScope(path.join(newFolder(), 'scope'));
  const child = await startChild({
    command: 'sh',
    before: scope.enter,
    cwd: folder,
    args: ['-c', `sh -c '${helper}' helper $$ & echo $! > pid; echo ready; wait`],
  });
  await once(child.process.stdout as NodeJS.ReadableStream, 'data');
  const helperPid = Number(readFileSync(path.join(folder, 'pid'), 'utf8'));
  scope.led(child.pid);
  const { stop } = watchLifecycle('sh', child, path.join(folder, 'log'), scope, false);
  expect(isRunning(helperPid)).toBe(true);
  await stop();
  expect([isRunning(helperPid), existsSync(path.join(folder, 'tidy'))]).toEqual([false, isUntidy]);
});

/** undefined once it has ended. */
const runningState = (pid: number) =>
  isRunning(pid) ? statFields(`/proc/${pid}`)?.[0] : undefined;

it.each(['SIGKILL', 'SIGSTOP'] as const)(
  'a server ends, also if the process that ends it got %s',
  async (signal) => {
    const folder = path.join(newFolder(), 'scope');
    const scope = await openScope(folder);
    const child = await startChild({ command: 'sleep', before: scope.enter, args: ['1000'] });
    scope.led(child.pid);
    await vi.waitFor(() => expect(scope.processes()).toContain(String(child.pid)), 10_000);
    const isOfScope = (pid: number) => textOf(`/proc/${pid}/cmdline`).split('\0').includes(folder);
    const [guard = expect.fail()] = descendants(process.pid).filter(({ pid }) => isOfScope(pid));
    process.kill(guard.pid, signal);
    const state = signal === 'SIGKILL' ? undefined : 'T';
    await vi.waitFor(() => expect(runningState(guard.pid)).toBe(state), 10_000);
    await scope.end();
    expect(isRunning(guard.pid)).toBe(false);
    expect(isRunning(child.pid)).toBe(false);
  },
);

it.each([
  ['kill -KILL $$', 1, /^sh was killed by the kernel, as memory ran out/],
  // A shell says so of its command.
  ['sh -c "kill -KILL \\$\\$"; exit $?', 1, /^sh was killed by the kernel, as memory ran out/],
  ['kill -KILL $$', 0, /^sh ended by SIGKILL$/],
  ['exit 3', 1, /^sh ended with code 3; its log is empty$/],
])('the end by "%s" after the kernel has killed %i processes', async (script, more, message) => {
  const scope = await openScope(path.join(newFolder(), 'scope'));
  const child = await startChild({ command: 'sh', before: scope.enter, args: ['-c', script] });
  let kills = 5;
  const log = path.join(newFolder(), 'log');
  const { died } = watchLifecycle('sh', child, log, scope, true, () => kills);
  kills += more;
  expect(await died).toMatch(message);
});

it("the end of npm is explained by its error, without npm's hints", async () => {
  const folder = newFolder();
  const scope = await openScope(path.join(folder, 'scope'));
  const script = `printf 'npm error %s\\n' 'Missing script: "start"' '' 'To see a list of scripts, run:' '  npm run' 'A complete log of this run can be found in: /x' > ${folder}/log; exit 1`;
  const child = await startChild({ command: 'sh', before: scope.enter, args: ['-c', script] });
  const { died } = watchLifecycle('npm', child, path.join(folder, 'log'), scope, true);
  expect(await died).toBe('npm ended with code 1; its log ends: npm error Missing script: "start"');
});

const at = '2026/11/20 08:15:31 ';
const crash = '[alert] worker process exited on signal 11 (core dumped)';
const crashLine = `${at}[alert] 7#7: worker process 12 exited on signal 11 (core dumped)\n`;
const fatal = 'received fatal signal 11';

it.each<[ServerName | 'command', string, LogAlarms]>([
  ['nginx', `${at}[error] 8#8: *3 failed\n`, { last: '[error] failed' }],
  // Not as root.
  ['nginx', 'nginx: [alert] could not open error log file: open() failed\nx\n', { last: 'x' }],
  ['nginx', `${at}[alert] 8#8: *9 failed\n${crashLine}`, { crash }],
  ['nginx', `${crashLine}${at}[alert] 8#8: later\n`, { crash }],
  // The last of two alarms, before a line that is none.
  [
    'nginx',
    `${at}[alert] 8#8: old\n${at}[crit] 8#8: *9 no space left\n${at}[error] 8#8: *9 later\n`,
    { alarm: '[crit] no space left', last: '[error] later' },
  ],
  [
    'nginx',
    `${at}[crit] 8#8: *9 SSL_do_handshake() failed (SSL: bad key share) while`,
    { last: '[crit] SSL_do_handshake() failed (SSL: bad key share) while' },
  ],
  // The last of two messages, and control characters.
  [
    'nginx',
    `${at}[alert] 8#8: earlier\n${at}[emerg] 8#8: a\u001B[31mb \u202Ec`,
    { alarm: '[emerg] a [31mb  c' },
  ],
  // Messages as in article 004, and one that is not a client error.
  [
    'nginx',
    `${at}[info] 8#8: *1 recv() failed (104: Connection reset by peer) while sending response to client, client: 1.2.3.4, server: localhost\n` +
      `${at}[info] 8#8: *2 client timed out (110: Connection timed out) while waiting for request, client: 1.2.3.4\n`.repeat(
        2,
      ) +
      `${at}[info] 8#8: *3 client 1.2.3.4 closed keepalive connection\n`,
    {
      last: '[info] client 1.2.3.4 closed keepalive connection',
      clientErrors: {
        'recv() failed (104: Connection reset by peer) while sending response to client': 1,
        'client timed out (110: Connection timed out) while waiting for request': 2,
      },
    },
  ],
  ['h2o', `[INFO] raised\n${fatal}\n`, { crash: fatal }],
  ['h2o', crashLine, { last: crash }],
  ['command', 'a\nrefused\n\n', { last: 'refused' }],
  ['command', "[core:notice] AH00094: Command line: 'apache2 -D FOREGROUND'\n", {}],
  [
    'command',
    'a\nno redis://me:hunter2@h with --token=hunter2\n',
    { last: 'no redis://***@h with --token=***' },
  ],
  [
    'nginx',
    `${at}[alert] 8#8: request: "GET /a?q=hunter2&b=1 HTTP/1.1", host: "a"`,
    { alarm: '[alert] request: "GET /a?q=…&b=… HTTP/1.1", host: "a"' },
  ],
])('alarms in a log of %s: %j has %j', async (server, text, alarms) => {
  const file = path.join(newFolder(), 'error.log');
  writeFileSync(file, text);
  expect(await alarmsIn(file, server)).toEqual(alarms);
});

it('a worker that the kernel has killed for memory is reported', async () => {
  const file = path.join(newFolder(), 'error.log');
  writeFileSync(file, `${at}[alert] 7#7: worker process 12 exited on signal 9\n`);
  const killed = '[alert] worker process exited on signal 9';
  const { crash } = await alarmsIn(file, 'nginx', () => true);
  expect(crash).toMatch(`${killed}: it was killed by the kernel, as memory ran out`);
  expect((await alarmsIn(file, 'nginx', () => false)).crash).toBe(killed);
});

it('an unreadable log has no errors', async () => {
  expect(await alarmsIn('/tmp', 'nginx')).toEqual({});
});

it.each(['[crit] ', '[alert] ', '[info] 1#1: *1 '])(
  'a line of a log may be as long as the log: %s',
  async (words) => {
    const file = path.join(newFolder(), 'error.log');
    writeFileSync(file, `${words.repeat(500_000)} (SSL: x)\n`);
    expect((await alarmsIn(file, 'nginx')).crash).toBeUndefined();
  },
);
