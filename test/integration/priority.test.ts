// The priority of the terminal's session after a run that was killed.
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { setPriority } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { expect, onTestFinished, test, vi } from 'vitest';
import { textOf } from '../../lib/files.ts';
import { projectRoot } from '../../lib/setup/paths.ts';

/** Root in a container often may not. */
function mayGoFirst(): boolean {
  try {
    setPriority(-1);
    setPriority(0);
    return existsSync('/proc/self/autogroup');
  } catch {
    return false;
  }
}

test.runIf(mayGoFirst())('a killed run leaves the priority of the terminal as it was', async () => {
  const run = `
      import { raisePriority } from '${join(projectRoot, 'lib/runner/priority.ts')}';
      await raisePriority({ goesFirst: true }, []);
      console.log(process.pid);
      setInterval(() => undefined, 1000);`;
  const node = ['--import', join(projectRoot, 'bin/tsx.mjs'), '--input-type=module', '-e', run];
  const terminal = spawn(
    'sh',
    ['-c', '"$0" "$@" & wait; exec sleep 60', process.execPath, ...node],
    {
      detached: true,
      stdio: ['ignore', 'pipe', 'inherit'],
    },
  );
  onTestFinished(() => void process.kill(-(terminal.pid as number), 'SIGKILL'));
  const lines = createInterface({ input: terminal.stdout })[Symbol.asyncIterator]();
  const { value: pid } = await lines.next();
  const session = () => textOf(`/proc/${terminal.pid}/autogroup`);
  expect(session()).toMatch(/ nice -10$/m);
  process.kill(Number(pid), 'SIGKILL');
  await vi.waitFor(() => expect(session()).toMatch(/ nice 0$/m), 10_000);
});
