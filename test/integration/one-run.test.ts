// The lock for one run at a time, seen from other processes and users. Each test uses a separate lock.
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { createConnection, createServer } from 'node:net';
import { hostname, userInfo } from 'node:os';
import { join } from 'node:path';
import { beforeAll, expect, onTestFinished, test, vi } from 'vitest';
import { bundledForNode } from '../../bin/bundle.mjs';
import { holder, lockFile, oneRunAtATime, localRun, writeHolder } from '../../lib/machine/locks.ts';
import { projectRoot } from '../../lib/setup/paths.ts';
import { newFolder, sharedFolder } from '../fixtures/new-folder.ts';
import { start, type Started } from '../fixtures/node-process.ts';
import { halt } from '../fixtures/processes.ts';
import { refusalOf } from '../fixtures/refused.ts';

const program = join(sharedFolder(), 'hold-lock.mjs');
beforeAll(async () => {
  const source = new URL('../fixtures/hold-lock.mts', import.meta.url);
  writeFileSync(program, await bundledForNode(source, {}));
});

let count = 0;
const newName = () => `bakeoff test ${process.pid} ${++count}`.padEnd(107, '.');

/** Starts a process that measures or waits for the lock. */
function measure(name: string): Started & { pid: number } {
  const args = ['scenario', 'aa', '--influx', 'http://me:secret@10.0.0.1'];
  const started = start([program, name, ...args], process.env);
  return { ...started, pid: started.process.pid as number };
}

const soon = { timeout: 20_000, interval: 20 };

async function held(name: string): Promise<Started & { pid: number }> {
  const started = measure(name);
  await vi.waitFor(() => expect(started.stdout()).toBe('held\n'), soon);
  return started;
}

const ends = ', and both would be slower: wait until it is done, or end it';

test('a second run learns which process measures, and whether it is stopped', async () => {
  const name = newName();
  const { pid, process: child, ended } = await held(name);
  await expect(oneRunAtATime({ name })).rejects.toMatchObject({
    exitCode: 1,
    message: expect.stringMatching(
      `^another run .*\\(process ${pid} of ${userInfo().username}: scenario aa, in ${projectRoot}; measuring since 20[-\\d]{8} \\d\\d:\\d\\d UTC\\)${ends}$`,
    ),
  });
  halt(pid);
  await vi.waitFor(
    () => expect(execFileSync('ps', ['-o', 'stat=', '-p', `${pid}`]).toString()).toMatch(/^T/),
    10_000,
  );
  await expect(oneRunAtATime({ name })).rejects.toThrow('it may be stopped (Ctrl-Z), which fg or');
  child.kill('SIGKILL');
  await ended;
  (await oneRunAtATime({ name }))();
});

