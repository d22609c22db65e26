// A result as text: for the terminal; Markdown (table.md, a pull request's comment); CSV (RFC 4180).
import { basename, isAbsolute } from 'node:path';
import { comparisonOf, hasRatio } from '../analysis/comparisons.ts';
import { mergedLatency } from '../analysis/latency.ts';
import { besideOf, inColumn } from '../analysis/metrics.ts';
import { printable } from '../errors.ts';
import { phasesIn, wholeRounds, withRounds } from '../analysis/phases.ts';
import { isTooWide } from '../format.ts';
import { chartsOf, roundsTable } from './charts.ts';
import type { Contribution } from './contribution.ts';
import { answersOfRun } from './differences.ts';
import { environmentTable, noiseTable } from './environment.ts';
import { foundRateOf } from './found.ts';
import { headingLines, resultHeading } from './heading.ts';
import { loadPart } from './load-tables.ts';
import { articleParts, tableParts } from './run-tables.ts';
import {
  circumstanceLines,
  footnoteLines,
  noteLines,
  verdictLines,
  warningLines,
} from './sentences.ts';
import {
  measuredGroup,
  terminalTable,
  cellText,
  wrapLines,
  type Cell,
  type Part,
  type Table,
  type TerminalOptions,
} from './table.ts';
import { pagesPart } from './pages.ts';
import type { Comparison, Result, VariantResult } from '../result/result.ts';
import { factsOf, serverMetricNames, type ServerMetric } from '../result/server-metrics.ts';

export interface TerminalReportOptions extends TerminalOptions {
  /** Adds each load in detail, and all footnotes. */
  verbose?: boolean;
}

/** Returns the tables, the verdicts, warnings and circumstances, and the last lines `ends`. */
export function terminalReport(
  result: Result,
  contributions: readonly Contribution[],
  ends: readonly string[],
  options: TerminalReportOptions,
): string[] {
  const { verbose = false, width } = options;
  const parts = pagesPart(result, 10);
  if (verbose) parts.push(...loadPart(result, contributions), ...addedParts(contributions));
  parts.push(...tableParts(result, contributions));
  const lines: string[] = [];
  for (const part of parts) {
    const partLines = terminalLines(part, options);
    if (partLines.length > 0) lines.push(...partLines, '');
  }
  const sentences = [
    ...verdictLines(result, contributions),
    ...warningLines(result),
    ...terminalFootnotes(result, verbose),
    ...circumstanceLines(result, contributions),
    ...ends,
  ];
  return [...lines, ...wrapLines(sentences, width)];
}

/** An article's footnotes explain its figures; others name further differences. */
function terminalFootnotes(result: Result, verbose: boolean): string[] {
  if (verbose) return footnoteLines(result);
  return isOfArticle(result) ? [] : result.footnotes;
}

function addedParts(contributions: readonly Contribution[]): Part[] {
  return contributions.flatMap(({ parts = [] }) => parts);
}

/** Returns the lines of a part; none if it has no rows and no lines below. */
function terminalLines({ title, tables, below }: Part, options: TerminalOptions): string[] {
  // A run that ended in its first round has none.
  const filled = tables.filter(({ rows }) => rows.length > 0);
  if (filled.length + below.length === 0) return [];
  const lines = title === '' ? [] : wrapLines([title], options.width);
  for (const [index, table] of filled.entries()) {
    if (index > 0) lines.push('');
    lines.push(...terminalTable(table, options));
  }
  if (below.length > 0) lines.push('', ...wrapLines(below, options.width));
  return lines;
}

const summaryOfRun = '<details><summary>Rounds, machine, versions</summary>';

/** Returns whether a text begins and ends as a report does, and has one. */
export function isMarkdownReport(text: string): boolean {
  const isOne = text.split(summaryOfRun).length === 2;
  return isOne && text.startsWith('**') && text.endsWith('</details>\n');
}

/** Returns the Markdown text. It contains no paths: in redirections, users' configs have their files' names, or else their variants'. */
export function markdownReport(result: Result, contributions: readonly Contribution[]): string {
  const [measured = ''] = headingLines(resultHeading(result));
  const article = articleParts(result, contributions);
  const [first = result.title, ...verdicts] = verdictLines(result, contributions);
  const lines: string[] = [];
  for (const line of [first, ...verdicts]) lines.push(`**${escape(line)}**`, '');
  for (const part of article) lines.push(...partLines({ ...part, below: [] }));
  const notes = [...warningLines(result), ...noteLines(result)];
  if (notes.length > 0) lines.push(...notes.map((note) => `- ${escape(note)}`), '');
  lines.push(
    ...markdownParagraphs([measured]),
    summaryOfRun,
    '',
    ...markdownParagraphs([
      ...circumstanceLines(result, contributions),
      ...article.flatMap(({ below }) => below),
    ]),
  );
  for (const chart of chartsOf(result)) lines.push(...partLines(chart));
  lines.push(
    ...partLines({ title: '', tables: collapsedTables(result), below: [] }),
    '</details>',
    '',
  );
  if (isOfArticle(result)) lines.push(...detailLines(loadPart(result, contributions)));
  let text = lines.join('\n');
  for (const [file, name] of configNames(result))
    text = text.replaceAll(escape(file), () => escape(name));
  return text;
}

