// table.md: the same tables and lines as in the terminal, to be pasted anywhere.
import type { Result } from '../runner/result.ts';
import { here } from './columns.ts';
import { lineParts, tableParts } from './parts.ts';
import { footnoteLines, warningLines } from './sentences.ts';
import { textOf, type Heading, type Part, type Table } from './table.ts';

/** The whole file, with the load tools' lines last. The lists may be empty. */
export function markdownReport(result: Result, lines: { heading: readonly string[]; findings: readonly string[] }): string {
  const notes = [...warningLines(result), ...footnoteLines(result)];
  return [
    `# ${result.title}`,
    '',
    ...paragraphs(lines.heading),
    ...tableParts(result).flatMap(partLines),
    ...paragraphs(lines.findings),
    ...(notes.length === 0 ? [] : [...notes.map((note) => `- ${escape(note)}`), '']),
    ...lineParts(result).flatMap(partLines),
  ].join('\n');
}

function partLines({ title, tables, below }: Part): string[] {
  return [...paragraphs(title === '' ? [] : [title]), ...tables.flatMap((table) => [...markdownTable(table), '']), ...paragraphs(below)];
}

/** A table as lines. */
export function markdownTable({ columns, rows }: Table): string[] {
  const line = (cells: readonly string[]): string => `| ${cells.map(escape).join(' | ')} |`;
  return [
    line(columns.map(titleOf)),
    `| ${columns.map(({ align }) => (align === 'left' ? '---' : '---:')).join(' | ')} |`,
    // Some cells are aligned within themselves, for a terminal.
    ...rows.map((row) => line(row.map((cell) => textOf(cell).trim().replaceAll(/ {2,}/g, ' ')))),
  ];
}

/** There is one line of titles; what was measured is what a figure is of unless it says otherwise. */
function titleOf({ group, title }: Heading): string {
  return group === '' || group === here ? title : `${group} ${title}`;
}

function paragraphs(lines: readonly string[]): string[] {
  return lines.flatMap((line) => [escape(line), '']);
}

/** Underscores inside words (open_file_cache) need none; a pipe would end the cell. */
function escape(text: string): string {
  return text.replaceAll(/[|*<]/g, '\\$&');
}
