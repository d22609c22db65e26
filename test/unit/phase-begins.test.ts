import { appendFileSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { phaseBeginsLine } from '../../lib/k6/load-plan.ts';
import { watchPhaseBegins } from '../../lib/runner/record.ts';

test('each phase\'s begin is told once, as soon as the script has printed it', async () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'begins-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const file = path.join(folder, 'phases.log');
  const begins = vi.fn();
  const unwatch = watchPhaseBegins(file, begins);
  onTestFinished(unwatch);
  const told = async (times: number): Promise<void> => vi.waitFor(() => expect(begins).toHaveBeenCalledTimes(times), { timeout: 5000, interval: 5 });
  appendFileSync(file, `${phaseBeginsLine}\n`);
  await told(1);
  appendFileSync(file, 'bakeoff-phase {"requests":5}\n');
  appendFileSync(path.join(folder, 'record.ndjson'), `${phaseBeginsLine}\n`);
  appendFileSync(file, `${phaseBeginsLine}\n`);
  await told(2);
  unwatch();
  expect(watchPhaseBegins('/nowhere/phases.log', begins)()).toBeUndefined();
});
