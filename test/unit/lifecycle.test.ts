// What of a server's process group is left once the server itself has ended.
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { expect, it } from 'vitest';
import { startChild } from '../../lib/process.ts';
import { watchLifecycle } from '../../lib/servers/lifecycle.ts';
import { ownFiles } from '../fixtures/own-files.ts';
import { isRunning } from '../fixtures/processes.ts';

/** Starts a shell with a helper, whose first word is the shell's pid. */
async function withHelper(
  helper: string,
): Promise<
  ReturnType<typeof watchLifecycle> & { folder: string; shellPid: number; helperPid: number }
> {
  const folder = await ownFiles({ 'tidy/x': '' });
  const child = await startChild({
    command: 'sh',
    cwd: folder,
    args: ['-c', `sh -c '${helper}' helper $$ & echo $! > pid; echo ready; wait`],
  });
  await new Promise((resolve) => child.process.stdout?.once('data', resolve));
  const lifecycle = watchLifecycle('sh', child, path.join(folder, 'log'), () => undefined);
  return {
    ...lifecycle,
    folder,
    shellPid: child.pid,
    helperPid: Number(await readFile(path.join(folder, 'pid'), 'utf8')),
  };
}

const tidying = 'while kill -0 $1 2>/dev/null; do sleep 0.01; done; sleep 0.1; rm -r tidy';

it('lets a helper tidy up behind its server', async () => {
  const { folder, helperPid, stop } = await withHelper(tidying);
  expect(isRunning(helperPid)).toBe(true);
  await stop();
  expect(existsSync(path.join(folder, 'tidy'))).toBe(false);
  expect(isRunning(helperPid)).toBe(false);
});

it('kills a helper that would stay', async () => {
  const { helperPid, stop } = await withHelper('trap "" TERM; while :; do sleep 1; done');
  await stop();
  expect(isRunning(helperPid)).toBe(false);
});
