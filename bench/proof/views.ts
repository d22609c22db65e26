// The results of each part as sentences, tables and plots, the same for terminal and page.
import {
  type RatioInterval,
  extent,
  median,
  ratioInterval,
  total,
} from '../../lib/analysis/statistics.ts';
import { limitText } from '../../lib/analysis/limit.ts';
import { effect, duration, enumeration, percent, scaledTime, whole } from '../../lib/format.ts';
import {
  leftColumn as left,
  rightColumn as right,
  tableOf,
  type Column,
  type Table,
} from '../../lib/report/table.ts';
import { costlyLines } from './agreement.ts';
import { costlyLine, linesText, preciseFlags } from './power.ts';
import type { EffectSeen, LatencyRound, PartFile, PartName, Run, TimedRound } from './results.ts';
import {
  halfWidthOf,
  inTurnsByAlone,
  isDifferent,
  latencyOf,
  percentiles,
  ratioOf,
  widthWithin,
  widthsByTime,
} from './statistics.ts';
import { type Bar, intervalPlot, type IntervalPlot, linePlot } from './svg.ts';
import type { View } from './view.ts';
import { waiting } from './waiting-view.ts';

/** Two decimals, to distinguish widths below 1 %. */
const width = (share: number): string => `±${(share * 100).toFixed(2)} %`;
const ratio = (value: number): string => `×${value.toFixed(4)}`;
const bounded = ({ ratio: value, interval: [low, high] }: RatioInterval): string =>
  `×${value.toFixed(3)} [${low.toFixed(3)}, ${high.toFixed(3)}]`;
const ofRuns = (count: number, of: readonly unknown[]): string => `${count} of ${of.length}`;
const some = <T>(rows: readonly unknown[], of: () => T[]): T[] => (rows.length === 0 ? [] : of());
const intervals = (
  name: string,
  title: string,
  plot: Omit<IntervalPlot, 'title'>,
): View['plots'][number] => ({ name, title, svg: intervalPlot({ title, ...plot }) });
const verdicts = ['not called different', 'called different'] as const;
const asChange = {
  label: 'ratio of requests/s',
  text: (value: number) => `×${Number(value.toPrecision(4))}`,
};

/** Sections of the page, identified by title. */
export const titles: { readonly [Name in PartName]: string } = {
  aa: 'A config against itself',
  search: 'Searches with a config against itself',
  power: 'A known extra cost',
  width: 'Alternating against sequential rounds',
  slices: 'The length of a turn',
  latency: 'Latency at a rate, in turns and alone',
  waiting: 'Servers that wait',
  agreement: 'Beside other generators',
  disturbed: 'While a compiler runs',
};

export const views: { [Name in PartName]: (file: PartFile<Name>) => View } = {
  aa,
  search,
  power,
  width: widths,
  slices,
  latency,
  waiting: (file) => ({ title: titles.waiting, ...waiting(file) }),
  agreement,
  disturbed,
};

function aa({ data: { runs } }: PartFile<'aa'>): View {
  return againstItself('aa', `${runs.length} runs of the default length`, runs);
}

function search({ data: { within, runs, loads, loadSeconds } }: PartFile<'search'>): View {
  const view = againstItself(
    'search',
    `${runs.length} searches for the highest rate with ${limitText(within)}, as \`npm run scenario -- aa --within ${within.metric}=${within.ms}ms --quick\` makes them (requests/s are the rates that were found)`,
    runs,
  );
  if (runs.length === 0) return view;
  const rates = runs.flatMap(({ rps }) => rps);
  const after = [...new Set(loads.map(({ share }) => share))].map((share) => {
    const some = loads.filter((load) => load.share === share);
    return `at ${percent(share)} of it by ${total(some, ({ kept }) => kept)} of ${total(some, ({ of }) => of)}`;
  });
  return {
    ...view,
    findings: [
      ...view.findings,
      `Found were ${extent(rates).map(whole).join(' to ')} requests/s, with a median of ${whole(median(rates))}.`,
      ...some(after, () => [
        `What a search finds is the rate that half of the loads keep. Right after each, the limit was kept ${enumeration(after)} loads of ${loadSeconds} s.`,
      ]),
    ],
  };
}

