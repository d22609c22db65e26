// The tables of a run: the article's table, and what stands with it.
import { sideWithWrongAnswers } from '../analysis/bodies.ts';
import {
  comparisonOf,
  measuredComparisons,
  roundRatiosOf,
  comparable,
  sidesOf,
} from '../analysis/comparisons.ts';
import { queueGrows, rateOf } from '../analysis/limit.ts';
import { askedOf, besideOf, typicalOf } from '../analysis/metrics.ts';
import { headerBytesOf, responsesOf, succeeded } from '../analysis/phases.ts';
import { minimumRounds, total } from '../analysis/statistics.ts';
import {
  effect,
  enumeration,
  fraction,
  hundredths,
  kilobytes,
  perMillion,
  perSecond,
  short,
  success,
  whole,
} from '../format.ts';
import type { Comparison, Metric, Result, VariantResult } from '../result/result.ts';
import { factsOf } from '../result/server-metrics.ts';
import type { Published } from '../scenario/published.ts';
import type { Contribution } from './contribution.ts';
import { foundRateOf } from './found.ts';
import { chartsOf, publishedQuantile } from './charts.ts';
import { errorsPart, finishTable, hasPhases } from './load-tables.ts';
import {
  figure,
  leftColumn,
  measuredGroup,
  rightColumn,
  tableOf,
  type Column,
  type Part,
  type Table,
} from './table.ts';
import { verdictCell } from './verdict-words.ts';

/** Returns all tables of the terminal and of Markdown: the article's, those of features, and charts. */
export function tableParts(result: Result, contributions: readonly Contribution[]): Part[] {
  return [...articleParts(result, contributions), ...chartsOf(result)];
}

export function articleParts(result: Result, contributions: readonly Contribution[]): Part[] {
  return [...ownParts(result), ...contributions.flatMap(({ tables = [] }) => tables)];
}

/** Returns the table of load phases if there are several; then the article's table, header bytes, and errors by kind. */
export function ownParts(result: Result): Part[] {
  const phases = hasPhases(result);
  const whole: Part = {
    title: phases ? 'All phases together:' : '',
    tables: [variantTable(result)],
    below: [...disagreementLines(result), ...medianLines(result), ...roundLines(result)],
  };
  const parts = [whole, ...headerPart(result), ...errorsPart(result)];
  if (phases)
    parts.unshift({ title: '', tables: [finishTable(result, 'variant, phase')], below: [] });
  return parts;
}

/** Returns header bytes per request, also as a fraction of those over HTTP/1.1; empty unless an article published both. */
function headerPart(result: Result): Part[] {
  const { variants } = result;
  if (!comparesProtocols(result)) return [];
  const first = variants.find(({ load }) => load.protocol.startsWith('http/1'));
  if (first === undefined || headerBytesOf.published(first) === undefined) return [];
  const columns = Object.entries(headerBytesOf).flatMap(([source, bytesOf]) => {
    const bytesOfFirst = bytesOf(first);
    const shareText = (row: VariantResult) => {
      const bytes = bytesOf(row);
      if (row === first || bytes === undefined || bytesOfFirst === undefined) return '';
      return fraction(bytes / bytesOfFirst);
    };
    return [
      rightColumn('B/answer', (row: VariantResult) => figure(bytesOf(row), hundredths), source),
      rightColumn(`of ${first.name}`, shareText, source),
    ];
  });
  const table = tableOf(variants, [leftColumn('headers', ({ name }) => name), ...columns]);
  return [{ title: 'Header bytes of an answer:', tables: [table], below: [] }];
}

function disagreementLines(result: Result): string[] {
  return measuredComparisons(result).flatMap((comparison) => {
    const { ratio, cpu, disagreement } = comparison;
    if (cpu === null || disagreement === '') return [];
    return `${nameOf(comparison, result)}: requests/s (${effect(ratio)}) and CPU per request (${effect(cpu.ratio)}) disagree, since ${disagreement}.`;
  });
}

/** A change by medians that is so far off, as a logarithm, is said. */
const otherFigures = 0.03;

