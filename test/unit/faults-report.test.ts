// Results that would take for ever, and the words of the command that shows results.
import { expect, onTestFinished, test, vi } from 'vitest';
import { main } from '../../lib/cli/main.ts';
import { checkResult } from '../../lib/result/result.ts';
import { compared, openFileCache, result, workers } from '../fixtures/result.ts';

test('a result of more rounds than a run can have is refused at once', () => {
  const long = compared(result([workers, openFileCache]), {
    roundRatios: Array.from({ length: 100_000 }, () => 1.1),
  });
  expect(() => checkResult(JSON.stringify(long), 'result.json')).toThrow(
    'result.json is of an earlier bakeoff, or was changed: comparisons[0].roundRatios has more than 1000: run it again with this one',
  );
}, 10_000);

test('the help of report names the command as it was typed', async () => {
  const said = vi.spyOn(console, 'log').mockImplementation(() => undefined);
  const [, script] = process.argv;
  process.argv[1] = '/x/node_modules/.bin/bakeoff';
  onTestFinished(() => void (process.argv[1] = script as string));
  expect(await main(['report', '--help'])).toBe(0);
  expect(said.mock.calls.join('\n')).toMatch(/^npx bakeoff report RUN…/);
});