/** @param kind of the runs, as part of a sentence */
function againstItself(part: 'aa' | 'search', kind: string, runs: readonly Run[]): View {
  const rows = [{ name: 'against itself', runs, reference: 1 }];
  return {
    title: titles[part],
    about: `nginx against the same nginx, ${kind}: whatever differs is chance, and a run that calls the two different is wrong. Intervals are of 95 %, so about 1 of 20 may be.`,
    findings: some(runs, () => [
      `${ofRuns(runs.filter(isDifferent).length, runs)} runs called the two different; the median half-width was ${width(median(runs.map(halfWidthOf)))}.`,
    ]),
    tables: [runsTable(rows)],
    plots: some(runs, () => [
      runsPlot(part, `${titles[part]}: ratio and interval of each run`, rows),
    ]),
    details: [everyRun(rows)],
  };
}

function power({ data: { line, costs } }: PartFile<'power'>): View {
  const rows = costs
    .filter(({ runs }) => runs.length > 0)
    .map(({ lines, runs, precise }) => ({
      name: linesText(lines),
      truth: ratioOf(runs.flatMap(({ roundRatios }) => roundRatios)),
      runs,
      precise,
    }));
  const slower = (runs: readonly Run[]): Run[] =>
    runs.filter(({ verdict }) => verdict === 'slower');
  const [byDefault, precisely] = ['default runs:', `${preciseFlags}:`];
  return {
    title: titles.power,
    about: `nginx with one line that does nothing but take time against itself with more of them (\`${line}\`). Runs of the default length were to find each of them, all in one run beside the plain server; their rounds together say what the lines truly cost. Others, of the plain server and the smallest cost, had \`${preciseFlags}\`, and so ended when the verdict was there, the interval within ±0.5 %, or the time over.`,
    findings: rows.map(
      ({ name, truth, runs }) =>
        `${name} (${effect(truth.ratio)}): found by ${ofRuns(slower(runs).length, runs)} default runs.`,
    ),
    tables: [
      tableOf(rows, [
        left('extra', ({ name }) => name),
        right('true ratio', ({ truth }) => bounded(truth)),
        right('cost', ({ truth }) => effect(truth.ratio)),
        right('found', ({ runs }) => ofRuns(slower(runs).length, runs), byDefault),
        right('half-width', ({ runs }) => width(median(runs.map(halfWidthOf))), byDefault),
        right(
          'time',
          ({ runs }) => duration(median(runs.map(({ seconds }) => seconds))),
          byDefault,
        ),
        right(
          'found',
          ({ precise }) => (precise.length === 0 ? '' : ofRuns(slower(precise).length, precise)),
          precisely,
        ),
        right(
          'time',
          ({ precise }) =>
            precise.length === 0 ? '' : duration(median(precise.map(({ seconds }) => seconds))),
          precisely,
        ),
        right(
          'from, to',
          ({ precise }) =>
            precise.length === 0
              ? ''
              : extent(precise.map(({ seconds }) => seconds))
                  .map(duration)
                  .join(', '),
          precisely,
        ),
      ]),
    ],
    plots: some(rows, () => [
      runsPlot(
        'power',
        'A known extra cost: default runs, and what it truly is (dotted)',
        rows.map(({ name, truth, runs }) => ({
          name: `${name} (${effect(truth.ratio)})`,
          runs,
          reference: truth.ratio,
        })),
      ),
    ]),
    details: [
      everyRun(
        rows.flatMap(({ name, runs, precise }) => [
          { name, runs },
          { name: `${name}, ${preciseFlags}`, runs: precise },
        ]),
      ),
    ],
  };
}

/** Times at which both methods' widths are compared. */
const readAfterSeconds = [15, 30, 60, 120, 300, 600];