/** Changes that the medians of requests/s in the table would not make. */
function medianLines(result: Result): string[] {
  const { variants, comparisons } = result;
  const rpsOf = (name: string) => variants.find((variant) => variant.name === name)?.rps?.median;
  const other = comparisons.filter((comparison) => {
    const { variant, baseline, metric, ratio } = comparison;
    if (hasWrongAnswers(comparison, result)) return false;
    const [rps, before] = [rpsOf(variant), rpsOf(baseline)];
    if (metric !== 'rps' || rps === undefined || before === undefined) return false;
    const isSeen = perSecond(rps) !== perSecond(before) && effect(ratio) !== effect(1);
    const isOther = rps > before !== ratio > 1;
    const isFar = Math.abs(Math.log(rps / before / ratio)) > otherFigures;
    const readsOtherwise = effect(rps / before) !== effect(ratio);
    return isSeen && (isOther || (isFar && readsOtherwise));
  });
  if (other.length === 0) return [];
  const changes = other.map(({ variant, baseline }) => {
    const [rps = 0, before = 1] = [rpsOf(variant), rpsOf(baseline)];
    return `${variant} (${effect(rps / before)})`;
  });
  return [
    `Requests/s are medians of the rounds, changes the mean of what each round had. Here the medians alone would make another change: ${enumeration(changes)}.`,
  ];
}

/** Returns the effect of each round, such as "+40 %, +44 %, +80 %!, +42 %", for comparisons that are inconclusive or have outliers. */
function roundLines(result: Result): string[] {
  const open = measuredComparisons(result).filter(
    ({ outliers, verdict }) => outliers.length > 0 || verdict === 'inconclusive',
  );
  return open.map((comparison) => {
    const effects = roundRatiosOf(comparison, result).map(
      ({ ratio, apart }) => `${effect(ratio)}${apart ? '!' : ''}`,
    );
    const key = comparison.outliers.length > 0 ? ' (! is an outlier)' : '';
    return `${nameOf(comparison, result)}, rounds${key}: ${effects.join(', ')}`;
  });
}

/** Returns the variant's name; also the baseline's if the variant's row shows another comparison. */
function nameOf({ variant, baseline }: Comparison, result: Result): string {
  if (comparisonOf(result, variant)?.baseline === baseline) return variant;
  return `${variant} against ${baseline}`;
}

type Row = VariantResult & { comparison: Comparison | undefined; isWrong: boolean };

/** Returns whether a side has other answers than the load asks for: its quick failures would be shown as speed. */
function hasWrongAnswers(comparison: Comparison, result: Result): boolean {
  return (
    comparison.verdict === 'none' && sideWithWrongAnswers(sidesOf(comparison, result)) !== undefined
  );
}

/** Returns the main table: a row per variant in the result's order, without empty columns. */
export function variantTable(result: Result): Table {
  const rows = result.variants.map((variant): Row => {
    const comparison = comparisonOf(result, variant.name);
    const isWrong = comparison !== undefined && hasWrongAnswers(comparison, result);
    return { ...variant, comparison, isWrong };
  });
  const measured = (title: string, cell: (row: Row) => string) =>
    rightColumn(title, cell, measuredGroup);
  // While the queue of a load at a rate grows, latency grows with the length of the run.
  const latency = (key: 'p50' | 'p99' | 'max') =>
    measured(`${key} ms`, (row) =>
      queueGrows(row) ? 'grows' : figure(row.latencyMs?.[key], short),
    );
  const count = (key: 'hung' | 'unsent') =>
    measured(key, ({ phases }) => figure(total(phases, (phase) => phase[key]) || null, whole));
  const successColumn = measured('success', ({ successRatio }) => figure(successRatio, success));
  const phases = hasPhases(result);
  // Where requests failed, requests/s mean little without it.
  const failed = phases || rows.some(({ successRatio }) => (successRatio ?? 1) < 1);
  const withHeaders = comparesProtocols(result);
  const columns: Column<Row>[] = [];
  // An article's figures are those of one phase.
  if (!phases) columns.push(...publishedColumns(rows, withHeaders));
  columns.push(measured('requests/s', (variant) => rateText(variant, result)));
  if (failed) columns.push(successColumn);
  columns.push(
    againstColumn(result, rows),
    measured('headers kB', ({ traffic }) =>
      figure(withHeaders ? traffic?.bytes.headers : null, kilobytes),
    ),
    measured('CPU µs/req', ({ serverCpuMicrosPerRequest: cpu }) =>
      figure(cpu?.median, (value) => value.toFixed(1)),
    ),
    changeColumn('CPU change', 'cpu'),
    ...askedColumns(result, rows),
    latency('p50'),
    latency('p99'),
    latency('max'),
    measured('errors/M', ({ errorsPerMillion }) => figure(errorsPerMillion, perMillion)),
    count('hung'),
    count('unsent'),
  );
  if (!failed) columns.push(successColumn);
  return tableOf(rows, [leftColumn('variant', ({ name }) => name), ...columns]);
}

