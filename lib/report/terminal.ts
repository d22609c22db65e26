// The report for a terminal.
import type { Result, Verdict } from '../result/result.ts';
import { loadPart } from './load-figures.ts';
import { tableParts } from './parts.ts';
import { circumstanceLines, footnoteLines, verdictLines, warningLines } from './sentences.ts';
import { neighbours, textOf, type Cell, type Heading, type Part, type Table } from './table.ts';
import { wrapLines } from './wrap.ts';

interface TerminalOptions {
  /** Characters per line; Infinity in a pipe. For tables, narrower than 80 counts as 80. */
  width: number;
  colour: boolean;
}

export interface TerminalReportOptions extends TerminalOptions {
  /** With each load in detail, and all footnotes. */
  verbose?: boolean;
}

/** Foreground colours of ECMA-48: green, red, cyan, yellow; 39 is the default one. */
const verdictColours: Readonly<Record<Verdict, number>> = {
  faster: 32,
  slower: 31,
  same: 36,
  inconclusive: 33,
  none: 33,
};
const gap = '  ';
const narrowest = 80;

/**
 * What was found, in as few lines as it takes: the tables, the verdicts right below them, warnings, and how far that goes. The rest is in
 * report.html, and here where it is asked for.
 * @param ends the last lines
 */
export function terminalReport(
  result: Result,
  ends: readonly string[],
  options: TerminalReportOptions,
): string[] {
  // Of an article they are for who reads it; of a comparison of one's own they say what else differs.
  const footnotes =
    options.verbose === true
      ? footnoteLines(result)
      : result.variants.some(({ published }) => published !== null)
        ? []
        : result.footnotes;
  return [
    ...(options.verbose === true ? loadPart(result) : [])
      .concat(tableParts(result))
      .flatMap((part) => [...partLines(part, options), '']),
    ...wrapLines(
      [
        ...verdictLines(result),
        ...warningLines(result),
        ...footnotes,
        ...circumstanceLines(result),
        ...ends,
      ],
      options.width,
    ),
  ];
}

function partLines({ title, tables, below }: Part, options: TerminalOptions): string[] {
  return [
    ...wrapLines(title === '' ? [] : [title], options.width),
    ...tables.flatMap((table, index) => [
      ...(index === 0 ? [] : ['']),
      ...terminalTable(table, options),
    ]),
    ...(below.length === 0 ? [] : ['']),
    ...wrapLines(below, options.width),
  ];
}

/**
 * A table as lines. Columns that do not fit the width go into a second (third …) table below, which repeats the first
 * column: no figure is left out. Joined columns go together. Words that do not fit beside the first column take several lines.
 */
export function terminalTable(table: Table, { width, colour }: TerminalOptions): string[] {
  const [name, ...columns] = table.columns.map((heading, index): Measured => ({
    ...heading,
    index,
    width: Math.max(
      heading.title.length,
      ...table.rows.map((row) => textOf(row[index] ?? '').length),
    ),
  }));
  if (name === undefined) return [];
  const available = Math.max(narrowest, width);
  const beside = available - lineWidth([name]) - gap.length;
  const others = columns.map((column) =>
    column.align === 'left'
      ? { ...column, width: Math.min(column.width, Math.max(column.title.length, beside)) }
      : column,
  );
  const tables: Measured[][] = [[]];
  for (const block of neighbours(others, ({ joined }) => joined === true)) {
    const last = tables.at(-1) as Measured[];
    if (last.length === 0 || lineWidth([name, ...last, ...block]) <= available) last.push(...block);
    else tables.push(block);
  }
  return tables.flatMap((shown, index) => [
    ...(index === 0 ? [] : ['']),
    ...tableLines([name, ...shown], table.rows, colour),
  ]);
}

interface Measured extends Heading {
  index: number;
  width: number;
}

function lineWidth(columns: readonly Measured[]): number {
  return columns.reduce((sum, column) => sum + column.width, 0) + gap.length * (columns.length - 1);
}

function tableLines(
  columns: readonly Measured[],
  rows: readonly Cell[][],
  colour: boolean,
): string[] {
  return [
    ...(columns.every(({ group }) => group === '') ? [] : [groupLine(columns)]),
    join(columns.map((column) => pad(column.title, column))),
    ...rows.flatMap((row) => rowLines(columns, row, colour)),
  ];
}

function rowLines(columns: readonly Measured[], row: readonly Cell[], colour: boolean): string[] {
  const cells = columns.map((column) => row[column.index] ?? '');
  const texts = columns.map(({ width }, index) => {
    const text = textOf(cells[index] as Cell);
    return text.length > width ? wrapLines([text], width) : [text];
  });
  return Array.from({ length: Math.max(...texts.map((lines) => lines.length)) }, (_, line) =>
    join(
      columns.map((column, index) => {
        const text = pad(texts[index]?.[line] ?? '', column);
        const cell = cells[index] as Cell;
        return !colour || typeof cell === 'string'
          ? text
          : text.replace(
              cell.part,
              `\u001b[${verdictColours[cell.verdict]}m${cell.part}\u001b[39m`,
            );
      }),
    ),
  );
}

/** A group's name stands over the first of its columns. It may be longer than that, and reaches over the others then. */
function groupLine(columns: readonly Measured[]): string {
  let [line, at] = ['', 0];
  for (const group of neighbours(columns, (column, before) => column.group === before.group)) {
    const [first] = group as [Measured];
    if (first.group !== '')
      line = `${line.length > at ? `${line}${gap}` : line.padEnd(at)}${pad(first.group, first).trimEnd()}`;
    at += lineWidth(group) + gap.length;
  }
  return line;
}

function join(cells: readonly string[]): string {
  return cells.join(gap).trimEnd();
}

function pad(text: string, column: Measured): string {
  return column.align === 'left' ? text.padEnd(column.width) : text.padStart(column.width);
}
