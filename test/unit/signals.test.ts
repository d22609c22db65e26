// Signals to this process itself.
import { setTimeout as delay } from 'node:timers/promises';
import { expect, test, vi } from 'vitest';
import { takeSignals } from '../../lib/signals.ts';

const interrupt = () => process.kill(process.pid, 'SIGINT');

/** Keeps this process from handling anything. */
function block(ms: number): void {
  const endMs = performance.now() + ms;
  while (performance.now() < endMs);
}

test('Ctrl-C comes twice through npm, and is one wish', async () => {
  const exit = vi.spyOn(process, 'exit').mockReturnValue(undefined as never);
  const printed = vi.spyOn(console, 'error').mockReturnValue();
  const { signal, release } = takeSignals('ending the run');
  signal.addEventListener('abort', () => {
    interrupt();
    block(600);
  });
  interrupt();
  await vi.waitFor(() => expect(signal.aborted).toBe(true), 20_000);
  await delay(1);
  expect(exit).not.toHaveBeenCalled();
  await vi.waitFor(() => {
    interrupt();
    expect(exit).toHaveBeenCalledWith(130);
  }, 20_000);
  release();
  expect(printed).toHaveBeenCalledExactlyOnceWith(expect.stringContaining('ending the run'));
});