function widths({ data: { alternating, sequential } }: PartFile<'width'>): View {
  const ways = [
    ['sequential', sequential],
    ['alternating', alternating],
  ] as const;
  const known = ways.map(([name, rounds]) => ({ name, rounds, widths: widthsByTime(rounds) }));
  const lastSeconds = Math.min(...known.map((way) => way.widths.at(-1)?.seconds ?? 0));
  const readAfter = [
    ...readAfterSeconds.filter((seconds) => seconds < lastSeconds),
    ...(lastSeconds > 0 ? [lastSeconds] : []),
  ];
  const ended = known
    .filter(({ rounds }) => rounds.length > 1)
    .map(
      ({ name, rounds }) =>
        `${bounded(ratioOf(rounds.map((round) => round.ratio)))} by ${rounds.length} ${name} rounds`,
    );
  return {
    title: titles.width,
    about:
      'nginx with open_file_cache against nginx without, in two ways, interleaved in the same minutes: each server alone for 10 s, one after the other, which is a sequential round; and both alive, loaded in turns of about 20 ms for 1 s each, which is an alternating one. Times are whole, with all starts of servers.',
    findings: some(ended, () => [`The ratio at the end: ${enumeration(ended)}.`]),
    tables: [
      tableOf(readAfter, [
        right('time', (seconds: number) => duration(seconds)),
        ...known.map((way): Column<number> =>
          right(way.name, (seconds) => {
            const reached = widthWithin(way.widths, seconds);
            return reached === undefined ? '–' : width(reached);
          }),
        ),
      ]),
    ],
    plots: known.every((way) => way.widths.length === 0)
      ? []
      : [
          {
            name: 'width',
            title: 'Half-width of the interval by time',
            svg: linePlot({
              title: 'Half-width of the interval by time',
              series: known.map(({ name }) => name),
              x: { label: 'seconds of measuring', text: whole },
              y: {
                label: 'half-width of the interval',
                text: (share) => `±${Number((share * 100).toPrecision(3))} %`,
              },
              lines: known
                .map((way, series) => ({
                  series,
                  points: way.widths.map(({ seconds, width: share }) => [seconds, share] as const),
                }))
                .filter(({ points }) => points.length > 0),
            }),
          },
        ],
    details: known.map(({ name, rounds, widths: all }) =>
      tableOf(
        rounds.map((round, index): { round: TimedRound; index: number } => ({ round, index })),
        [
          right(`${name} round`, ({ index }) => String(index + 1)),
          right('ratio', ({ round }) => ratio(round.ratio)),
          right('seconds in all', ({ index }) =>
            rounds
              .slice(0, index + 1)
              .reduce((sum, { seconds }) => sum + seconds, 0)
              .toFixed(1),
          ),
          right('half-width', ({ index }) => {
            const at = all[index - (rounds.length - all.length)];
            return at === undefined ? '' : width(at.width);
          }),
        ],
      ),
    ),
  };
}