function collapsedTables(result: Result): Table[] {
  const tables = [roundsTable(result), environmentTable(result), noiseTable(result)];
  const sides = withRounds(result.variants);
  if (sides.length > 1) tables.unshift(answersOfRun(sides, false).table);
  return tables;
}

/** Returns whether an article published figures of the scenario. */
function isOfArticle({ variants }: Result): boolean {
  return variants.some(({ published }) => published !== null);
}

/** Parts as Markdown that a reader opens, each under its title. */
function detailLines(parts: readonly Part[]): string[] {
  return parts.flatMap(({ title, ...part }) => [
    `<details><summary>${title.replace(/:$/, '')}</summary>`,
    '',
    ...partLines({ ...part, title: '' }),
    '</details>',
    '',
  ]);
}

/** Returns the paths of users' configs, the longest first, each with the name that replaces it. */
function configNames({ variants }: Result): (readonly [file: string, name: string])[] {
  const named = variants.flatMap(({ name, server }) =>
    (server?.config.filter(isAbsolute) ?? []).map((file) => [file, name] as const),
  );
  // A config of several variants has the name of the first.
  const files = [...new Map(named.toReversed())].sort(([a], [b]) => b.length - a.length);
  return files.map(([file, name]) => {
    const same = files.filter(([other]) => basename(other) === basename(file));
    return [file, same.length === 1 ? basename(file) : name];
  });
}

export function partLines({ title, tables, below }: Part): string[] {
  const lines = title === '' ? [] : markdownParagraphs([title]);
  for (const table of tables) if (table.rows.length > 0) lines.push(...markdownTable(table), '');
  return [...lines, ...markdownParagraphs(below)];
}

export function markdownTable({ columns, rows }: Table): string[] {
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`;
  const titles = columns.map(({ group, title }) =>
    group === '' || group === measuredGroup ? title : `${group} ${title}`,
  );
  const rules = columns.map(({ align }) => (align === 'left' ? '---' : '---:'));
  // Spaces align a cell's parts in the terminal only.
  const textIn = (cell: Cell) => escape(cellText(cell).trim().replaceAll(/ {2,}/g, ' '));
  return [line(titles.map(escape)), line(rules), ...rows.map((row) => line(row.map(textIn)))];
}

export function markdownParagraphs(lines: readonly string[]): string[] {
  return lines.flatMap((line) => [escape(line), '']);
}

/** Escapes text from untrusted sources, so that it makes no markup, link or mention. Underscores inside words may stay. */
function escape(text: string): string {
  const marked = printable(text).replaceAll(
    /[\\|*<&`~]|(?<![\p{L}\p{N}])_|_(?![\p{L}\p{N}])|(?<=\])[[(]/gu,
    '\\$&',
  );
  // GitHub links names and addresses after it has read the Markdown. A zero-width space prevents that; in a URL it is before "://", so
  // that the host stays as it is.
  return marked.replaceAll(
    /(?<!\w)@(?=\w)|#(?=\d)|\b(?:www(?=\.)|gh-(?=\d))|[a-z](?=:\/\/)/gi,
    '$&\u200b',
  );
}

type Value = string | number | null | undefined;

interface Row {
  result: Result;
  variant: VariantResult;
  comparison: Comparison | undefined;
}

/** Returns the interval; undefined if it is so wide that its ends tell nothing, or of a single round. */
function intervalOf(
  { comparison }: Row,
  ratio: { ci95: readonly [number, number] } | null | undefined,
): readonly [number, number] | undefined {
  if (!ratio || isTooWide(ratio.ci95)) return undefined;
  return comparison?.roundRatios.length === 1 ? undefined : ratio.ci95;
}

const ratioOf = ({ comparison }: Row) =>
  comparison !== undefined && hasRatio(comparison) ? comparison : undefined;

