import { readdirSync } from 'node:fs';
import { expect, test, vi } from 'vitest';
import { noAdditions } from '../fixtures/additions.ts';
import { readScenarioOptions } from '../../lib/cli/scenario.ts';
import { print, progressEvents, reportRun, say, shorterLine } from '../../lib/cli/run-output.ts';
import { UserError } from '../../lib/errors.ts';
import { leftColumn, tableOf, terminalTable } from '../../lib/report/table.ts';
import type { PlanOptions } from '../../lib/runner/make-plan.ts';
import { findScenario } from '../../lib/cli/find-scenario.ts';
import { asRunFolder, newFolder } from '../fixtures/new-folder.ts';
import { answers, phase } from '../fixtures/phase.ts';
import { secondsPerRound } from '../../lib/runner/times.ts';
import { planOf } from '../fixtures/plan.ts';
import { openFileCache, result, workers } from '../fixtures/result.ts';

const scenario = await findScenario('nginx-open-file-cache');
const two = { variants: scenario.variants.slice(0, 2) };

const stored = { line: 'Stored 10 of 10 requests' };
const options = readScenarioOptions([], { ...noAdditions, contributionsTo: () => [{ stored }] });

const whole = result([workers, openFileCache]);
async function reported(folder: string, outcome: Partial<Parameters<typeof reportRun>[0]> = {}) {
  const spies = (['log', 'error'] as const).map((name) =>
    vi.spyOn(console, name).mockImplementation(() => undefined),
  );
  const code = await reportRun({ result: whole, folder: asRunFolder(folder), ...outcome }, options);
  const [printed = [], complained = []] = spies.map((spy) =>
    spy.mock.calls.flat().flatMap((text) => String(text).split('\n')),
  );
  return { code, printed, complained };
}

test('the report names the page last, also after an early end', async () => {
  const folder = newFolder();
  const ended = new UserError('round 3 failed twice');
  await expect(reported(folder, { ended })).rejects.toBe(ended);
  expect(readdirSync(folder).sort()).toEqual(['report.html', 'table.md']);
  const { code, printed } = await reported(folder);
  expect(code).toBe(0);
  expect(printed.at(-1)).toBe(`${stored.line} · ${folder}/report.html`);
});

const long = { durationSeconds: 60 };
type Given = Pick<PlanOptions, 'durationSeconds' | 'rounds' | 'precision' | 'quick' | 'exact'>;
test.each<[Partial<Given>, string[], string]>([
  [{}, [], ''],
  [long, [], '--quick, fewer --rounds, a --max-time'],
  // --quick would only change the warm-up.
  [{ ...long, rounds: 4 }, [], 'fewer --rounds, a --max-time'],
  // --quick cannot be combined with these flags.
  [{ ...long, exact: true }, [], 'fewer --rounds, a --max-time'],
  [{ ...long, precision: 0.01 }, [], 'a wider --precision, a --max-time'],
  [{ quick: true, rounds: 1, durationSeconds: 300 }, ['fewer --variants'], 'fewer --variants'],
])('advice for a shorter run with %j and %j: %s', (given, ways, advice) => {
  expect(shorterLine(planOf(scenario, given, two), { ...options, ...given }, ways)).toEqual(
    advice === '' ? [] : [`To make it shorter: ${advice}.`],
  );
});

test('progress reports the figures of a variant in a round', () => {
  const printed = (total: number) => {
    const lines: string[] = [];
    const line = (text: string): void => void lines.push(text);
    const { errors } = phase({ requests: 0 });
    const measured = phase({
      requests: 10_000,
      responses: answers({ '2xx': 10_000 - total }),
      errors: { ...errors, connect: total, total },
    });
    const progress = {
      running: () => undefined,
      finished: line,
      say: line,
      clear: () => undefined,
    };
    const outcome = { phases: [measured] } as never;
    progressEvents(planOf(scenario, {}, two), progress).measured({
      round: 1,
      attempt: 1,
      variant: 'x',
      outcome,
    });
    return lines;
  };
  expect(printed(0)).toEqual(['round 1 of 4 to 10 · x · 1,000 requests/s · 0 errors']);
  expect(printed(1)).toEqual([
    'round 1 of 4 to 10 · x · 1,000 requests/s · 1 error, 99.99 % succeeded',
  ]);
});

test('progress counts the rounds of the heading', () => {
  const lines: string[] = [];
  const line = (text: string) => void lines.push(text);
  const progress = { running: () => undefined, finished: line, say: line, clear: () => undefined };
  const limited = planOf(scenario, {}, two);
  const plan = { ...limited, maxTimeSeconds: 2.5 * secondsPerRound(limited) };
  const outcome = { phases: [phase({ requests: 1000 })] } as never;
  for (const round of [1, 2, 3])
    progressEvents(plan, progress).measured({ round, attempt: round, variant: 'x', outcome });
  // Its files have the number that notes have, which counts dropped rounds too.
  progressEvents(plan, progress).measured({ round: 1, attempt: 3, variant: 'x', outcome });
  expect(lines.map((text) => text.replace(/ · .* · /, ': '))).toEqual([
    'round 1 of 2: 0 errors',
    'round 2 of 2: 0 errors',
    'round 3 of 3: 0 errors',
    'round 1 of 2: 0 errors (round-3)',
  ]);
});

test('lines and tables have no characters that control the terminal', () => {
  const spy = vi.spyOn(console, 'log').mockImplementation(() => undefined);
  const odd = 'a\u001b[2J\u202eb';
  say(options, [odd]);
  const table = tableOf([odd], [leftColumn('name', (row) => row), leftColumn('', () => 'x')]);
  print(options, terminalTable(table, { width: Infinity, colour: false }));
  expect(spy.mock.calls.flat()).toEqual(['a [2J b', 'name\na [2J b  x']);
});
