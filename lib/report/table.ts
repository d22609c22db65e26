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
