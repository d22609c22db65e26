// What a report shows beside sentences, in the terminal and in Markdown alike.
import {
  comparisonOf,
  measuredComparisons,
  roundRatiosOf,
  comparable,
} from '../analysis/comparisons.ts';
import { curvesOf } from '../analysis/curve.ts';
import { phasePairs, responsesOf, succeeded } from '../analysis/phases.ts';
import { rateOf } from '../analysis/limit.ts';
import { total } from '../analysis/statistics.ts';
import {
  exactPercent,
  hundredths,
  kilobytes,
  perMillion,
  perSecond,
  scaledBytesPerSecond,
  scaledTime,
  short,
  success,
  times,
  whole,
} from '../format.ts';
import { byName } from '../present.ts';
import {
  curvePart,
  foundText,
  histogramPart,
  ladderOf,
  ladderPart,
  publishedQuantile,
  streamsPart,
  timesFrom,
} from './charts.ts';
import { linkPart } from './network.ts';
import {
  type Column,
  type Part,
  type Table,
  countCell,
  figure,
  leftColumn,
  rightColumn,
  tableOf,
} from './table.ts';
import { cpuCell, verdictCell } from './verdict-words.ts';
import type {
  Comparison,
  Distribution,
  PhaseResult,
  Result,
  VariantResult,
} from '../result/result.ts';
import type { Published, PublishedDistribution } from '../scenario/model.ts';

/** The article's table and what belongs to it: phases, the link, histogram, the ladder, requests/s by streams. */
export function tableParts(result: Result): Part[] {
  return [
    ...articleParts(result),
    ...curvePart(result),
    ...histogramPart(result),
    ...ladderPart(result),
    ...streamsPart(result),
  ];
}

/** The article's table, with several load phases one of them above it, and what went over the link below it. */
export function articleParts(result: Result): Part[] {
  const variants = { tables: [variantTable(result)], below: rowLines(result) };
  const phases = hasPhases(result)
    ? [{ title: '', tables: [finishTable(result, 'variant, phase')], below: [] }]
    : [];
  return [
    ...phases,
    { title: phases.length === 0 ? '' : 'All phases together:', ...variants },
    ...linkPart(result),
  ];
}

/** What a row's figures leave open: why requests/s and CPU time say different things, and its rounds where they are apart. */
function rowLines(result: Result): string[] {
  const measured = measuredComparisons(result);
  const shown = measured.filter(
    ({ outliers, verdict }) => outliers.length > 0 || verdict === 'inconclusive',
  );
  return [
    ...measured.flatMap((one) =>
      one.cpu === null || one.disagreement === ''
        ? []
        : [
            `${nameOf(one)}: requests/s (${times(one.ratio)}) and CPU per request (${times(one.cpu.ratio)}) disagree, since ${one.disagreement}.`,
          ],
    ),
    ...shown.map(
      (one) =>
        `${nameOf(one)}, rounds${one.outliers.length > 0 ? ' (! lies apart)' : ''}: ${roundsText(one)}`,
    ),
  ];

  /** A comparison that is not its row's own needs both names. */
  function nameOf({ variant, baseline }: Comparison): string {
    return comparisonOf(result, variant)?.baseline === baseline
      ? variant
      : `${variant} against ${baseline}`;
  }

  /** "×1.40 ×1.44 ×1.80! ×1.42"; with three decimals where all of them are near to 1. */
  function roundsText(comparison: Comparison): string {
    const rounds = roundRatiosOf(comparison, result);
    const decimals = rounds.every(({ ratio }) => Math.abs(ratio - 1) < 0.1) ? 3 : 2;
    return rounds
      .map(({ ratio, apart }) => `×${ratio.toFixed(decimals)}${apart ? '!' : ''}`)
      .join(' ');
  }
}

// The article's table, published beside measured.

interface Row {
  variant: VariantResult;
  comparison: Comparison | undefined;
}

/** The group of what was measured, beside "published". */
export const here = 'here';