/** Returns the server metrics that were asked for with --metric, each with its change unless the verdict is by that metric. */
function askedColumns(result: Result, rows: readonly Row[]): Column<Row>[] {
  return askedOf(result).flatMap((metric) => {
    const { name, title, text } = factsOf(metric);
    const cell = ({ rounds }: Row) => figure(typicalOf(metric, rounds), text);
    const column = rightColumn(title, cell, measuredGroup);
    const decides = rows.some(({ comparison }) => comparison?.metric === metric);
    return decides ? [column] : [column, changeColumn(`${name} change`, metric)];
  });
}

function changeColumn(title: string, metric: Metric): Column<Row> {
  return leftColumn(
    title,
    ({ comparison, rounds, isWrong }) =>
      figure(isWrong ? null : comparison && besideOf(comparison, metric), ({ ratio, ci95 }) =>
        effect(ratio, rounds.length < minimumRounds ? undefined : ci95),
      ),
    measuredGroup,
  );
}

/** Returns "95,000 of 300,000": the requests/s made and asked for; or, if most responses were errors, the successful and all requests/s. */
function rateText(variant: Row, result: Result): string {
  const { server, rps, phases, name } = variant;
  if (server === null) return 'published only';
  const foundRate = foundRateOf(result, name);
  if (foundRate !== undefined)
    return `${foundRate.atLeast ? 'at least ' : ''}${whole(foundRate.rate)}`;
  const rate = rateOf(variant);
  const share = total(phases, succeeded) / total(phases, responsesOf);
  if (rps !== null && share < 0.5)
    return `${perSecond(rps.median * share)} good of ${perSecond(rps.median)}`;
  const asked = rate === null || rate.reached ? '' : ` of ${perSecond(rate.asked)}`;
  return `${figure(rate?.made ?? rps?.median, perSecond)}${asked}`;
}

function publishedColumns(rows: readonly Row[], withHeaders: boolean): Column<Row>[] {
  const group = 'published';
  const column = (title: string, cell: (published: Published) => string): Column<Row> =>
    rightColumn(title, ({ published }) => cell(published ?? {}), group);
  const hasErrors = rows.some(({ published }) => (published?.errorsPerMillion ?? 0) > 0);
  return [
    column('requests/s', ({ rps }) => figure(rps, perSecond)),
    leftColumn('change', ({ comparison }) => figure(comparison?.publishedRatio, effect), group),
    leftColumn('effect', ({ published }) => published?.effect ?? '', group),
    column('headers kB', ({ headerBytes }) => figure(withHeaders ? headerBytes : null, kilobytes)),
    column('p50', (published) => publishedQuantile(published, 0.5)),
    column('p99', (published) => publishedQuantile(published, 0.99)),
    column('errors/M', ({ errorsPerMillion }) =>
      figure(hasErrors ? errorsPerMillion : null, perMillion),
    ),
  ];
}

function againstColumn(result: Result, rows: readonly Row[]): Column<Row> {
  const steps = ladderSteps(result);
  const title = steps.size > 0 ? 'the row before' : baselineTitle(rows);
  return leftColumn(
    `against ${title}`,
    (row) => {
      const { comparison } = row;
      if (!comparable(row, comparison)) return '';
      const cell = verdictCell(row.isWrong ? { ...comparison, ratio: 0 } : comparison, result);
      if (steps.has(comparison) || title === comparison.baseline) return cell;
      return { ...cell, text: `${cell.text} (against ${comparison.baseline})` };
    },
    measuredGroup,
  );
}

function baselineTitle(rows: readonly Row[]): string {
  const [first = '', ...others] = new Set(
    rows.flatMap(({ comparison }) => comparison?.baseline ?? []),
  );
  return others.length === 0 ? first : 'its baseline';
}

/** Returns the comparisons of rows with the row before them; empty if there are fewer than 3. */
export function ladderSteps({ variants, comparisons }: Result): ReadonlySet<Comparison> {
  // In a sweep over rates with two variants, every other row is compared with the row before.
  if (variants.some(({ series }) => series !== undefined)) return new Set();
  const steps = variants.flatMap(({ name }, index) => {
    const before = variants[index - 1]?.name;
    return before === undefined ? [] : (comparisonOf({ comparisons }, name, before) ?? []);
  });
  return new Set(steps.length < 3 ? [] : steps);
}

/** Returns whether the variants have different protocols; only then header bytes are worth showing. */
export function comparesProtocols({ variants }: Result): boolean {
  return new Set(variants.map(({ load }) => load.protocol)).size > 1;
}