/** The columns of a CSV report, in this order; new ones go to the end. docs/ci.md explains them. */
const columns: Readonly<Record<string, (row: Row) => Value>> = {
  variant: ({ variant }) => variant.name,
  server: ({ variant }) => variant.server?.name,
  version: ({ variant }) => variant.server?.version,
  load: ({ variant }) => variant.load.command,
  protocol: ({ variant }) => variant.load.protocol,
  rate_asked_per_s: ({ variant }) => exact(variant.load.rate),
  rounds: ({ variant }) => wholeRounds([variant]),
  requests_per_s: ({ variant }) => variant.rps?.median,
  p50_ms: ({ variant }) => variant.latencyMs?.p50,
  p90_ms: ({ variant }) => p90Ms(variant),
  p99_ms: ({ variant }) => variant.latencyMs?.p99,
  max_ms: ({ variant }) => variant.latencyMs?.max,
  server_cpu_us_per_request: ({ variant }) => variant.serverCpuMicrosPerRequest?.median,
  errors_per_million: ({ variant }) => exact(variant.errorsPerMillion),
  success_ratio: ({ variant }) => exact(variant.successRatio),
  baseline: ({ comparison }) => comparison?.baseline,
  metric: ({ comparison }) => comparison?.metric,
  ratio: (row) => ratioOf(row)?.ratio,
  ratio_low: (row) => intervalOf(row, ratioOf(row))?.[0],
  ratio_high: (row) => intervalOf(row, ratioOf(row))?.[1],
  verdict: ({ comparison }) => comparison?.verdict,
  why: ({ comparison }) => comparison?.why,
  cpu_ratio: ({ comparison }) => comparison?.cpu?.ratio,
  cpu_ratio_low: (row) => intervalOf(row, row.comparison?.cpu)?.[0],
  cpu_ratio_high: (row) => intervalOf(row, row.comparison?.cpu)?.[1],
  state: ({ result }) => result.state,
  run: ({ result }) => result.run,
  at_least: ({ result, variant }) => foundRateOf(result, variant.name)?.atLeast.toString(),
  delay_not_held: ({ comparison }) => comparison?.delayNotHeld.join(' '),
  ...Object.fromEntries(serverMetricNames.flatMap((metric) => Object.entries(columnsOf(metric)))),
};

function p90Ms({ latencyMs, rounds }: VariantResult): number | undefined {
  if (latencyMs === null) return undefined;
  const phases = phasesIn(rounds);
  return mergedLatency(phases.map((phase) => phase.latencyMs)).p90;
}

/** A metric of servers: its figure, and its ratio with the interval. */
function columnsOf(metric: ServerMetric): Record<string, (row: Row) => Value> {
  const of = ({ comparison }: Row) => comparison && besideOf(comparison, metric);
  return {
    [factsOf(metric).column]: ({ variant }) => inColumn(metric, variant.rounds),
    [`${metric}_ratio`]: (row) => of(row)?.ratio,
    [`${metric}_ratio_low`]: (row) => intervalOf(row, of(row))?.[0],
    [`${metric}_ratio_high`]: (row) => intervalOf(row, of(row))?.[1],
  };
}

/**
 * Returns whether a text is such a report. Looks only at the first columns, since other versions may have more. All rows must be of one
 * run.
 */
export function isCsvReport(text: string): boolean {
  if (!text.startsWith(`${Object.keys(columns).slice(0, 3).join(',')},`)) return false;
  const [titles = [], ...rows] = text.split('\r\n').map(cellsOf);
  const end = rows.pop();
  const run = titles.indexOf('run');
  const isRow = (cells: readonly string[]) =>
    cells.length === titles.length && cells[run] === rows[0]?.[run];
  return end?.join() === '' && rows.every(isRow);
}

const cellsOf = (line: string): string[] =>
  [...line.matchAll(/(?:^|,)("(?:[^"]|"")*"|[^,]*)/g)].map(([, cell = '']) => cell);

/** Returns a row per variant that ran, each ended by CRLF; unknown figures are empty cells. */
export function csvReport(result: Result): string {
  const lines: Value[][] = [Object.keys(columns)];
  for (const variant of result.variants) {
    if (variant.rounds.length === 0) continue;
    const row = { result, variant, comparison: comparisonOf(result, variant.name) };
    lines.push(Object.values(columns).map((valueOf) => valueOf(row)));
  }
  return lines.map((cells) => `${cells.map(cellOf).join(',')}\r\n`).join('');
}

/** All digits: one failure of ten million would be none in six. */
function exact(value: number | null | undefined): Value {
  return value?.toString();
}

/** Numbers with six digits. */
function cellOf(value: Value): string {
  if (typeof value === 'number') return String(Number(value.toPrecision(6)));
  const text = printable(value ?? '');
  return /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
