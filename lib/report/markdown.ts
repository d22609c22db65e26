// A result in Markdown: table.md, and a comment on a pull request.
import { basename, isAbsolute } from 'node:path';
import { roundsTable } from './charts.ts';
import { environmentTable, noiseTable } from './environment.ts';
import { headingLines, resultHeading } from './heading.ts';
import { articleParts, here, tableParts } from './run-tables.ts';
import { circumstanceLines, footnoteLines, verdictLines, warningLines } from './sentences.ts';
import { type Part, type Table, textOf } from './table.ts';
import type { Result } from '../result/result.ts';

/**
 * The verdict first, then the table, one line on how it was measured, and all else in a part that is closed at first. It has no
 * path of the machine: what a config was given in place of its own addresses and files is left out, and a config goes by its file's
 * name, or by its variant's where another one has that, too.
 */
export function markdownReport(result: Result): string {
  const [measured = ''] = headingLines(resultHeading(result));
  const verdicts = verdictLines(result);
  const named = result.variants.map((variant) => ({
    ...variant,
    server: variant.server === null ? null : { ...variant.server, redirections: [] },
  }));
  const notes = [...warningLines(result), ...footnoteLines({ ...result, variants: named })];
  const article = articleParts(result);
  const text = [
    ...(verdicts.length === 0 ? [result.title] : verdicts).flatMap((line) => [
      `**${escape(line)}**`,
      '',
    ]),
    ...article.flatMap((part) => partLines({ ...part, below: [] })),
    ...(notes.length === 0 ? [] : [...notes.map((note) => `- ${escape(note)}`), '']),
    ...paragraphs([measured]),
    '<details><summary>Rounds, machine, versions</summary>',
    '',
    ...paragraphs([...circumstanceLines(result), ...article.flatMap(({ below }) => below)]),
    ...tableParts(result).slice(article.length).flatMap(partLines),
    ...[roundsTable(result), environmentTable([result], ['this run']), noiseTable(result)]
      .filter(({ rows }) => rows.length > 0)
      .flatMap((table) => [...markdownTable(table), '']),
    '</details>',
    '',
  ].join('\n');
  const configs = configNames(result);
  return [...configs.keys()]
    .sort((a, b) => b.length - a.length)
    .reduce(
      (shorter, file) => shorter.replaceAll(escape(file), () => escape(configs.get(file) ?? '')),
      text,
    );
}

/** By their paths, what configs of a person's own go by. */
function configNames({ variants }: Result): Map<string, string> {
  const named = new Map(
    variants
      .toReversed()
      .flatMap(({ name, server }) =>
        (server?.config.filter(isAbsolute) ?? []).map((file) => [file, name] as const),
      ),
  );
  const isOnly = (file: string): boolean =>
    [...named.keys()].filter((other) => basename(other) === basename(file)).length === 1;
  return new Map([...named].map(([file, name]) => [file, isOnly(file) ? basename(file) : name]));
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
  return [
    // There is one line of titles; what was measured is what a figure is of unless it says otherwise.
    line(
      columns.map(({ group, title }) =>
        group === '' || group === here ? title : `${group} ${title}`,
      ),
    ),
    `| ${columns.map(({ align }) => (align === 'left' ? '---' : '---:')).join(' | ')} |`,
    // Some cells are aligned within themselves, for a terminal; in those with a mark it is the place that says something.
    ...rows.map((row) =>
      line(
        row
          .map(textOf)
          .map((text) =>
            text.includes('│')
              ? text.replaceAll(' ', '\u00a0')
              : text.trim().replaceAll(/ {2,}/g, ' '),
          ),
      ),
    ),
  ];
}

function paragraphs(lines: readonly string[]): string[] {
  return lines.flatMap((line) => [escape(line), '']);
}

/**
 * Also of what others wrote, such as a log's last line: nothing of it is a link or an image, or calls a person or an issue. Underscores
 * inside words (open_file_cache) need none, nor do brackets that no second pair follows; a pipe would end the cell.
 */
function escape(text: string): string {
  const marked = text.replaceAll(
    /[\\|*<&`~]|(?<![\p{L}\p{N}])_|_(?![\p{L}\p{N}])|(?<=\])[[(]/gu,
    '\\$&',
  );
  // GitHub looks for names and addresses after Markdown is done: an empty character has to part them. One behind "://" would be of the host.
  return marked.replaceAll(/(?<!\w)@(?=\w)|#(?=\d)|\bwww(?=\.)|[a-z](?=:\/\/)/gi, '$&\u200b');
}