test('a foreign process that holds the name does not block a run', async () => {
  const name = newName();
  const program =
    'import socket, sys; s = socket.socket(socket.AF_UNIX); s.bind("\\0" + sys.argv[1]); print("held", flush=True); sys.stdin.read()';
  const child = spawn('python3', ['-c', program, name], { stdio: ['pipe', 'pipe', 'inherit'] });
  onTestFinished(() => void child.kill());
  await once(child.stdout, 'data');
  const lines: string[] = [];
  const wait = { seconds: 60, signal: new AbortController().signal, say: lines.push.bind(lines) };
  (await oneRunAtATime({ name, wait }))();
  expect(lines).toEqual([expect.stringMatching(/not a bakeoff run holds bakeoff's lock/)]);
});

test('with --wait, a run waits, names the other run once, and gives up after the limit', async () => {
  const name = newName();
  const release = await oneRunAtATime({ name });
  const lines: string[] = [];
  const waitFor = (seconds: number, { signal } = new AbortController()) =>
    oneRunAtATime({ name, wait: { seconds, signal, say: (line) => void lines.push(line) } });
  await expect(waitFor(0)).rejects.toThrow(/: wait until it is done \(--wait 10m\), or end it$/);
  await expect(waitFor(0.6)).rejects.toThrow(
    /^another run of bakeoff is still measuring after .*: give a longer --wait, or end it$/,
  );
  const waiting = waitFor(60);
  await vi.waitFor(() => expect(lines).toHaveLength(2), 20_000);
  expect(lines[1]).toMatch(
    `waiting for another run of bakeoff to end, 1 min at most: process ${process.pid} of `,
  );
  release();
  (await waiting)();
  const aborted = new AbortController();
  const held = await oneRunAtATime({ name });
  const late = waitFor(60, aborted);
  await vi.waitFor(() => expect(lines).toHaveLength(3), 20_000);
  aborted.abort(new Error('enough'));
  await expect(late).rejects.toThrow('enough');
  held();
});

test('waiting runs measure in order of arrival, and a stopped one does not block the others', async () => {
  const name = newName();
  const { signal } = new AbortController();
  const lines: string[] = [];
  const wait = { seconds: 60, signal, say: (line: string) => void lines.push(line) };
  const release = await oneRunAtATime({ name });
  const order: string[] = [];
  const waiter = async (who: string) => {
    const done = await oneRunAtATime({ name, wait });
    order.push(who);
    done();
  };
  const stopped = measure(name);
  await vi.waitFor(() => expect(stopped.stderr()).toMatch('waiting for'), soon);
  halt(stopped.pid);
  const first = waiter('first');
  await vi.waitFor(() => expect(lines).toHaveLength(1), 20_000);
  const second = waiter('second');
  await vi.waitFor(() => expect(lines).toHaveLength(2), 20_000);
  expect(lines[0]).toMatch(/; 1 other run waits too, and came before$/);
  expect(lines[1]).toMatch(/; 2 other runs wait too, and came before$/);
  release();
  await Promise.all([first, second]);
  expect(order).toEqual(['first', 'second']);
});

test('parts of a run measure at the same time, but not together with another run', async () => {
  const [mine, other] = [localRun(), { from: 'elsewhere', about: localRun().about }];
  expect(mine).toMatchObject({
    from: hostname(),
    about: expect.stringMatching(`^process ${process.pid} of `),
  });
  const ofRun = newName();
  const release = await oneRunAtATime({ name: ofRun });
  (await oneRunAtATime({ name: ofRun, run: mine }))();
  // The part did not take the lock, so its end did not release it.
  await expect(oneRunAtATime({ name: ofRun })).rejects.toThrow(
    'another run of bakeoff is measuring',
  );
  release();
  const ofParts = newName();
  const releaseFirst = await oneRunAtATime({ name: ofParts, run: mine });
  await oneRunAtATime({ name: ofParts, run: mine });
  await expect(oneRunAtATime({ name: ofParts, run: other })).rejects.toThrow(
    `another run of bakeoff is measuring (from ${hostname()}: process ${process.pid} of `,
  );
  // A host may be this machine, and its part may come before the run itself.
  (await oneRunAtATime({ name: ofParts }))();
  releaseFirst();
  (await oneRunAtATime({ name: ofParts, run: other }))();
});

test('the lock holds across users', async ({ skip }) => {
  skip(process.getuid?.() !== 0, 'only root may run as another user');
  const name = newName();
  const { pid } = await held(name);
  const nobody = Number(execFileSync('id', ['-u', 'nobody'], { encoding: 'utf8' }));
  // The other user may not be able to read this folder, so the script is inline.
  const script = `require('net').createConnection('\\0' + process.argv[1]).on('data', (d) => process.stdout.write(d)).on('error', (e) => console.log(e.code))`;
  const child = spawn(process.execPath, ['-e', script, name], {
    uid: nobody,
    gid: nobody,
    cwd: '/',
  });
  let output = '';
  child.stdout.on('data', (data: Buffer) => void (output += data.toString()));
  await vi.waitFor(
    () => expect(output).toMatch(new RegExp(`^process ${pid} of .*\nmeasuring since .*\n$`)),
    10_000,
  );
});

test('text from a foreign process cannot control the terminal', async () => {
  const name = newName();
  const server = createServer((socket) =>
    socket.end(`\u001b[2Jhello\r\u0007 \u202eworld ${'x'.repeat(2000)}\nmore`),
  );
  await new Promise<void>((resolve) => server.listen(`\0${name}`, resolve));
  onTestFinished(() => void server.close());
  const message = await refusalOf(oneRunAtATime({ name }));
  expect(message).toMatch(
    new RegExp(
      `^another run of bakeoff is measuring \\(process ${process.pid} of user \\d+, which says: \\[2Jhello world x+; more\\), and both`,
    ),
  );
  expect(message.length).toBeLessThan(500);
});

/** Another user's process that holds the lock. @param answer a JavaScript expression for its answer, absent if it is silent */
async function heldByOther(name: string, answer?: string): Promise<number> {
  const answering = answer === undefined ? '' : `socket.end(${answer} + '\\n')`;
  const script = `require('net').createServer((socket) => { ${answering} }).listen('\\0' + process.argv[1], () => console.log('held'))`;
  const child = spawn(process.execPath, ['-e', script, name], {
    uid: 65_534,
    gid: 65_534,
    cwd: '/',
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  onTestFinished(() => void child.kill());
  await once(child.stdout, 'data');
  return child.pid as number;
}

const isRoot = process.getuid?.() === 0;

test.runIf(isRoot).each([
  ['says nothing', undefined],
  ['says that it is of root', '`process ${process.pid} of root: scenario aa, in /root`'],
])('another user who %s cannot keep root from measuring', async (_, answer) => {
  const name = newName();
  const pid = await heldByOther(name, answer);
  const lines: string[] = [];
  const { signal } = new AbortController();
  const say = (line: string) => void lines.push(line);
  (await oneRunAtATime({ name, wait: { seconds: 0, signal, say } }))();
  expect(lines).toEqual([
    `process ${pid} of user 65534 holds bakeoff's lock and does not answer as bakeoff does: root measures anyway`,
  ]);
});

test.runIf(isRoot).each(['process ${process.pid} of anna: x', 'from a: process 1 of root: x'])(
  'root waits for the run of another user that says "%s", and learns the user from the kernel',
  async (answer) => {
    const name = newName();
    const pid = await heldByOther(name, `\`${answer}\``);
    expect(await refusalOf(oneRunAtATime({ name }))).toContain(
      `(process ${pid} of user 65534, which says: ${answer.replace('${process.pid}', `${pid}`)})`,
    );
  },
);

test('a client that stays connected does not keep the process alive', async () => {
  const name = newName();
  const { process: child, ended } = await held(name);
  const reader = createConnection({ path: `\0${name}`, allowHalfOpen: true });
  onTestFinished(() => void reader.destroy());
  await once(reader, 'data');
  child.kill('SIGTERM');
  expect(await ended).toEqual([0, null]);
});

test('a lock has one holder at a time, and names it', async () => {
  const file = join(newFolder(), 'lock');
  const first = (await lockFile(file)) ?? expect.fail();
  writeHolder(first, 123);
  expect(await lockFile(file)).toBeNull();
  expect(holder(file)).toBe(' (process 123)');
  closeSync(first);
  closeSync((await lockFile(file)) ?? expect.fail());
});

test('a link in place of the lock file is refused, and the target is unchanged', async () => {
  const folder = newFolder();
  const [file, target] = [join(folder, 'lock'), join(folder, 'target')];
  writeFileSync(target, 'precious\n');
  symlinkSync(target, file);
  await expect(lockFile(file)).rejects.toThrow('ELOOP');
  expect(readFileSync(target, 'utf8')).toBe('precious\n');
});
