// Tables as data, and as lines of text. The terminal, Markdown and HTML show the same cells.
import { total } from '../analysis/statistics.ts';
import { inOneLine } from '../errors.ts';
import type { Verdict } from '../result/result.ts';

/** Text; `part` of it has the colour of a verdict. */
export type Cell = string | { text: string; part: string; verdict: Verdict };

/** The columns' group of measured figures, beside "published". */
export const measuredGroup = 'here';

export interface Heading {
  /** A title above neighbouring columns, e.g. "published"; '' without one. */
  group: string;
  title: string;
  align: 'left' | 'right';
}

export interface Column<Row> extends Heading {
  cell(row: Row): Cell;
}

/** The first column names the rows. */
export interface Table {
  columns: Heading[];
  rows: Cell[][];
}

/** Tables with a line above and lines below. */
export interface Part {
  title: string;
  tables: readonly Table[];
  below: readonly string[];
}

export function leftColumn<Row>(title: string, cell: (row: Row) => Cell, group = ''): Column<Row> {
  return { group, title, align: 'left', cell };
}

export function rightColumn<Row>(title: string, cell: (row: Row) => Cell, group = ''): Column<Row> {
  return { group, title, align: 'right', cell };
}

/** A table without its empty columns and rows. */
export function tableOf<Row>(
  rows: readonly Row[],
  [name, ...others]: readonly [Column<Row>, ...Column<Row>[]],
): Table {
  const hasText = (column: Column<Row>, row: Row) => cellText(column.cell(row)) !== '';
  const filled = rows.filter((row) => others.some((column) => hasText(column, row)));
  const shown = [name, ...others.filter((column) => filled.some((row) => hasText(column, row)))];
  return {
    columns: shown.map(({ cell: _, ...heading }) => heading),
    rows: filled.map((row) => shown.map((column) => column.cell(row))),
  };
}

export function cellText(cell: Cell): string {
  return typeof cell === 'string' ? cell : cell.text;
}

/** A figure as text; '' if there is none. */
export function figure<T>(value: T | null | undefined, format: (value: T) => string): string {
  return value === null || value === undefined ? '' : format(value);
}

/** Returns neighbouring columns with the same group. */
export function headingGroups<C extends Heading>(columns: readonly C[]): [C, ...C[]][] {
  const groups: [C, ...C[]][] = [];
  for (const column of columns) {
    const last = groups.at(-1);
    if (last?.[0].group === column.group) last.push(column);
    else groups.push([column]);
  }
  return groups;
}

/** A figure and its per cent sign stay together. */
const betweenWords = / (?!%)/;
/** After a comma outside of brackets, and before a bracket. */
const betweenClauses = /(?<=,) (?![^[(]*[\])])| (?=\()/;

/**
 * Breaks lines at spaces, or at `between`; words longer than a line, such as paths, stay whole. Characters that control the terminal
 * become blanks, because names may have some.
 */
export function wrapLines(
  lines: readonly string[],
  width: number,
  indent: (line: string) => number = () => 2,
  between = betweenWords,
): string[] {
  return lines.flatMap((line) => {
    let [current = '', ...words] = inOneLine(line).split(between);
    const wrapped: string[] = [];
    for (const word of words) {
      const isFull = current.trim() !== '' && current.length + 1 + word.length > width;
      if (isFull) wrapped.push(current);
      current = `${isFull ? ' '.repeat(indent(line)) : `${current} `}${word}`;
    }
    return [...wrapped, current];
  });
}

/** SGR colours: green, red, cyan, yellow. */
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
  /** Characters per line; Infinity in a pipe. Tables take at least 80. */
  width: number;
  colour: boolean;
}

/** What a stream shows. @param stream default: stdout */
export function terminal(stream: NodeJS.WriteStream = process.stdout): TerminalOptions {
  // Some terminals report 0 columns.
  const width = stream.isTTY ? stream.columns || Infinity : Infinity;
  return { width, colour: width !== Infinity && process.env['NO_COLOR'] === undefined };
}

interface Measured extends Heading {
  index: number;
  width: number;
}

/** Returns lines of text. Columns that do not fit go into further tables below, which repeat the first column. */
export function terminalTable(
  { columns, rows }: Table,
  { width, colour }: TerminalOptions,
): string[] {
  const available = Math.max(narrowest, width);
  const [name, ...others] = columns.map((heading, index): Measured => ({
    ...heading,
    index,
    width: Math.max(heading.title.length, ...rows.map((row) => cellText(row[index] ?? '').length)),
  }));
  if (name === undefined) return [];
  let last = [name];
  const tables = [last];
  for (const column of others) {
    const beside = Math.max(column.title.length, available - name.width - gap.length);
    if (column.align === 'left') column.width = Math.min(column.width, beside);
    if (last.length === 1 || lineWidth([...last, column]) <= available) {
      last.push(column);
    } else {
      last = [name, column];
      tables.push(last);
    }
  }
  const lines: string[] = [];
  for (const [index, shown] of tables.entries()) {
    if (index > 0) lines.push('');
    if (shown.some(({ group }) => group !== '')) lines.push(groupLine(shown));
    const titles = shown.map((column) => pad(column.title, column));
    lines.push(titles.join(gap).trimEnd());
    for (const row of rows) lines.push(...rowLines(shown, row, colour));
  }
  return lines;
}

const lineWidth = (columns: readonly Measured[]): number =>
  total(columns, ({ width }) => width + gap.length) - gap.length;

function rowLines(columns: readonly Measured[], row: readonly Cell[], colour: boolean): string[] {
  const cells = columns.map((column) => {
    const cell = row[column.index] ?? '';
    const clauses = wrapLines([cellText(cell)], column.width, () => 2, betweenClauses);
    return { column, cell, lines: wrapLines(clauses, column.width) };
  });
  const height = Math.max(...cells.map(({ lines }) => lines.length));
  return Array.from({ length: height }, (_, line) => {
    const texts = cells.map(({ column, cell, lines }) => {
      const text = pad(lines[line] ?? '', column);
      if (!colour || typeof cell === 'string') return text;
      const { part, verdict } = cell;
      return text.replace(part, `\u001b[${verdictColours[verdict]}m${part}\u001b[39m`);
    });
    return texts.join(gap).trimEnd();
  });
}

function groupLine(columns: readonly Measured[]): string {
  let [line, at] = ['', 0];
  for (const group of headingGroups(columns)) {
    const [first] = group;
    if (first.group !== '')
      line = (line.length > at ? line + gap : line.padEnd(at)) + pad(first.group, first).trimEnd();
    at += lineWidth(group) + gap.length;
  }
  return line;
}

function pad(text: string, column: Measured): string {
  return column.align === 'left' ? text.padEnd(column.width) : text.padStart(column.width);
}
