// Measured against expected figures of the known servers. Bounds make the part a check.
import { geometricMean, median, total } from '../../lib/analysis/statistics.ts';
import { enumeration, perSecond, percent, scaledTime, short, whole } from '../../lib/format.ts';
import {
  leftColumn as left,
  rightColumn as right,
  tableOf,
  type Column,
  type Table,
} from '../../lib/report/table.ts';
import type {
  Arrangement,
  Expected,
  KnownCase,
  KnownFigures,
  KnownRound,
  MixedRound,
  PartFile,
} from './results.ts';
import type { View } from './view.ts';

const columns: readonly (readonly [Arrangement, string])[] = [
  ['alone', 'alone'],
  ['two', '2 sides'],
  ['eight', '8 sides'],
];

/** A figure with bounds. A deviation is accepted if it is within either bound. */
interface Figure {
  name: Exclude<keyof Expected, 'chance'>;
  title: string;
  /** Accepted deviation: as a share of the expected value, and in the figure's unit. */
  share: number;
  amount: number;
  text(value: number): string;
}

/** Formats a queue's growth in requests/s. Rounded, because random arrivals cause small deviations. */
export function growthText(perSecond: number): string {
  return whole(perSecond).replace('-', perSecond > -0.5 ? '' : '−');
}

/** In the median of several rounds, timers are 0.1 ms late, and a pause of the machine delays one response in a hundred. */
const figures: readonly Figure[] = [
  { name: 'rps', title: 'requests/s', share: 0.03, amount: 0, text: perSecond },
  { name: 'p50Ms', title: 'p50', share: 0.03, amount: 0.1, text: scaledTime },
  { name: 'p99Ms', title: 'p99', share: 0.1, amount: 1, text: scaledTime },
  { name: 'cpuMicros', title: 'CPU µs per request', share: 0.03, amount: 0, text: short },
  {
    name: 'queueGrowthPerSecond',
    title: 'queue growth/s',
    share: 0.03,
    amount: 20,
    text: growthText,
  },
  { name: 'errors', title: 'errors', share: 0, amount: 0, text: String },
  { name: 'reconnects', title: 'new connections', share: 0, amount: 0, text: String },
];

/** A figure in one arrangement: median over the rounds, and median relative deviation from each round's expected value. */
interface Judged {
  seen: number;
  off: number;
  isBeyond: boolean;
}

/** Judges the rounds of a figure; `off` is NaN if no round has an expected value. @param pairs at least one */
function judged(
  { share, amount }: Pick<Figure, 'share' | 'amount'>,
  pairs: readonly { seen: number; expected: number | undefined; chance?: number }[],
): Judged {
  const seen = median(pairs.map((pair) => pair.seen));
  const compared = pairs.flatMap((pair) =>
    pair.expected === undefined
      ? []
      : [{ seen: pair.seen, expected: pair.expected, chance: pair.chance ?? 0 }],
  );
  if (compared.length === 0) return { seen, off: NaN, isBeyond: false };
  const off = median(
    compared.map((pair) => (pair.seen === pair.expected ? 0 : pair.seen / pair.expected - 1)),
  );
  const amountOff = median(compared.map((pair) => pair.seen - pair.expected));
  // Two standard errors.
  const chance =
    (2 * Math.max(...compared.map((pair) => pair.chance))) / Math.sqrt(compared.length);
  const isBeyond = Math.abs(off) > share && Math.abs(amountOff) > Math.max(amount, chance);
  return { seen, off, isBeyond };
}

interface Row {
  name: string;
  how: string;
  title: string;
  expected: string;
  cells: ReadonlyMap<string, Judged>;
  text(value: number): string;
}

function chanceOf(name: Figure['name'], { expected: { chance = {} } }: KnownRound): number {
  return name === 'rps' || name === 'p50Ms' || name === 'p99Ms' ? (chance[name] ?? 0) : 0;
}

