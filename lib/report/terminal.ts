// The table for a terminal.
import type { Result } from '../runner/result.ts';
import { columnsOf, rowsOf, type Column, type Row } from './columns.ts';

export interface TerminalOptions {
  /** Characters per line; Infinity in a pipe. Narrower than 80 counts as 80. */
  width: number;
  colour: boolean;
}

/** Foreground colours of ECMA-48: green, red, cyan, yellow; 39 is the default one. */
const verdictColours = { faster: 32, slower: 31, same: 36, inconclusive: 33, none: 33 } as const;
const gap = '  ';
const narrowest = 80;

/**
 * The table as lines. Columns that do not fit the width go into a second (third …) table below, which repeats the
 * variant's name: no figure is left out.
 */
export function terminalTable(result: Result, options: TerminalOptions): string[] {
  const rows = rowsOf(result);
  const [name, ...others] = columnsOf(result).map((column) => measure(column, rows));
  if (name === undefined) return [];
  const width = Math.max(narrowest, options.width);
  const tables: Measured[][] = [];
  let current: Measured[] = [];
  for (const column of others) {
    if (current.length > 0 && lineWidth([name, ...current, column]) > width) {
      tables.push(current);
      current = [];
    }
    current.push(column);
  }
  tables.push(current);
  return tables.flatMap((columns, index) => [...(index === 0 ? [] : ['']), ...tableLines([name, ...columns], rows, options.colour)]);
}

interface Measured extends Column { width: number }

function measure(column: Column, rows: readonly Row[]): Measured {
  return { ...column, width: Math.max(column.title.length, ...rows.map((row) => column.cell(row).length)) };
}

function lineWidth(columns: readonly Measured[]): number {
  return columns.reduce((sum, column) => sum + column.width, 0) + gap.length * (columns.length - 1);
}

function tableLines(columns: readonly Measured[], rows: readonly Row[], colour: boolean): string[] {
  // A group's name stands over the first of its columns.
  const groups = columns.map((column, index) => (columns[index - 1]?.group === column.group ? '' : column.group));
  return [
    join(columns.map((column, index) => pad(groups[index] as string, column))),
    join(columns.map((column) => pad(column.title, column))),
    ...rows.map((row) => join(columns.map((column) => {
      const text = pad(column.cell(row), column);
      return colour ? coloured(text, row) : text;
    }))),
  ];
}

function join(cells: readonly string[]): string {
  return cells.join(gap).trimEnd();
}

function pad(text: string, column: Measured): string {
  return column.align === 'left' ? text.padEnd(column.width) : text.padStart(column.width);
}

/** Colours the verdict's word where it stands in the cell. */
function coloured(text: string, { comparison }: Row): string {
  if (comparison === undefined) return text;
  const word = comparison.verdict === 'none' ? comparison.why : comparison.verdict;
  return text.replace(word, `\u001b[${verdictColours[comparison.verdict]}m${word}\u001b[39m`);
}