function slices({ data: { slices: all, wrk } }: PartFile<'slices'>): View {
  const series = ['bakeoff', 'wrk'];
  const measured = [
    ...all.map(({ milliseconds, ...seen }) => ({ name: `${milliseconds} ms`, series: 0, ...seen })),
    { name: 'wrk, 1 s', series: 1, ...wrk },
  ].filter(({ effect }) => effect.length > 1);
  type Row = (typeof measured)[number];
  const intervalOf = ({ effect }: Row) => ratioOf(effect).interval;
  const [ours, theirs] = [0, 1].map((place) => measured.filter((row) => row.series === place)) as [
    Row[],
    Row[],
  ];
  const apart = ours.filter((row) => {
    const [low, high] = intervalOf(row);
    return theirs.map(intervalOf).some(([least, most]) => low > most || high < least);
  });
  const plotOf = (
    name: string,
    title: string,
    of: (row: Row) => readonly number[],
    known: { reference?: number } = {},
  ): View['plots'][number] => ({
    name,
    title,
    svg: intervalPlot({
      title,
      series,
      y: asChange,
      x: 'mean length of a turn',
      groups: measured.map((row) => ({
        name: row.name,
        ...known,
        bars: [barOf(row.series, of(row))],
      })),
    }),
  });
  const cell =
    (of: (row: Row) => readonly number[]) =>
    (row: Row): string =>
      bounded(ratioOf(of(row)));
  return {
    title: titles.slices,
    about:
      'The effect of open_file_cache, and that of nothing (the same config twice), by the mean length of a turn, which the load engine otherwise chooses itself, and as wrk sees them in turns of 1 s. All in the same minutes, in random order; a pair of wrk counts as a round does.',
    findings: some(apart, () => [
      `wrk's interval and bakeoff's exclude each other at ${ofRuns(apart.length, ours)} lengths of a turn. How much of its core wrk used is not recorded here; [another comparison](#beside-other-generators) records it, with a server that everybody waits for.`,
    ]),
    tables: [
      tableOf(measured, [
        left('turn', ({ name }) => name),
        right('rounds', ({ effect }) => whole(effect.length)),
        right(
          'open_file_cache',
          cell(({ effect }) => effect),
        ),
        right(
          'nothing',
          cell(({ control }) => control),
        ),
      ]),
    ],
    plots: some(measured, () => [
      plotOf('slices-effect', 'open_file_cache by the length of a turn', ({ effect }) => effect),
      plotOf(
        'slices-nothing',
        'Nothing by the length of a turn: 1 is right',
        ({ control }) => control,
        { reference: 1 },
      ),
    ]),
    details: [],
  };
}

function latency({ data: { rounds } }: PartFile<'latency'>): View {
  // A single round has no interval.
  const rows =
    rounds.length < 2
      ? []
      : percentiles.map((name) => ({
          name,
          ratios: rounds.map((round) => inTurnsByAlone(round, name)),
        }));
  type Row = (typeof rows)[number];
  const ofWay =
    (way: keyof LatencyRound) =>
    ({ name }: Row): string =>
      scaledTime(median(rounds.map((round) => latencyOf(round[way], name))));
  const title = 'Latency in turns by that alone: 1 is right';
  return {
    title: titles.latency,
    about:
      'nginx at 1,000 requests/s over HTTP/1.1 with 100 connections, in two ways, one right after the other, in the opposite order from round to round: against the same nginx, in the turns that a run at a rate has; and alone, without turns. Ratios are of latency, in turns by alone, with the geometric mean of the two sides.',
    findings: some(rows, () => [
      `Latency in turns by that alone, of ${rounds.length} rounds: ${enumeration(rows.map(({ name, ratios }) => `${name} ${bounded(ratioOf(ratios))}`))}.`,
    ]),
    tables: [
      tableOf(rows, [
        left('latency', ({ name }) => name),
        right('alone', ofWay('alone')),
        right('in turns', ofWay('inTurns')),
        right('ratio', ({ ratios }) => bounded(ratioOf(ratios))),
      ]),
    ],
    plots: some(rows, () => [
      intervals('latency', title, {
        series: ['a round', 'all rounds'],
        y: { ...asChange, label: 'ratio of latency' },
        x: 'rounds in order of time, and all of them',
        groups: rows.map(({ name, ratios }) => ({
          name,
          reference: 1,
          bars: [
            ...ratios.map((value): Bar => ({ series: 0, value, interval: [value, value] })),
            barOf(1, ratios),
          ],
        })),
      }),
    ]),
    details: [
      tableOf(rows.length === 0 ? [] : rounds.map((round, index) => ({ round, index })), [
        right('round', ({ index }) => String(index + 1)),
        ...percentiles.flatMap((name): Column<{ round: LatencyRound; index: number }>[] => [
          right('alone', ({ round }) => scaledTime(latencyOf(round.alone, name)), `${name}:`),
          right(
            'in turns',
            ({ round }) => round.inTurns.map((side) => scaledTime(side[name])).join(', '),
            `${name}:`,
          ),
          right('ratio', ({ round }) => ratio(inTurnsByAlone(round, name)), `${name}:`),
        ]),
      ]),
    ],
  };
}