/** A row for each figure. Errors and new connections have a row only if there are any or the case is about them. */
function rowsOf({ name, how, rounds }: KnownCase): Row[] {
  return figures.flatMap((figure): Row[] => {
    const isCount = figure.name === 'errors' || figure.name === 'reconnects';
    const expectedIn = ({ expected }: KnownRound): number | undefined =>
      expected[figure.name] ?? (isCount ? 0 : undefined);
    const cells = new Map(
      columns.flatMap(([arrangement, title]): [string, Judged][] => {
        const pairs = rounds.flatMap((round) => {
          // Files of earlier versions lack some figures.
          const seen = round[arrangement][figure.name] ?? null;
          return seen === null
            ? []
            : [{ seen, expected: expectedIn(round), chance: chanceOf(figure.name, round) }];
        });
        if (pairs.length === 0) return [];
        // Counts are summed, so that a single error in any round shows.
        return [
          [
            title,
            judged(
              figure,
              isCount
                ? [
                    {
                      seen: total(pairs, ({ seen }) => seen),
                      expected: total(pairs, ({ expected = 0 }) => expected),
                    },
                  ]
                : pairs,
            ),
          ],
        ];
      }),
    );
    const isAbout = rounds.some(({ expected }) => expected[figure.name] !== undefined);
    if (isCount && !isAbout && [...cells.values()].every(({ isBeyond }) => !isBeyond)) return [];
    const known = rounds.flatMap((round) => expectedIn(round) ?? []);
    if (known.length === 0 && cells.size === 0) return [];
    return [
      {
        name,
        how,
        title: figure.title,
        expected: known.length === 0 ? '' : figure.text(median(known)),
        cells,
        text: figure.text,
      },
    ];
  });
}

/** Whether any figure of the server is out of bounds, or none was measured. */
export function isBeyondBounds(known: KnownCase): boolean {
  return known.rounds.length === 0 || beyond(rowsOf(known)).length > 0;
}

const together = '4 sides';
export const mixedName = 'computes, against waits';

/** Ratio of requests/s, computing to waiting servers, with the bounds of requests/s. */
function rowOfMixed(how: string, rounds: readonly MixedRound[]): Row[] {
  if (rounds.length === 0) return [];
  const [{ share, amount }] = figures as [Figure, ...Figure[]];
  const ratios = rounds.map((round) => ({
    seen:
      geometricMean(round.together.computing.map(({ rps }) => rps)) /
      geometricMean(round.together.waiting.map(({ rps }) => rps)),
    expected: round.alone.computing.rps / round.alone.waiting.rps,
  }));
  const times = (value: number): string => `×${value.toFixed(2)}`;
  return [
    {
      name: mixedName,
      how,
      title: 'ratio of requests/s',
      expected: times(median(ratios.map(({ expected }) => expected))),
      text: times,
      cells: new Map([[together, judged({ share, amount }, ratios)]]),
    },
  ];
}

function cellOf({ text }: Row, { seen, off, isBeyond }: Judged): string {
  const offText =
    Number.isNaN(off) || off === 0
      ? ''
      : Number.isFinite(off)
        ? ` (${off < 0 ? '−' : '+'}${(100 * Math.abs(off)).toFixed(1)} %)`
        : ' (none expected)';
  return `${text(seen)}${offText}${isBeyond ? ' ✗' : ''}`;
}

/** Lists the figures out of bounds, a line each. */
function beyond(rows: readonly Row[]): string[] {
  return rows.flatMap((row) =>
    [...row.cells]
      .filter(([, { isBeyond }]) => isBeyond)
      .map(
        ([place, cell]) =>
          `${row.name}, ${place}: ${row.title} ${cellOf(row, cell).replace(' ✗', '')}`,
      ),
  );
}

