// A table as text, before it is known where it is shown: the terminal and Markdown write the same cells.
import { whole } from '../format.ts';
import type { Verdict } from '../result/result.ts';

/** Text; where a part of it is a verdict or stands for one, a terminal colours that. */
export type Cell = string | { text: string; part: string; verdict: Verdict };

export interface Heading {
  /** Stands above the titles of neighbouring columns, e.g. "published". */
  group: string;
  title: string;
  align: 'left' | 'right';
  /** Says little without the column before it, and is not parted from that where a table goes on below. */
  joined?: true;
}

export interface Column<Row> extends Heading {
  cell(row: Row): Cell;
}

/** A column of texts, without a group unless told. */
export function leftColumn<Row>(
  title: string,
  cell: (row: Row) => Cell,
  more: Partial<Pick<Heading, 'group' | 'joined'>> = {},
): Column<Row> {
  return { group: '', title, align: 'left', cell, ...more };
}

/** The same, of figures. */
export function rightColumn<Row>(
  title: string,
  cell: (row: Row) => Cell,
  more: Partial<Pick<Heading, 'group' | 'joined'>> = {},
): Column<Row> {
  return { ...leftColumn(title, cell, more), align: 'right' };
}

/** Neighbouring columns together, as far as each of them belongs to the one before it. */
export function neighbours<C extends Heading>(
  columns: readonly C[],
  belongs: (column: C, before: C) => boolean,
): C[][] {
  const groups: C[][] = [];
  for (const [index, column] of columns.entries()) {
    const before = columns[index - 1];
    if (before !== undefined && belongs(column, before)) groups.at(-1)?.push(column);
    else groups.push([column]);
  }
  return groups;
}

/** The first column names the rows; a table that is too wide goes on below with it. */
export interface Table {
  columns: Heading[];
  rows: Cell[][];
}

/** Columns and rows with nothing in them, but for the name of the row, are left out. */
export function tableOf<Row>(
  rows: readonly Row[],
  [name, ...others]: readonly [Column<Row>, ...Column<Row>[]],
): Table {
  const told = rows.filter((row) => others.some((column) => textOf(column.cell(row)) !== ''));
  const shown = [
    name,
    ...others.filter((column) => told.some((row) => textOf(column.cell(row)) !== '')),
  ];
  return {
    columns: shown.map(({ cell: _, ...heading }) => heading),
    rows: told.map((row) => shown.map((column) => column.cell(row))),
  };
}

export function textOf(cell: Cell): string {
  return typeof cell === 'string' ? cell : cell.text;
}

/** The cell of a figure that may not be there. */
export function figure(
  value: number | null | undefined,
  format: (value: number) => string,
): string {
  return value === null || value === undefined ? '' : format(value);
}

/** The cell of a count that as a rule is none. */
export function countCell(count = 0): string {
  return count === 0 ? '' : whole(count);
}

/** Tables with a line above and lines below them; the title is '' where they speak for themselves. */
export interface Part {
  title: string;
  tables: readonly Table[];
  below: readonly string[];
}

/**
 * Breaks lines that are too long at their spaces and indents what follows. A longer word (a path) stays whole.
 * @param indent of what follows, in spaces
 */
export function wrapLines(
  lines: readonly string[],
  width: number,
  indent: (line: string) => number = () => 2,
): string[] {
  return lines.flatMap((line) => {
    // A figure and its per cent sign stay together.
    let [current = '', ...words] = line.split(/ (?!%)/);
    const wrapped: string[] = [];
    for (const word of words) {
      const isFull = current.trim() !== '' && current.length + 1 + word.length > width;
      if (isFull) wrapped.push(current);
      current = `${isFull ? ' '.repeat(indent(line)) : `${current} `}${word}`;
    }
    return [...wrapped, current];
  });
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

export interface TerminalOptions {
  /** Characters per line; Infinity in a pipe. For tables, narrower than 80 counts as 80. */
  width: number;
  colour: boolean;
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