/** One row per variant, in the order of the result. Columns with nothing in them (no published figures, no comparison) are left out. */
export function variantTable(result: Result): Table {
  const rows = result.variants.map((variant): Row => ({
    variant,
    comparison: comparisonOf(result, variant.name),
  }));
  const phases = hasPhases(result);
  const hasCpu = result.variants.some(
    ({ serverCpuMicrosPerRequest }) => serverCpuMicrosPerRequest !== null,
  );
  const withHeaders = comparesProtocols(result);
  const successBeside =
    phases || result.variants.some(({ successRatio }) => (successRatio ?? 1) < 1);
  const successColumn = measuredColumn('success', ({ successRatio }) =>
    figure(successRatio, success),
  );
  return tableOf(rows, [
    leftColumn('variant', ({ variant }) => variant.name),
    // With several load phases published figures are those of one of them, the measured ones here of all.
    ...(phases
      ? []
      : publishedColumns({
          withHeaders,
          withErrors: rows.some(({ variant }) => (variant.published?.errorsPerMillion ?? 0) > 0),
        })),
    measuredColumn('requests/s', (variant) => rateText(variant, result)),
    // Where some fail, or it may differ from phase to phase, it stands beside requests/s on any terminal.
    ...(successBeside ? [successColumn] : []),
    againstColumn(result, rows),
    ...(withHeaders
      ? [measuredColumn('headers kB', ({ traffic }) => figure(traffic?.bytes.headers, kilobytes))]
      : []),
    // A dash for what runs at an address, where others have a figure.
    measuredColumn('CPU µs/req', ({ serverCpuMicrosPerRequest: cpu, server }) =>
      hasCpu && server?.atAddress === true ? '–' : figure(cpu?.median, (value) => value.toFixed(1)),
    ),
    leftColumn(
      'CPU ratio',
      ({ variant, comparison }) => (comparison === undefined ? '' : cpuCell(comparison, variant)),
      { group: here, joined: true },
    ),
    measuredColumn('p50 ms', ({ latencyMs }) => figure(latencyMs?.p50, short)),
    measuredColumn('p99 ms', ({ latencyMs }) => figure(latencyMs?.p99, short), { joined: true }),
    measuredColumn('max ms', ({ latencyMs }) => figure(latencyMs?.max, short), { joined: true }),
    measuredColumn('errors/M', ({ errorsPerMillion }) => figure(errorsPerMillion, perMillion)),
    // None is the rule.
    measuredColumn('hung', (variant) => countCell(total(variant.phases, (phase) => phase.hung)), {
      joined: true,
    }),
    measuredColumn(
      'unsent',
      (variant) => countCell(total(variant.phases, (phase) => phase.unsent)),
      { joined: true },
    ),
    ...(successBeside ? [] : [{ ...successColumn, joined: true as const }]),
  ]);
}

/**
 * The cell of requests/s: the median round's, of a rate that was not reached with "of 300,000", or what a search found. Where most
 * answers were errors, the successful ones "of" all: failing fast is no achievement.
 */
export function rateText(variant: VariantResult, { search }: Pick<Result, 'search'>): string {
  if (variant.server === null) return 'published only';
  const found = search?.found.find((one) => one.variant === variant.name);
  if (found !== undefined) return foundText(found);
  const rate = rateOf(variant);
  const { rps, phases } = variant;
  const share = total(phases, succeeded) / total(phases, responsesOf);
  if (rps !== null && share < 0.5)
    return `${perSecond(rps.median * share)} of ${perSecond(rps.median)}`;
  return (
    figure(variant.rps?.median, perSecond) +
    (rate === null || rate.reached ? '' : ` of ${perSecond(rate.asked)}`)
  );
}

/** Where an article had no errors there is nothing to stand beside. */
function publishedColumns({
  withHeaders,
  withErrors,
}: {
  withHeaders: boolean;
  withErrors: boolean;
}): Column<Row>[] {
  const group = 'published';
  const column = (title: string, cell: (published: Published) => string): Column<Row> =>
    rightColumn(
      title,
      ({ variant: { published } }) => (published === null ? '' : cell(published)),
      { group },
    );
  return [
    column('requests/s', ({ rps }) => figure(rps, perSecond)),
    leftColumn('ratio', ({ comparison }) => figure(comparison?.publishedRatio, times), { group }),
    ...(withHeaders
      ? [column('headers kB', ({ headerBytes }) => figure(headerBytes, kilobytes))]
      : []),
    // Of a histogram it is known between which two latencies they lie.
    column('p50', (published) => publishedQuantile(published, 0.5)),
    column('p99', (published) => publishedQuantile(published, 0.99)),
    ...(withErrors
      ? [column('errors/M', ({ errorsPerMillion }) => figure(errorsPerMillion, perMillion))]
      : []),
  ];
}

function measuredColumn(
  title: string,
  cell: (variant: VariantResult) => string,
  more: { joined?: true } = {},
): Column<Row> {
  return rightColumn(title, ({ variant }) => cell(variant), { group: here, ...more });
}

/** Each row's comparison. The title says with what, or the cell where that is not the same for all. */
function againstColumn(result: Result, rows: readonly Row[]): Column<Row> {
  const [first, ...others] = new Set(rows.flatMap(({ comparison }) => comparison?.baseline ?? []));
  const steps = new Set(ladderOf(result).map(({ step }) => step));
  const isLadder = steps.size > 0;
  const title = isLadder
    ? 'against the row before'
    : others.length === 0
      ? `against ${first}`
      : 'against its baseline';
  return leftColumn(
    title,
    ({ variant, comparison }) => {
      if (!comparable(variant, comparison)) return '';
      const cell = verdictCell(comparison, result);
      const isTold = isLadder ? steps.has(comparison) : others.length === 0;
      return isTold ? cell : { ...cell, text: `${cell.text} (against ${comparison.baseline})` };
    },
    { group: here },
  );
}