/** Of its core: a generator that uses more has no time left. */
const atLimit = 0.9;

function agreement({ data: { cases } }: PartFile<'agreement'>): View {
  const measured = cases.filter(({ ours }) => ours.ratios.length > 1);
  type Row = EffectSeen & { title: string; generator: string; ours?: EffectSeen };
  const rows = measured.flatMap(({ title, ours, peers }): Row[] => [
    { title, generator: 'bakeoff', ...ours },
    ...peers.map(({ name, ...seen }) => ({ title, generator: name, ...seen, ours })),
  ]);
  const generators = [...new Set(rows.map(({ generator }) => generator))];
  const compared = rows.flatMap(({ ours, ...row }) =>
    ours === undefined ? [] : [{ ...row, of: ratioInterval(row.ratios, ours.ratios) }],
  );
  const differ = compared.filter(
    ({
      of: {
        interval: [low, high],
      },
    }) => low > 1 || high < 1,
  );
  const free = compared.filter(({ generatorShares }) => median(generatorShares) < atLimit);
  const seeMore = free.filter(({ of }) => of.ratio < 1);
  const byTheirs = free.map(({ of }) => of.ratio);
  const shareOf = ({ generatorShares }: EffectSeen): string => percent(median(generatorShares));
  const plotTitle = 'What bakeoff and other generators see';
  return {
    title: titles.agreement,
    about: `What differs between two servers as bakeoff sees it, in a round of the default length, and as others see it, by six turns of a second for each server right after it; all servers are started anew for each. Where the pair is nginx with and without open_file_cache, both have ${costlyLines} lines that do nothing but take time (\`${costlyLine}\`), so that the server is what everybody waits for. A generator that uses up its core sees what it can do itself, or lets requests gather, which a server answers in larger batches, for less CPU time each.`,
    findings: some(rows, () => [
      `${compared.length - differ.length} of ${compared.length} comparisons with another generator agree within the interval.`,
      ...some(free, () => [
        `${ofRuns(seeMore.length, free)} generators that had time left see a larger ratio than bakeoff, within these intervals: bakeoff's by theirs is ×${Math.min(...byTheirs).toFixed(3)} to ×${Math.max(...byTheirs).toFixed(3)}.`,
      ]),
      ...some(differ, () => [
        `The others: ${differ.map((row) => `${row.title} (${row.generator}, ${shareOf(row)} of its core)`).join('; ')}.`,
      ]),
    ]),
    tables: [
      tableOf(rows, [
        left('servers', ({ title, ours }) => (ours === undefined ? title : '')),
        left('seen by', ({ generator }) => generator),
        right('rounds', ({ ratios }) => whole(ratios.length)),
        right('of its core', (row: Row) => shareOf(row)),
        right('ratio', ({ ratios }) => bounded(ratioOf(ratios))),
        right("bakeoff's by this", ({ title, generator }) =>
          compared
            .filter((agreement) => agreement.title === title && agreement.generator === generator)
            .map(({ of }) => bounded(of))
            .join(''),
        ),
      ]),
    ],
    plots: some(rows, () => [
      intervals('agreement', plotTitle, {
        series: generators,
        y: asChange,
        x: "pairs of servers, in the table's order",
        groups: measured.map(({ title }, place) => ({
          name: String(place + 1),
          bars: rows
            .filter((row) => row.title === title)
            .map(({ generator, ratios }) => barOf(generators.indexOf(generator), ratios)),
        })),
      }),
    ]),
    details: [],
  };
}

