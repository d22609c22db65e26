import { appendFileSync } from 'node:fs';
import { expect, onTestFinished, test, vi } from 'vitest';
import { phaseLinePrefix } from '../../lib/k6/load-plan.ts';
import { watchConsole } from '../../lib/runner/k6.ts';
import { newFolder } from '../fixtures/new-folder.ts';
import path from 'node:path';

test('the end of a phase is told once, as soon as its line is whole', async () => {
  const folder = newFolder();
  const file = path.join(folder, 'phases.log');
  const over = vi.fn();
  const unwatch = watchConsole(file, over);
  onTestFinished(unwatch);
  const told = async (times: number): Promise<void> =>
    vi.waitFor(() => expect(over).toHaveBeenCalledTimes(times), { timeout: 5000, interval: 5 });
  appendFileSync(file, `${phaseLinePrefix}{"results":`);
  appendFileSync(path.join(folder, 'record.ndjson'), `${phaseLinePrefix}{"results":[1]}\n`);
  appendFileSync(file, '[]}\n');
  await told(1);
  // What a full disk left of a line, and the next one behind it.
  appendFileSync(file, `${phaseLinePrefix}{"res\n${phaseLinePrefix}{"results":[2]}\n`);
  await told(2);
  expect(over.mock.calls).toEqual([[{ results: [] }], [{ results: [2] }]]);
  unwatch();
  expect(watchConsole('/nowhere/phases.log', over)()).toBeUndefined();
});
