// Latency by rate as text: a search's steps, or a sweep.
import { curveRows, curvesOf, type CurvePoint, type CurveRow } from '../analysis/curve.ts';
import { limitText } from '../analysis/within.ts';
import { bar, percent, scaledTime, whole } from '../format.ts';
import type { FoundRate, Result, Search } from '../result/result.ts';
import { leftColumn, rightColumn, tableOf, type Part } from './table.ts';

const barWidth = 16;

/** p50 and p99 by rate, beside each other; bars are p99. Nothing where a result has no curve. */
export function curvePart(result: Pick<Result, 'search' | 'variants'>): Part[] {
  const curves = curvesOf(result);
  if (curves.length === 0) return [];
  const rows = curveRows(curves);
  const { search } = result;
  // What is far beyond the limit tells no more than that it is.
  const longest =
    search === undefined
      ? Math.max(...rows.flatMap(({ seen }) => [...seen.values()].map(({ p99 }) => p99)))
      : 2 * search.within.ms;
  const table = tableOf(rows, [
    rightColumn('requests/s', ({ rate }) => whole(rate)),
    ...curves.flatMap(({ name }) => {
      const told =
        (text: (point: CurvePoint) => string) =>
        ({ seen }: CurveRow): string => {
          const point = seen.get(name);
          return point === undefined ? '' : text(point);
        };
      const joined = { group: name, joined: true } as const;
      return [
        rightColumn(
          'p50',
          told(({ p50 }) => scaledTime(p50)),
          { group: name },
        ),
        rightColumn(
          'p99',
          told(({ p99 }) => scaledTime(p99)),
          joined,
        ),
        leftColumn(
          '',
          told(
            ({ p99, kept }) =>
              (kept === false ? '×' : ' ') + bar(Math.min(1, p99 / longest), barWidth),
          ),
          joined,
        ),
      ];
    }),
  ]);
  const title =
    search === undefined
      ? 'Latency by rate; bars are p99:'
      : `Latency by rate; bars are p99, × where ${limitText(search.within)} was not kept:`;
  return [{ title, tables: [table], below: [] }];
}

/** What a search found, a line for each variant, and a sentence where the limit is blurred. */
export function foundLines({ search }: Pick<Result, 'search'>): string[] {
  if (search === undefined) return [];
  const limit = limitText(search.within);
  return [
    ...search.found.map(
      ({ variant, rate, ci95, atLeast }) =>
        `${variant} keeps ${limit} up to ${atLeast ? 'at least ' : ''}${whole(rate)} requests/s in half of its loads${ci95 === null ? '' : ` (95 % interval ${whole(ci95[0])} to ${whole(ci95[1])})`}` +
        `${atLeast ? ': beyond it the generator was at its limit' : ''}.`,
    ),
    ...blurredLines(search),
  ];
}

/** Steps at less than this of the rate that was found are far below it. */
const farBelow = 0.6;
/** Of them so many may be broken by chance, and of fewer than so many nothing can be told. */
const [tolerablyBroken, fewestSteps] = [0.2, 5];

/** Where latencies break the limit at rates far below, too: what was found says little then. */
function blurredLines({ within, found, steps }: Search): string[] {
  return found.flatMap(({ variant, rate }) => {
    const below = steps.filter((step) => step.variant === variant && step.rate < farBelow * rate);
    const broken = below.filter(
      (step) => !step.kept && step.latencyMs[within.metric] > within.ms,
    ).length;
    return below.length < fewestSteps || broken <= tolerablyBroken * below.length
      ? []
      : [
          `${variant}: ${whole(broken)} of ${whole(below.length)} steps at less than ${percent(farBelow)} of that rate broke ${limitText(within)}, too: pauses, of the machine or of the server, are as long as that. A wider limit tells more.`,
        ];
  });
}

/** "at least 39,300", what stands in a table of what a search found. */
export function foundText({ rate, atLeast }: FoundRate): string {
  return `${atLeast ? 'at least ' : ''}${whole(rate)}`;
}