function disturbed({ data: { control, effect, builds } }: PartFile<'disturbed'>): View {
  const rows = [
    { name: 'against itself', runs: control, reference: 1 },
    { name: 'open_file_cache', runs: effect },
  ];
  return {
    title: titles.disturbed,
    about: `The same comparisons while Go compiles the load engine and all that it is made of, from the start again and again, on the cores of both sides with the priority of everything else (${builds} whole ${builds === 1 ? 'build' : 'builds'} in that time).`,
    findings: rows
      .filter(({ runs }) => runs.length > 0)
      .map(
        ({ name, runs }) =>
          `${name}: ${ofRuns(runs.filter(isDifferent).length, runs)} runs called the two different.`,
      ),
    tables: [runsTable(rows)],
    plots: rows.every(({ runs }) => runs.length === 0)
      ? []
      : [
          runsPlot(
            'disturbed',
            'While a compiler runs on both cores',
            rows.filter(({ runs }) => runs.length > 0),
          ),
        ],
    details: [everyRun(rows)],
  };
}

interface Runs {
  name: string;
  runs: readonly Run[];
  reference?: number;
}

function runsTable(rows: readonly Runs[]): Table {
  const ofSome =
    (cell: (runs: readonly Run[]) => string) =>
    ({ runs }: Runs) =>
      runs.length === 0 ? '' : cell(runs);
  const range = (
    runs: readonly Run[],
    of: (run: Run) => number,
    text: (value: number) => string,
  ): string => extent(runs.map(of)).map(text).join(' to ');
  return tableOf(rows, [
    left('pair', ({ name }) => name),
    right(
      'called different',
      ofSome((runs) => ofRuns(runs.filter(isDifferent).length, runs)),
    ),
    right(
      'median ratio',
      ofSome((runs) => ratio(median(runs.map((run) => run.ratio)))),
    ),
    right(
      'ratios',
      ofSome((runs) => range(runs, (run) => run.ratio, ratio)),
    ),
    right(
      'median half-width',
      ofSome((runs) => width(median(runs.map(halfWidthOf)))),
    ),
    right(
      'half-widths',
      ofSome((runs) => range(runs, halfWidthOf, width)),
    ),
    right(
      'median time',
      ofSome((runs) => duration(median(runs.map(({ seconds }) => seconds)))),
    ),
    right(
      'dropped rounds',
      ofSome((runs) => whole(runs.reduce((sum, { dropped }) => sum + dropped, 0))),
    ),
    right(
      "others on the server's core",
      ofSome((runs) => {
        const shares = runs.flatMap(({ othersShare }) => othersShare ?? []);
        return shares.length === 0 ? '' : percent(median(shares));
      }),
    ),
  ]);
}

function everyRun(groups: readonly Runs[]): Table {
  return tableOf(
    groups.flatMap(({ name, runs }) => runs.map((run, index) => ({ name, run, index }))),
    [
      left('run', ({ name, index }) => `${name} ${index + 1}`),
      right('requests/s', ({ run }) => run.rps.map(whole).join(' → ')),
      right('ratio', ({ run }) => ratio(run.ratio)),
      right('interval', ({ run }) => run.ci95.map((end) => end.toFixed(4)).join(', ')),
      right('half-width', ({ run }) => width(halfWidthOf(run))),
      left('verdict', ({ run }) => run.verdict),
      right('rounds', ({ run }) => whole(run.roundRatios.length)),
      right('seconds', ({ run }) => run.seconds.toFixed(1)),
    ],
  );
}

function runsPlot(name: string, title: string, groups: readonly Runs[]): View['plots'][number] {
  const bars = (runs: readonly Run[]): Bar[] =>
    runs.map((run) => ({ series: isDifferent(run) ? 1 : 0, value: run.ratio, interval: run.ci95 }));
  return {
    name,
    title,
    svg: intervalPlot({
      title,
      series: verdicts,
      y: asChange,
      x: 'runs in order of time',
      groups: groups.map(({ name: group, runs, reference }) => ({
        name: group,
        bars: bars(runs),
        ...(reference === undefined ? {} : { reference }),
      })),
    }),
  };
}

function barOf(series: number, ratios: readonly number[]): Bar {
  const { ratio: value, interval } = ratioOf(ratios);
  return { series, value, interval };
}
