// Results that would take for ever, and figures that have to agree with each other.
import { expect, onTestFinished, test, vi } from 'vitest';
import { main } from '../../lib/cli/main.ts';
import { tableParts } from '../../lib/report/run-tables.ts';
import { checkResult } from '../../lib/result/result.ts';
import { compared, openFileCache, result, rounds, workers } from '../fixtures/result.ts';

const both = result([workers, openFileCache]);

test('a result of more rounds than a run can have is refused at once', () => {
  const long = compared(both, { roundRatios: Array.from({ length: 100_000 }, () => 1.1) });
  expect(() => checkResult(JSON.stringify(long), 'result.json')).toThrow(
    'result.json is of an earlier bakeoff, or was changed: comparisons[0].roundRatios has more than 1000: run it again with this one',
  );
}, 10_000);

test('the line on a disagreement has the figures of the table, and its share is theirs', () => {
  const costly = {
    ...openFileCache,
    rounds: rounds([100_000, 104_000, 98_000, 101_000, 103_000, 99_000], 129, 1, 2, 3, 7),
  };
  const [part] = tableParts(result([workers, costly]));
  const line = part?.below.find((one) => one.includes('disagree'));
  const [, rps = '', cpu = '', less, share = '', more] =
    /^open-file-cache: requests\/s \((.+?)\) and CPU per request \((.+?)\) disagree, since with (\S+) the server's cores were (\d+) % less busy than with (\S+)\.$/.exec(
      line ?? '',
    ) ?? [];
  const row = part?.tables
    .flatMap(({ rows }) => rows)
    .find((cells) => JSON.stringify(cells).includes('open-file-cache'));
  expect(JSON.stringify(row)).toContain(`"${rps} [`);
  expect(JSON.stringify(row)).toContain(`"${cpu} [`);
  // Requests/s times CPU per request is the use of the cores.
  const use = (1 - Number(/\d+/.exec(rps)) / 100) * Number.parseFloat(cpu);
  expect([less, more]).toEqual(
    use > 1 ? ['workers', 'open-file-cache'] : ['open-file-cache', 'workers'],
  );
  expect(Math.abs(Number(share) / 100 - (1 - Math.min(use, 1 / use)))).toBeLessThan(0.03);
});

test('the help of report names the command as it was typed', async () => {
  const said = vi.spyOn(console, 'log').mockImplementation(() => undefined);
  const [, script] = process.argv;
  process.argv[1] = '/x/node_modules/.bin/bakeoff';
  onTestFinished(() => void (process.argv[1] = script as string));
  expect(await main(['report', '--help'])).toBe(0);
  expect(said.mock.calls.join('\n')).toMatch(/^npx bakeoff report RUN…/);
});
