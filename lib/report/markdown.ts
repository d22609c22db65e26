// table.md: the same table and lines as in the terminal, to be pasted anywhere.
import type { Result } from '../runner/result.ts';
import { columnsOf, rowsOf } from './columns.ts';
import { noteLines } from './sentences.ts';

/** The table as Markdown lines. */
export function markdownTable(result: Result): string[] {
  const columns = columnsOf(result);
  const line = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`;
  return [
    line(columns.map(({ group, title }) => escape(group === 'published' ? `${group} ${title}` : title))),
    line(columns.map(({ align }) => (align === 'left' ? '---' : '---:'))),
    ...rowsOf(result).map((row) => line(columns.map((column) => escape(column.cell(row))))),
  ];
}

/** The whole file. The lists may be empty. */
export function markdownReport(result: Result, lines: { heading: readonly string[]; findings: readonly string[] }): string {
  const notes = noteLines(result);
  return [
    `# ${result.title}`,
    '',
    ...lines.heading.flatMap((line) => [escape(line), '']),
    ...markdownTable(result),
    '',
    ...lines.findings.flatMap((line) => [escape(line), '']),
    ...(notes.length === 0 ? [] : [...notes.map((note) => `- ${escape(note)}`), '']),
  ].join('\n');
}

/** Underscores inside words (open_file_cache) need none; a pipe would end the cell. */
function escape(text: string): string {
  return text.replaceAll(/[|*<]/g, '\\$&');
}
