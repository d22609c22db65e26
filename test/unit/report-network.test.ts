// The report of a run over emulated networks, without what belongs to the feature.
import { expect, test } from 'vitest';
import { headlineHtml } from '../../lib/report/html/headline.ts';
import { tableParts, variantTable } from '../../lib/report/run-tables.ts';
import { footnoteLines, verdictLines } from '../../lib/report/sentences.ts';
import type { Table } from '../../lib/report/table.ts';
import type { KernelSetting } from '../../lib/result/result.ts';
import { held, notHeld, queue, untuned, variant } from '../fixtures/delayed-run.ts';
import { compared, result } from '../fixtures/result.ts';
import { columnOf } from '../fixtures/table.ts';

test("errors by kind are the load's; those of nginx stand beside the article's kinds", () => {
  const published = { clientErrors: ['client timed out'] };
  const linked = variant('one', 10, (requests) => queue(requests), { published });
  const rounds = linked.rounds.map(({ round, phases }) => ({
    round,
    phases: phases.map((phase) => ({
      ...phase,
      clientErrors: { 'client timed out': 3, reset: 1 },
    })),
  }));
  const of = result([{ ...linked, rounds }]);
  const errors = tableParts(of, []).find(({ title }) => title === 'Errors by kind:');
  const log = errors?.tables[1] as Table;
  expect(log.rows).toEqual([
    ['client timed out', 'shown', '12'],
    ['reset', '', '4'],
  ]);
  expect(tableParts(held, []).map(({ title }) => title)).not.toContain('Errors by kind:');
});

test('errors in the article are next to measured ones, if there were any', () => {
  expect(columnOf(variantTable(held), 'errors/M', 'published')).toEqual(['363', '174']);
  const none = { ...untuned, published: { rps: 2211, errorsPerMillion: 0 } };
  expect(columnOf(variantTable(result([none])), 'errors/M', 'published')).toBeUndefined();
});

test('an inaccurate link is marked in the cell and the sentence', () => {
  const of = compared(notHeld, { verdict: 'same' });
  const cell = columnOf(variantTable(of), 'against untuned')?.[1];
  expect(cell).toMatch(/ same within 1 %, delay not held$/);
  for (const result of [of, notHeld])
    expect(verdictLines(result, [])[0]).toContain(' to +20 %), delay not held; ');
});

test('an inaccurate link takes the colour from a verdict', () => {
  expect(variantTable(notHeld).rows[1]).toContainEqual(
    expect.objectContaining({ part: 'faster, delay not held', verdict: 'inconclusive' }),
  );
  expect(headlineHtml(notHeld, []).text).toMatch(/"effect inconclusive">.*, delay not held<\/h1>/);
  expect(verdictLines({ ...notHeld, control: true }, [])[0]).toContain('), delay not held. ');
  expect(verdictLines(held, [])[0]).not.toContain('held');
});

test('kernel settings are listed by side and variants, with problems', () => {
  const of = { side: 'server' as const, value: '1', variants: ['nopush'] };
  const kernelSettings: KernelSetting[] = [
    { ...of, name: 'a' },
    { ...of, name: 'c', value: '3 4' },
    { ...of, name: 'b', problem: 'it is gone' },
    { ...of, name: 'd', side: 'client', variants: ['untuned', 'nopush'] },
  ];
  expect(footnoteLines({ ...held, kernelSettings })).toEqual([
    expect.stringMatching(
      /^nopush: .* the server's namespace: a=1, c=3 4, b=1 \(does not hold: it is gone\)\.$/,
    ),
    expect.stringMatching(/^every variant: .* the client's namespace: d=1\.$/),
  ]);
});
