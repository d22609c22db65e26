// The processes of a command, wherever it has left them.
import { once } from 'node:events';
import { expect, it, onTestFinished, vi } from 'vitest';
import { startChild, type Child } from '../../lib/process.ts';
import { familyOf, groupOf, newMark } from '../../lib/servers/lifecycle.ts';
import { start } from '../fixtures/node-process.ts';
import { isRunning } from '../fixtures/processes.ts';

const soon = { timeout: 20_000, interval: 20 };

/** A shell that starts three: one in its group, a child that has left the group, and one that has left all but its environment. */
const shell = `sleep 300 & echo $!; setsid sh -c 'echo $$; exec sleep 300' & setsid -f sh -c 'echo $$; trap "" TERM; while :; do sleep 1; done'; wait`;

/** The ids that its lines say. */
async function idsIn(child: Child, count: number): Promise<number[]> {
  let said = '';
  const output = child.process.stdout as NodeJS.ReadableStream;
  while (said.trim().split('\n').length < count) said += String((await once(output, 'data'))[0]);
  const ids = said.trim().split('\n').map(Number);
  onTestFinished(() => {
    for (const pid of ids.filter(isRunning)) process.kill(pid, 'SIGKILL');
  });
  return ids;
}

it('are its group and descendants, and those that have its mark', async () => {
  const mark = newMark();
  const child = await startChild({ command: 'env', args: [mark, 'sh', '-c', shell] });
  onTestFinished(() => child.stop(0));
  const ids = await idsIn(child, 3);
  const other = await startChild({ command: 'env', args: [newMark(), 'sleep', '300'] });
  onTestFinished(() => other.stop(0));
  const family = familyOf(child.pid, mark).map(Number);
  expect(family).toEqual(expect.arrayContaining([child.pid, ...ids]));
  expect(family).not.toContain(other.pid);
  const group = groupOf(child.pid).map(Number);
  expect(group).toContain(child.pid);
  // The third one.
  expect(ids.filter((one) => !group.includes(one))).toHaveLength(1);
});

it('are killed when the process that started it is, but for what the kernel has ended', async () => {
  const {
    process: runner,
    stdout,
    stderr,
  } = start(
    [
      '--import',
      'tsx',
      '--input-type=module',
      '-e',
      `
    import { startChild } from './lib/process.ts';
    import { guardMarked } from './lib/servers/lifecycle.ts';
    await guardMarked('BAKEOFF_SIDE=one');
    for (const mark of ['BAKEOFF_SIDE=one', 'BAKEOFF_SIDE=other']) await startChild({ command: 'env', args: [mark, 'setsid', '-f', 'sh', '-c', 'echo ' + mark + ' $$; trap "" TERM; while :; do sleep 1; done'], stdio: ['ignore', 'inherit', 'ignore'] });
    setInterval(() => undefined, 1000);
  `,
    ],
    process.env,
  );
  const [one, other] = await vi.waitFor(
    () =>
      ['one', 'other'].map((name) =>
        Number(
          new RegExp(`^BAKEOFF_SIDE=${name} (\\d+)$`, 'm').exec(stdout())?.[1] ??
            expect.fail(stderr()),
        ),
      ) as [number, number],
    soon,
  );
  onTestFinished(() => {
    for (const pid of [one, other].filter(isRunning)) process.kill(pid, 'SIGKILL');
  });
  runner.kill('SIGKILL');
  await vi.waitFor(() => expect(isRunning(one)).toBe(false), soon);
  expect(isRunning(other)).toBe(true);
}, 40_000);
