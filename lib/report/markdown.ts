// A result in Markdown: table.md, and a comment on a pull request.
import { basename, isAbsolute } from 'node:path';
import type { Result } from '../result/result.ts';
import { chartsOf, roundsTable } from './charts.ts';
import { environmentTable, noiseTable } from './environment.ts';
import { headingLines, resultHeading } from './heading.ts';
import { articleParts, here } from './run-tables.ts';
import { circumstanceLines, noteLines, verdictLines, warningLines } from './sentences.ts';
import { textOf, type Part, type Table } from './table.ts';

/**
 * Verdicts, the article's table, notes and the load; all else is collapsed. Without paths: redirections are left out, and users'
 * configs go by their files' names, or by their variants' if two files have the same name.
 */
export function markdownReport(result: Result): string {
  const [measured = ''] = headingLines(resultHeading(result));
  const article = articleParts(result);
  const notes = [...warningLines(result), ...noteLines(result)].map((note) => `- ${escape(note)}`);
  const tables = [
    roundsTable(result),
    environmentTable([result], ['this run']),
    noiseTable(result),
  ].filter(({ rows }) => rows.length > 0);
  const [first = result.title, ...verdicts] = verdictLines(result);
  const text = [
    ...[first, ...verdicts].flatMap((line) => [`**${escape(line)}**`, '']),
    ...article.flatMap((part) => partLines({ ...part, below: [] })),
    ...(notes.length === 0 ? [] : [...notes, '']),
    ...paragraphs([measured]),
    '<details><summary>Rounds, machine, versions</summary>',
    '',
    ...paragraphs([...circumstanceLines(result), ...article.flatMap(({ below }) => below)]),
    ...chartsOf(result).flatMap(partLines),
    ...partLines({ title: '', tables, below: [] }),
    '</details>',
    '',
  ].join('\n');
  return configNames(result).reduce(
    (shorter, [file, name]) => shorter.replaceAll(escape(file), () => escape(name)),
    text,
  );
}

/** The paths of users' configs, the longest first, each with the name that replaces it. */
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

function partLines({ title, tables, below }: Part): string[] {
  return [
    ...paragraphs(title === '' ? [] : [title]),
    ...tables.flatMap((table) => [...markdownTable(table), '']),
    ...paragraphs(below),
  ];
}

/** A table as lines. */
export function markdownTable({ columns, rows }: Table): string[] {
  const line = (cells: readonly string[]): string => `| ${cells.map(escape).join(' | ')} |`;
  const titles = columns.map(({ group, title }) =>
    group === '' || group === here ? title : `${group} ${title}`,
  );
  // Spaces align a cell's parts in the terminal only.
  const cellText = (text: string): string => text.trim().replaceAll(/ {2,}/g, ' ');
  return [
    line(titles),
    `| ${columns.map(({ align }) => (align === 'left' ? '---' : '---:')).join(' | ')} |`,
    ...rows.map((row) => line(row.map((cell) => cellText(textOf(cell))))),
  ];
}

function paragraphs(lines: readonly string[]): string[] {
  return lines.flatMap((line) => [escape(line), '']);
}

/** Escapes text that may be a stranger's (a log's line): it makes no markup, link or mention. Underscores inside words may stay. */
function escape(text: string): string {
  const marked = text.replaceAll(
    /[\\|*<&`~]|(?<![\p{L}\p{N}])_|_(?![\p{L}\p{N}])|(?<=\])[[(]/gu,
    '\\$&',
  );
  // GitHub links names and addresses after Markdown is done: an empty character parts them, before "://" to stay out of the host.
  return marked.replaceAll(/(?<!\w)@(?=\w)|#(?=\d)|\bwww(?=\.)|[a-z](?=:\/\/)/gi, '$&\u200b');
}
