// The table of CPU time per request, by known figures.
import { expect, test } from 'vitest';
import { cellText } from '../../report/table.ts';
import { requireSameTls, tableOfCosts, type CostRow } from './cost.ts';

/** @param micros CPU time per request, by round */
const row = (generator: string, micros: readonly number[], rps: number, tls?: string): CostRow => ({
  load: 'HTTP/1.1',
  core: 'own',
  generator,
  samples: micros.map((cpuMicrosPerRequest) => ({
    requests: 1000,
    rps,
    errors: 0,
    cpuMicrosPerRequest,
    ...(tls === undefined ? {} : { tls }),
  })),
});

test('the engine is compared with each generator in the same rounds', () => {
  // Both rounds have half of wrk's, though the rounds differ.
  const rows = [row('bakeoff', [5, 10], 110_000), row('wrk', [10, 20], 100_000)];
  expect(tableOfCosts(rows).rows.map((cells) => cells.map(cellText))).toEqual([
    ['HTTP/1.1', 'own', 'bakeoff', '7.50', '110,000', '', ''],
    ['HTTP/1.1', 'own', 'wrk', '15.00', '100,000', '×0.50 [0.50, 0.50]', '×1.10 [1.10, 1.10]'],
  ]);
});

test('the engine is compared within a load and a core', () => {
  const shared: CostRow[] = [row('bakeoff', [4, 4], 1), row('wrk', [5, 5], 1)].map((each) => ({
    ...each,
    core: "the server's",
  }));
  const { rows } = tableOfCosts([row('bakeoff', [6, 6], 1), row('wrk', [5, 5], 1), ...shared]);
  const ratios = rows.map((cells) => cellText(cells[5] ?? ''));
  expect(ratios).toEqual(['', '×1.20 [1.20, 1.20]', '', '×0.80 [0.80, 0.80]']);
});

test('another protocol than that of the engine is refused', () => {
  const [h2, http1] = ['TLSv1.3 h2', 'TLSv1.3 http/1.1'];
  const ours = row('bakeoff', [1], 1, h2);
  requireSameTls([ours, row('h2load', [1], 1, h2), row('oha', [1], 1)]);
  expect(() => requireSameTls([ours, row('h2load', [1], 1, http1)])).toThrow(
    'h2load has TLSv1.3 http/1.1',
  );
});
