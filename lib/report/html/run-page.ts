// report.html of a run: what it is made from, which is kept beside the result, and where it goes.
import { join } from 'node:path';
import { readBytes, writeWhole } from '../../files.ts';
import {
  curveFigures,
  histogramFigures,
  ladderFigures,
  percentileFigures,
  ratioFigures,
  roundFigures,
  streamFigures,
} from '../charts.ts';
import { environmentTable, noiseTable } from '../environment.ts';
import { headingLines, resultHeading } from '../heading.ts';
import { configsHtml, differencesHtml, hasOwnConfigs, type ComposedConfig } from './differences.ts';
import type { Figure } from './figure.ts';
import { headlineHtml } from './headline.ts';
import { html, list, nothing, paragraphs, tableHtml, type Html } from './markup.ts';
import { figureHtml, page } from './page.ts';
import { articleParts, loadPart } from '../run-tables.ts';
import { circumstanceLines, noteLines, redirectedLines, storedLine } from '../sentences.ts';
import type { Part, Table } from '../table.ts';
import type { Result, VariantResult } from '../../result/result.ts';

/** Writes report.html into the run's folder and returns its path. Throws the file system's error. */
export async function writeHtmlReport(folder: string, result: Result): Promise<string> {
  const file = join(folder, 'report.html');
  const files = await readRunFiles(folder, result);
  await writeWhole(file, await htmlReport(result, files), pageMode(result, files));
  return file;
}

/** The mode of a page's file: one with a person's own configs is closed to others, as these are. */
export function pageMode(result: Result, { configs }: RunFiles): number | undefined {
  return hasOwnConfigs(result, configs) ? 0o600 : undefined;
}

/** The most that a config has with all that it includes. */
const configMegabytes = 16;

/** Reads the composed configs from the run's folder, and nothing from outside of it. One that is not there, or cannot be read any more, is left out. */
export async function readRunFiles(folder: string, { variants }: Result): Promise<RunFiles> {
  return {
    configs: (
      await Promise.all(variants.map((variant) => readConfig(folder, variant).catch(() => [])))
    ).flat(),
  };
}

/** The first round's: the others' differ in ports and folders. */
async function readConfig(
  folder: string,
  { name, rounds: [first], server }: VariantResult,
): Promise<ComposedConfig[]> {
  if (first === undefined || server === null) return [];
  const file = `${server.name}.conf`;
  const text = (
    await readBytes(join(folder, `round-${first.round}`, name, file), {
      megabytes: configMegabytes,
      below: folder,
    })
  ).toString('utf8');
  return [{ variant: name, file, text }];
}

// report.html: a run in one page.

/** What is kept beside a result. Where it is empty, what it is for is left out. */
export interface RunFiles {
  configs: readonly ComposedConfig[];
}

/** The whole page. Throws only for what is no Result. */
export function htmlReport(result: Result, { configs }: RunFiles): Promise<string> {
  const figures: Figure[] = [];
  const plots = [
    ...curveFigures(result),
    ...ladderFigures(result),
    ...ratioFigures(result),
    ...streamFigures(result),
    ...roundFigures(result),
    ...histogramFigures(result),
    ...percentileFigures(result),
  ];
  const notes = list(noteLines(result), 'footnotes');
  // Of an article they are on its figures; of a comparison of one's own they say what else differs.
  const isOwn = result.variants.every(({ published }) => published === null);
  const redirected = redirectedLines(result);
  const body = html`<header>${headlineHtml(result)}
${paragraphs(headingLines(resultHeading(result)), 'about')}${list(circumstanceLines(result), 'findings')}${list(result.warnings, 'warnings')}</header>
${differencesHtml(result, configs, isOwn ? notes : nothing)}${
    redirected.length === 0
      ? nothing
      : html`<details><summary>Paths and ports that are not as the configs say</summary>${list(redirected, 'footnotes')}</details>`
  }
<section><h2>The table</h2>
${articleParts(result).map((part) => partHtml(part))}${isOwn ? nothing : notes}</section>
${
  plots.length === 0
    ? nothing
    : html`<section><h2>Plots</h2>
<noscript><p>Without JavaScript the plots are not drawn; their figures are in the tables.</p></noscript>
${plots.map((figure) => figureHtml(figure, figures))}</section>`
}
${loadPart(result).map(loadHtml)}${configsHtml(result, configs)}
<section><h2>Environment</h2>
${tableHtml(environmentTable([result], ['this run']), 'environment', { wraps: true })}${namedTable('What else used the machine, the most in any round', noiseTable(result))}${paragraphs(
    [`${storedLine(result.integrity)}.`],
  )}</section>`;
  return page(`${result.title} · ${result.run}`, body, figures);
}

/** Many small tables. */
function loadHtml({ title, tables, below }: Part): Html {
  return html`<section><h2>${title.replace(/:$/, '')}</h2>
<div class="side-by-side">${tables.map((table) => tableHtml(table, table.columns[0]?.title ?? ''))}</div>${paragraphs(below)}</section>
`;
}

/** Tables with the lines around them. */
function partHtml({ title, tables, below }: Part): Html {
  return html`${title === '' ? nothing : html`<h3>${title.replace(/:$/, '')}</h3>\n`}${tables.map((table) => tableHtml(table, title === '' ? 'the table' : title))}${paragraphs(below)}`;
}

function namedTable(title: string, table: Table): Html {
  return table.rows.length === 0
    ? nothing
    : html`<h3>${title}</h3>\n${tableHtml(table, title, { wraps: true })}`;
}
