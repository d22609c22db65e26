// report.html: a run in one page.
import { join } from 'node:path';
import { writeWhole } from '../../writing.ts';
import { short } from '../../format.ts';
import type { Result } from '../../result/result.ts';
import { figuresOf } from '../charts.ts';
import { environmentTable, noiseTable } from '../environment.ts';
import { headingLines, resultHeading } from '../heading.ts';
import { loadPart } from '../load-tables.ts';
import { articleParts } from '../run-tables.ts';
import { circumstanceLines, noteLines, redirectedLines, storedLine } from '../sentences.ts';
import type { Part } from '../table.ts';
import { pagesPart } from '../pages.ts';
import { cpuBars, cpuOf, pairsOf, stacksFile, whyPart, type CpuBar } from '../why.ts';
import { flameGraph, type Stacks } from './flame.ts';
import {
  configsHtml,
  differencesHtml,
  hasOwnConfigs,
  readConfigs,
  textIn,
  type ComposedConfig,
} from './differences.ts';
import { headlineHtml } from './headline.ts';
import {
  html,
  list,
  nothing,
  paragraphs,
  tableHtml,
  figureHtml,
  page,
  partHtml,
  type Html,
} from './page.ts';

/** Writes report.html into the run's folder and returns its path. Throws the file system's error. */
export async function writeHtmlReport(folder: string, result: Result): Promise<string> {
  const file = join(folder, 'report.html');
  const { text, mode } = await runPage(folder, result);
  await writeWhole(file, text, mode);
  return file;
}

/** The page of a run, and its file mode: 0600 if it shows users' own configs, else undefined. */
export async function runPage(folder: string, result: Result) {
  const configs = readConfigs(folder, result);
  const text = await htmlReport(result, configs, readStacks(folder, result));
  return { text, mode: hasOwnConfigs(result, configs) ? 0o600 : undefined };
}

function readStacks(folder: string, { why }: Result): Stacks[] {
  return (why?.sides ?? []).flatMap((side) =>
    textIn(folder, stacksFile(side.variant)).map((folded) => {
      return { variant: side.variant, folded, us: cpuOf(side) };
    }),
  );
}

/** The whole page. */
export function htmlReport(
  result: Result,
  configs: readonly ComposedConfig[],
  stacks: readonly Stacks[] = [],
): Promise<string> {
  const figures = figuresOf(result);
  const notes = list(noteLines(result), 'footnotes');
  // An article's notes explain its figures; other notes name further differences.
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
${articleParts(result).map((part) => partHtml(part))}${pagesPart(result, Infinity).map((part) => partHtml(part, { sorts: true }))}${isOwn ? nothing : notes}</section>
${whyHtml(result, stacks)}${
    figures.length === 0
      ? nothing
      : html`<section><h2>Plots</h2>
<noscript><p>Without JavaScript the plots are not drawn; their figures are in the tables.</p></noscript>
${figures.map(figureHtml)}</section>`
  }
${loadPart(result).map(({ tables, below }) => html`<section><h2>Each load in detail</h2>\n${sideBySide(tables)}${paragraphs(below)}</section>\n`)}${configsHtml(result, configs)}
<section><h2>Environment</h2>
${tableHtml(environmentTable(result), 'environment', { wraps: true })}${partHtml(
    {
      title: 'What else used the machine, the most in any round',
      tables: [noiseTable(result)],
      below: [`${storedLine(result.integrity)}.`],
    },
    { wraps: true },
  )}</section>`;
  return page(`${result.title} · ${result.run}`, body, figures);
}

const sideBySide = (tables: Part['tables']) =>
  html`<div class="side-by-side">${tables.map((table) => tableHtml(table))}</div>`;

function whyHtml(result: Result, stacks: readonly Stacks[]): Html[] {
  const { names, bars } = cpuBars(result);
  const most = Math.max(...bars.map(({ us }) => us));
  const colourOf = (name: string) => `background:var(--series-${names.indexOf(name)})`;
  const parts = ({ parts: all }: CpuBar) =>
    all.map(({ name, us }) => {
      const text = `${name}: ${short(us)} µs`;
      return html`<i style="width:${((100 * us) / most).toFixed(2)}%;${colourOf(name)}" title="${text}"></i>`;
    });
  return whyPart(result).map(
    ({ tables, below }) => html`<section><h2>Why</h2>
<p>CPU time of a request, by system call, other work of the kernel, and object in user space.</p>
<div class="stacks">${bars.map((one) => html`<b>${one.variant}</b><span class="stack">${parts(one)}</span><b>${short(one.us)} µs</b>`)}</div>
<p class="legend">${names.map((name) => html`<span><i style="${colourOf(name)}"></i>${name}</span> `)}</p>
${sideBySide(tables)}${paragraphs(below)}${flamesHtml(result, stacks)}</section>
`,
  );
}

function flamesHtml(result: Result, stacks: readonly Stacks[]): Html {
  if (stacks.length === 0) return nothing;
  const of = (name: string) => stacks.filter(({ variant }) => variant === name);
  const pairs = pairsOf(result).flatMap(({ variant, baseline }) =>
    of(variant.variant).flatMap((now) => of(baseline.variant).map((before) => ({ now, before }))),
  );
  return html`<details><summary>Flame graphs</summary>${pairs.map(({ now, before }) => html`<h3>${now.variant} against ${before.variant}: red takes more CPU time, green less</h3>${flameGraph(now, before)}`)}${stacks.map((one) => html`<h3>${one.variant}</h3>${flameGraph(one)}`)}</details>`;
}