export function waiting({ data: { cases, mixed } }: PartFile<'waiting'>): Omit<View, 'title'> {
  const measured = cases.filter(({ rounds }) => rounds.length > 0);
  const rows = [
    ...measured.flatMap(rowsOf),
    ...(mixed === null ? [] : rowOfMixed(mixed.how, mixed.rounds)),
  ];
  const isFirst = (row: Row): boolean => rows.find(({ name }) => name === row.name) === row;
  const missing = [
    ...cases.filter(({ rounds }) => rounds.length === 0).map(({ name }) => name),
    ...(mixed?.rounds.length === 0 ? [mixedName] : []),
  ];
  const wrong = [...beyond(rows), ...missing.map((name) => `${name}: not measured`)];
  const known = total(
    rows,
    ({ cells }) => [...cells.values()].filter(({ off }) => !Number.isNaN(off)).length,
  );
  return {
    about:
      'Servers whose figures are known by arithmetic, most of which wait: each is loaded alone, beside one other server, and beside seven, which are nginx with a static page. Where the truth needs a figure of the server alone (its overhead, its CPU time), it is that of the same round. Besides waiting, an answer takes 0.1 to 2 ms of work: the CPU time per request of a server that hardly works depends on how its answers fall together, and on cold caches, by 20 % and more. Figures are medians of the rounds, of which servers with a figure beyond its bounds have up to three times as many; errors and new connections their sums; in brackets stands the median of what a round was off by. Beyond the bounds (✗) is what is off by more than 3 % (requests/s, CPU; p50 where that is more than 0.1 ms) 10 % (p99, where that is more than 1 ms) or 20 requests (growth of a queue in a second), and any error or new connection. Where requests come at random, a figure may also be off by twice what such a load is off by chance.',
    findings:
      rows.length === 0
        ? []
        : [
            wrong.length === 0
              ? `All ${known} figures are within their bounds.`
              : `Beyond their bounds are ${wrong.length} of ${known} figures: ${enumeration(wrong)}.`,
          ],
    tables: [
      tableOf(rows, [
        left('server', (row) => (isFirst(row) ? row.name : '')),
        left('figure', ({ title }) => title),
        right('truth', ({ expected }) => expected),
        ...[...columns.map(([, title]) => title), together].map((title): Column<Row> =>
          right(title, (row) => {
            const cell = row.cells.get(title);
            return cell === undefined ? '' : cellOf(row, cell);
          }),
        ),
      ]),
      tableOf(rows.filter(isFirst), [
        left('server', ({ name }) => name),
        left('how its truth is known', ({ how }) => how),
      ]),
    ],
    plots: [],
    details: [everyRound(measured, mixed?.rounds ?? [])],
    beyond: wrong,
  };
}

interface Detail {
  name: string;
  round: number;
  place: string;
  seen: KnownFigures;
}

function everyRound(cases: readonly KnownCase[], rounds: readonly MixedRound[]): Table {
  const details = [
    ...cases.flatMap(({ name, rounds: all }) =>
      all.flatMap((round, index) =>
        columns.map(([arrangement, place]): Detail => ({
          name,
          round: index + 1,
          place,
          seen: round[arrangement],
        })),
      ),
    ),
    ...rounds.flatMap((round, index) =>
      (['waiting', 'computing'] as const).flatMap((side): Detail[] => [
        { name: side, round: index + 1, place: 'alone', seen: round.alone[side] },
        ...round.together[side].map((seen): Detail => ({
          name: side,
          round: index + 1,
          place: together,
          seen,
        })),
      ]),
    ),
  ];
  return tableOf(details, [
    left('server', ({ name, place, round }) => `${name}, ${place}, round ${round}`),
    right('requests/s', ({ seen: { rps } }) => perSecond(rps)),
    right('mean', ({ seen: { meanMs } }) => scaledTime(meanMs)),
    right('p50', ({ seen: { p50Ms } }) => scaledTime(p50Ms)),
    right('p99', ({ seen: { p99Ms } }) => scaledTime(p99Ms)),
    right('CPU µs per request', ({ seen: { cpuMicros } }) =>
      cpuMicros === null ? '' : short(cpuMicros),
    ),
    right('queue growth/s', ({ seen: { queueGrowthPerSecond = null } }) =>
      queueGrowthPerSecond === null ? '' : growthText(queueGrowthPerSecond),
    ),
    right('errors', ({ seen: { errors } }) => String(errors)),
    right('new connections', ({ seen: { reconnects } }) => String(reconnects)),
    right('CPU while others were loaded', ({ seen: { idleCpuShare } }) =>
      idleCpuShare === null ? '' : percent(idleCpuShare),
    ),
    right('turns', ({ seen: { turns } }) =>
      turns === null
        ? ''
        : `${turns.count} × ${scaledTime(turns.sliceMs)}${turns.waits ? `, ramps of ${scaledTime(turns.rampMs)}` : ''}`,
    ),
  ]);
}