/** Header bytes are what differs between protocols: they stand in the article's table where it compares these. */
export function comparesProtocols({ variants }: Result): boolean {
  return new Set(variants.map(({ load }) => load.protocol)).size > 1;
}

/** Whether a round has, or the article had, several load phases. */
export function hasPhases({ variants }: Result): boolean {
  return variants.some(
    ({ phases, published }) => phases.length > 1 || published?.phases !== undefined,
  );
}

// What the articles' tools printed of a load, for every variant and load phase, published above measured.

/** What an article printed of a load, or what was measured, in the same units. */
type Run = { name: string } & { [Name in keyof Published]?: Published[Name] | undefined };

/** One row per variant, phase and source; what was not published, or not measured, has none. */
function runTable({ variants }: Result, title: string, columns: readonly Column<Run>[]): Table {
  const width = Math.max(...variants.map(({ name }) => name.length));
  const several = variants.some((variant) => phasePairs(variant).length > 1);
  const runs = variants.flatMap((variant) =>
    phasePairs(variant).flatMap(({ phase, published, measured }): Run[] => {
      const name = `${variant.name.padEnd(width)}  ${several ? `${phase}  ` : ''}`;
      return [
        ...(published === undefined ? [] : [{ ...published, name: `${name}published` }]),
        ...(measured === undefined ? [] : [{ ...measuredFigures(measured), name: `${name}here` }]),
      ];
    }),
  );
  return tableOf(runs, [leftColumn(title, ({ name }) => name), ...columns]);
}

function measuredFigures(phase: PhaseResult): Omit<Run, 'name'> {
  const { requests, seconds, rps, bytes } = phase;
  return {
    requests,
    seconds,
    rps: rps.median,
    successRatio: phase.successRatio ?? undefined,
    transferBytesPerSecond: phase.receivedBytesPerSecond,
    receivedBytes: bytes.received,
    headerBytes: bytes.headers,
    headerSavingsPercent: phase.headerSavingsPercent ?? undefined,
    bodyBytes: bytes.body,
    ...byName(
      ['latencyMs', 'connectMs', 'firstByteMs', 'perConnectionRps', 'perThreadRps'],
      (name) => asPublished(phase[name]),
    ),
  };
}

/** A measured distribution as articles print one; of nothing it is all zeros, and none then. */
function asPublished({
  min,
  mean,
  sd,
  max,
  withinSd,
}: Distribution): PublishedDistribution | undefined {
  return max === 0 ? undefined : { min, mean, sd, max, withinSdPercent: withinSd * 100 };
}

/** How long a load took, requests/s, and beside them the share that succeeded. */
export function finishTable(result: Result, title: string): Table {
  return runTable(result, title, [
    rightColumn('time', ({ seconds }) => figure(seconds, (value) => scaledTime(value * 1000))),
    rightColumn('requests/s', ({ rps }) => figure(rps, hundredths)),
    rightColumn('success', ({ successRatio }) => figure(successRatio, success)),
    rightColumn('bytes/s', ({ transferBytesPerSecond }) =>
      figure(transferBytesPerSecond, scaledBytesPerSecond),
    ),
  ]);
}

const distributions = [
  ['time of a request', 'latencyMs', scaledTime],
  ['time to connect', 'connectMs', scaledTime],
  ['time to first byte', 'firstByteMs', scaledTime],
  ['requests/s of a connection', 'perConnectionRps', hundredths],
  ['requests/s of a thread', 'perThreadRps', hundredths],
] as const;

/** Time, traffic and five distributions, a table each; those with nothing in them are left out. Nothing for a curve, which is of many loads. */
export function loadPart(result: Result): Part[] {
  if (curvesOf(result).length > 0) return [];
  const tables = [
    ...(hasPhases(result) ? [] : [finishTable(result, 'load')]),
    runTable(result, 'traffic', [
      rightColumn('requests', ({ requests }) => figure(requests, whole)),
      rightColumn('total B', ({ receivedBytes }) => figure(receivedBytes, whole)),
      rightColumn('headers B', ({ headerBytes }) => figure(headerBytes, whole)),
      rightColumn('savings', ({ headerSavingsPercent }) =>
        figure(headerSavingsPercent, exactPercent),
      ),
      rightColumn('data B', ({ bodyBytes }) => figure(bodyBytes, whole)),
    ]),
    ...distributions.map(([title, key, format]) =>
      runTable(result, title, [
        ...(['min', 'max', 'mean', 'sd'] as const).map((part) =>
          rightColumn(part, (run: Run) => figure(run[key]?.[part], format)),
        ),
        rightColumn('±sd', (run) => figure(run[key]?.withinSdPercent, exactPercent)),
      ]),
    ),
  ].filter(({ rows }) => rows.length > 0);
  const below = [
    `Time, rates and bytes are medians of the rounds, times of requests and connections those of all rounds. ${timesFrom(result.variants)}`,
  ];
  return tables.length === 0 ? [] : [{ title: 'Each load in detail:', tables, below }];
}
