import { appendFileSync } from 'node:fs';
import path from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { phaseBeginsPrefix, phaseLinePrefix } from '../../lib/k6/load-plan.ts';
import { watchConsole } from '../../lib/runner/record.ts';
import { newFolder } from '../fixtures/new-folder.ts';

test('what the script prints is told once, as soon as a line of it is whole', async () => {
  const folder = newFolder();
  const file = path.join(folder, 'phases.log');
  const [begins, over] = [vi.fn(), vi.fn()];
  const unwatch = watchConsole(file, { begins, over });
  onTestFinished(unwatch);
  const told = async (of: typeof begins, times: number): Promise<void> => vi.waitFor(() => expect(of).toHaveBeenCalledTimes(times), { timeout: 5000, interval: 5 });
  appendFileSync(file, `${phaseBeginsPrefix}\n`);
  await told(begins, 1);
  expect(begins).toHaveBeenLastCalledWith(undefined);
  appendFileSync(file, `${phaseLinePrefix}{"results":`);
  appendFileSync(path.join(folder, 'record.ndjson'), `${phaseBeginsPrefix}\n`);
  appendFileSync(file, `[]}\n${phaseBeginsPrefix} [1,2.5]\n`);
  await told(begins, 2);
  expect(begins).toHaveBeenLastCalledWith([1, 2.5]);
  expect(over.mock.calls).toEqual([[{ results: [] }]]);
  // What a full disk left of a line, and the next one behind it.
  appendFileSync(file, `${phaseLinePrefix}{"res${phaseBeginsPrefix}\n${phaseBeginsPrefix}\n`);
  await told(begins, 3);
  unwatch();
  expect(watchConsole('/nowhere/phases.log', { begins, over })()).toBeUndefined();
});
