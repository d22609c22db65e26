// report.html: a run in one page.
import { join } from 'node:path';
import { writeWhole } from '../../writing.ts';
import type { Result } from '../../result/result.ts';
import { figuresOf } from '../charts.ts';
import type { Contribution } from '../contribution.ts';
import { environmentTable, noiseTable } from '../environment.ts';
import { headingLines, resultHeading } from '../heading.ts';
import { loadPart } from '../load-tables.ts';
import { articleParts } from '../run-tables.ts';
import { circumstanceLines, noteLines, redirectedLines, storedLines } from '../sentences.ts';
import { pagesPart } from '../pages.ts';
import {
  configsHtml,
  differencesHtml,
  hasOwnConfigs,
  readConfigs,
  type KeptConfig,
} from './differences.ts';
import { headlineHtml } from './headline.ts';
import {
  html,
  listHtml,
  nothing,
  paragraphs,
  tableHtml,
  figureHtml,
  page,
  sideBySide,
  partHtml,
} from './page.ts';

/** Writes report.html into the run's folder and returns its path. Throws the file system's error. */
export async function writeHtmlReport(
  folder: string,
  result: Result,
  contributions: readonly Contribution[],
): Promise<string> {
  const file = join(folder, 'report.html');
  const { text, mode } = await runPage(folder, result, contributions);
  await writeWhole(file, text, mode);
  return file;
}

/** Returns the page of a run, and its file mode: 0600 if it shows users' own configs, else undefined. */
export async function runPage(
  folder: string,
  result: Result,
  contributions: readonly Contribution[],
) {
  const configs = readConfigs(folder, result);
  const text = await htmlReport(result, contributions, configs, folder);
  return { text, mode: hasOwnConfigs(result, configs) ? 0o600 : undefined };
}

/**
 * Returns the whole page.
 * @param folder of the run; undefined if its files are not there
 */
export async function htmlReport(
  result: Result,
  contributions: readonly Contribution[],
  configs: readonly KeptConfig[],
  folder?: string,
): Promise<string> {
  const added = await Promise.all(contributions.map(({ sections }) => sections?.(folder) ?? []));
  const figures = figuresOf(result, contributions);
  const notes = listHtml(noteLines(result), 'footnotes');
  // An article's notes explain its figures; others name further differences.
  const isOwn = result.variants.every(({ published }) => published === null);
  const redirected = redirectedLines(result);
  const redirections = html`<details><summary>Paths and ports that are not as the configs say</summary>${listHtml(redirected, 'footnotes')}</details>`;
  const tables = html`${articleParts(result, contributions).map((part) => partHtml(part))}${pagesPart(result, Infinity).map((part) => partHtml(part, { sorts: true }))}${isOwn ? nothing : notes}`;
  // A search that found nothing has no rows.
  const table =
    tables.text.trim() === '' ? nothing : html`<section><h2>The table</h2>\n${tables}</section>`;
  const plots = html`<section><h2>Plots</h2>
<noscript><p>Without JavaScript the plots are not drawn; their figures are in the tables.</p></noscript>
${figures.map(figureHtml)}</section>`;
  const body = html`<header>${headlineHtml(result, contributions)}
${paragraphs(headingLines(resultHeading(result)), 'about')}${listHtml(circumstanceLines(result, contributions), 'findings')}${listHtml(result.warnings, 'warnings')}</header>
${differencesHtml(result, configs, isOwn ? notes : nothing)}${redirected.length === 0 ? nothing : redirections}
${table}
${added.flat()}${figures.length === 0 ? nothing : plots}
${loadPart(result, contributions).map(({ tables, below }) => html`<section><h2>Each load in detail</h2>\n${sideBySide(tables)}${paragraphs(below)}</section>\n`)}${configsHtml(result, configs)}
<section><h2>Environment</h2>
${tableHtml(environmentTable(result), 'environment', { wraps: true })}${partHtml(
    {
      title: 'What else used the machine, the most in any round',
      tables: [noiseTable(result)],
      below: storedLines(contributions).map((line) => `${line}.`),
    },
    { wraps: true },
  )}</section>`;
  return page(`${result.title} · ${result.run}`, body, figures);
}
