// The person's own command before the servers start, with real shells.
import { existsSync, mkdirSync, readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { UserError } from '../../lib/errors.ts';
import { runBeforeStart, type BeforeStart } from '../../lib/servers/own-command.ts';
import { newFolder } from '../fixtures/new-folder.ts';
import { isRunning } from '../fixtures/processes.ts';

/** Runs a command in a new folder, where its files are; temporary folders of servers are beside it. */
function prepared(command: string, more: Partial<BeforeStart> = {}) {
  const folder = newFolder();
  const temporary = join(folder, 'tmp');
  mkdirSync(temporary);
  vi.stubEnv('INIT_CWD', folder);
  vi.stubEnv('TMPDIR', temporary);
  const lines: string[] = [];
  const { signal } = new AbortController();
  const ended = runBeforeStart({ command, signal, say: (line) => lines.push(line), ...more });
  const textOf = (name: string) => readFileSync(join(folder, name), 'utf8').trim();
  const pid = () => Number(textOf('pid'));
  return { folder, temporary, lines, ended, textOf, pid };
}

/** Writes its id for the test when it is complete, and does not end. */
const stays = (program: string) => `${program} & echo $! >id; mv id pid`;

test('a command runs as the caller, in the folder of the call, in a shell', async () => {
  const { ended, textOf, lines, temporary } = prepared('id -u | cat >user && echo "$PWD" >place');
  await ended;
  expect(textOf('user')).toBe(String(process.getuid?.()));
  expect(textOf('place')).toBe(process.env['INIT_CWD']);
  expect(lines).toEqual([]);
  expect(readdirSync(temporary)).toEqual([]);
});

test.each([
  ['echo first; echo "no such table" >&2; exit 3', 'ended with code 3: no such table'],
  ['exit 7', 'ended with code 7'],
  ['kill -KILL $$', 'ended by SIGKILL'],
  ['exec 2>/dev/null; no-such-program', 'ended with code 127'],
  ['printf "\\033[2Jred\\n"; false', 'ended with code 1:  [2Jred'],
])('a command that fails: %s', async (command, how) => {
  const { ended, temporary } = prepared(command);
  const error = await ended.catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(UserError);
  expect((error as UserError).exitCode).toBe(1);
  expect((error as UserError).message).toBe(`prepare '${command}' ${how}`);
  expect(readdirSync(temporary)).toEqual([]);
});

test('credentials of a command are not shown, nor all of a long one', async () => {
  const secret = prepared(`false --token=s3cret ; exit 2`);
  await expect(secret.ended).rejects.toThrow(
    "prepare 'false --token=*** ; exit 2' ended with code 2",
  );
  const long = prepared(`: ${'x'.repeat(5000)}; exit 2`);
  await expect(long.ended).rejects.toThrow(/^prepare ': x{78}…' ended with code 2$/);
});

test('a command that hangs is ended with its children', async () => {
  const { ended, pid, temporary } = prepared(`echo waiting; ${stays('sleep 1000')}; wait`, {
    limitSeconds: 4,
  });
  await expect(ended).rejects.toThrow(
    /has not ended within 4 s, so it was ended: do what takes longer before the run; its output ends: waiting$/,
  );
  expect(isRunning(pid())).toBe(false);
  expect(readdirSync(temporary)).toEqual([]);
});

test('a command that writes without end is ended, its output kept nowhere', async () => {
  const { ended, temporary } = prepared('yes "all work and no play"', { limitSeconds: 4 });
  await expect(ended).rejects.toThrow(/; its output ends: [alworkndpy ]+$/);
  expect(readdirSync(temporary)).toEqual([]);
});

test.each(['sleep 1000', 'setsid sleep 1000', 'sh -c "trap : TERM; while :; do sleep 0.1; done"'])(
  'what a command leaves running ends, and a line says so: %s',
  async (program) => {
    const { ended, pid, lines } = prepared(stays(program));
    await ended;
    expect(isRunning(pid())).toBe(false);
    expect(lines).toEqual([
      expect.stringMatching(/ left processes running \(pid [\d, ]+\), which were ended: /),
    ]);
  },
);

test('an interrupted run ends the command and its children', async () => {
  const interrupt = new AbortController();
  const { ended, folder, pid, temporary } = prepared(`${stays('sleep 1000')}; wait`, {
    signal: interrupt.signal,
  });
  await vi.waitUntil(() => existsSync(join(folder, 'pid')), { timeout: 10_000 });
  interrupt.abort(new Error('interrupted'));
  await expect(ended).rejects.toThrow('interrupted');
  expect(isRunning(pid())).toBe(false);
  expect(readdirSync(temporary)).toEqual([]);
});
