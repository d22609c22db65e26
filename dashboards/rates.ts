// Panels on latency by rate: of a search for the highest rate within a limit (--within), or of a sweep over rates (--rates).
import { benchComparison } from '../lib/features/influxdb/comparison-points.ts';
import { benchCurve } from '../lib/features/influxdb/schema.ts';
import { marksPanel } from './charts.ts';
import { pickedRun } from './influxql.ts';
import { nullAs, tablePanel, variantColumn, yesOrNo } from './tables.ts';

const noCurve =
  'This run has its latency at one rate only: --within searches, --rates takes several.';

/** A row per variant of a search. */
export const foundPanel = tablePanel({
  id: 28,
  title: 'The highest rate within the limit',
  description:
    'What the search found: the geometric mean over the rounds, with its 95 % interval, low to high, which takes 4 rounds. "at least": beyond it the generator was ' +
    'at its limit, and the server may do more. Whether two rates differ is told by their ratio within rounds, in the table on top.',
  grid: { x: 0, y: 70, w: 12, h: 7 },
  from: benchComparison,
  where: { ...pickedRun, has: 'within' },
  noRows: 'This run searched for no rate: --within p99=5ms does.',
  columns: [
    { ...variantColumn, minWidth: 160 },
    { name: 'within', title: 'limit', width: 150 },
    { name: 'measured_rps', title: 'req/s', width: 85 },
    { name: 'found_low', title: 'low', width: 80 },
    { name: 'found_high', title: 'high', width: 80 },
    {
      name: 'found_at_least',
      title: 'at least',
      width: 80,
      mappings: [yesOrNo({ color: 'text' })],
    },
  ],
});

/** A row per point of the curves. */
export const curvePanel = tablePanel({
  id: 29,
  title: 'Latency by rate',
  description:
    'A row for each step of a search, or for each rate of a sweep, from the lowest on. A step is "kept" where its latency was within the limit and the rate was made, ' +
    'without failures. At a rate, latency runs from when a request was due.',
  grid: { x: 12, y: 70, w: 12, h: 7 },
  from: benchCurve,
  where: pickedRun,
  noRows: noCurve,
  columns: [
    { ...variantColumn, minWidth: 160 },
    { name: 'rate', title: 'req/s', width: 100 },
    { name: 'p50_ms', title: 'p50', width: 100 },
    { name: 'p99_ms', title: 'p99', width: 100 },
    {
      name: 'kept',
      title: 'kept',
      width: 80,
      coloured: true,
      mappings: [yesOrNo({ color: 'orange' }), nullAs('–', 'text')],
    },
  ],
});

/** The same as marks. */
export const curveMarks = marksPanel({
  id: 30,
  title: 'Latency by rate, drawn',
  description:
    'The rows above: p50 as squares, p99 as circles, both scales logarithmic. A knee is where they turn up.',
  grid: { x: 0, y: 77, w: 24, h: 13 },
  noMarks: noCurve,
});
