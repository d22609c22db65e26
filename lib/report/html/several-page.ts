// Several runs in one page: runs of one scenario side by side, scenarios below each other.
import { isDeepStrictEqual } from 'node:util';
import { comparisonOf, variantOf } from '../../analysis/comparisons.ts';
import { isFailing, roundRps } from '../../analysis/phases.ts';
import { groupedBy, unpairedRatio } from '../../analysis/statistics.ts';
import { minimumRounds } from '../../analysis/statistics.ts';
import { effect } from '../../format.ts';
import { differingFacts, environmentTable } from '../environment.ts';
import { effectsHtml, headline, shownOf } from './headline.ts';
import { html, list, nothing, paragraphs, tableHtml, page, partHtml, type Html } from './page.ts';
import { variantTable } from '../run-tables.ts';
import { findingLines, footnoteLines } from '../sentences.ts';
import { leftColumn, tableOf, type Part } from '../table.ts';
import type { Result } from '../../result/result.ts';

/** @param results at least one, in the order of the page */
export function severalPage(results: readonly Result[]): Promise<string> {
  // All runs of compare have the same scenario; equal titles belong together.
  const groups = groupedBy(results, ({ scenario, title }) => JSON.stringify([scenario, title]));
  const title = `${results.length} runs side by side`;
  const body = html`<header><h1>${title}</h1>
${paragraphs([results.map(({ run }) => run).join(' · ')], 'about')}</header>
${[...groups.values()].map(groupHtml)}`;
  return page(title, body, []);
}

function groupHtml(results: readonly Result[]): Html {
  const [first] = results;
  const title = first?.title ?? '';
  // "2026-11-20 08:15:30", the start in the run's name.
  const titles = results.map(({ run, scenario }) =>
    run
      .replace(`-${scenario}`, '')
      .replace('T', ' ')
      .replaceAll(/(?<= \d\d)-(\d\d)-(\d\d)/g, ':$1:$2'),
  );
  const facts = differingFacts(results);
  const differing =
    facts.length === 0
      ? 'No difference is known in how and where these runs were made; what is in their configs was not compared.'
      : `These runs differ in: ${facts.join(', ')}. Figures of different machines, boots or versions compare by their ratios at most.`;
  const pairs = groupedBy(results.flatMap(shownOf), ({ one }) =>
    JSON.stringify([one.variant, one.baseline]),
  );
  const effects = effectsHtml([...pairs.values()].flat(), (row) => {
    const run = results.length < 2 ? '' : `, ${titles[results.indexOf(row.result)]}`;
    return html`<strong>${headline(row)}</strong>${run}`;
  });
  const found = results.map(
    (result, index) => html`<h3>Found in ${titles[index] ?? ''}</h3>
${tableHtml(variantTable(result), result.run)}${list(findingLines(result), 'findings')}${list(result.warnings, 'warnings')}${list(footnoteLines(result), 'footnotes')}`,
  );
  return html`<section><h2>${title}</h2>
${paragraphs([first?.scenario ?? ''], 'about')}${results.length < 2 ? nothing : paragraphs([differing])}
${effects}
${runAgainstRun(results, titles).map((part) => partHtml(part))}${found}
<h3>Environment</h3>
${tableHtml(environmentTable(results, titles), 'environment', { wraps: true })}</section>`;
}

function runAgainstRun(
  [first, ...later]: readonly Result[],
  [firstTitle = '', ...titles]: readonly string[],
): Part[] {
  if (first === undefined) return [];
  const columns = later.flatMap((result, index) => {
    const group = `${titles[index] ?? ''} against ${firstTitle}`;
    const rates = (name: string) => ratioCell(ratesOf(first, name), ratesOf(result, name));
    const ratios = (name: string) => ratioCell(...sameRatios(name, first, result));
    return [
      leftColumn('requests/s', rates, group),
      leftColumn('against its baseline', ratios, group),
    ];
  });
  const names = first.variants.map(({ name }) => name);
  const table = tableOf(names, [leftColumn('variant', (name) => name), ...columns]);
  const how = `Rounds of two runs are no pairs: intervals are Welch's, of 95 % each, from ${minimumRounds} rounds on. The machine may have changed between the runs, which requests/s show; a ratio to the baseline was measured within each run, and hardly depends on that.`;
  return table.rows.length === 0
    ? []
    : [{ title: 'Run against run', tables: [table], below: [how] }];
}

function ratioCell(before: readonly number[], after: readonly number[]): string {
  if (Math.min(before.length, after.length) < minimumRounds) return '';
  const { ratio, interval } = unpairedRatio(before, after);
  return effect(ratio, interval);
}

/** Empty if metric, baseline or limit of the runs differ, or if a load failed. */
function sameRatios(
  name: string,
  first: Result,
  later: Result,
): [before: number[], after: number[]] {
  const [before, after] = [comparisonOf(first, name), comparisonOf(later, name)];
  const isSame =
    before !== undefined &&
    before.metric === after?.metric &&
    before.baseline === after.baseline &&
    isDeepStrictEqual(first.search?.within, later.search?.within) &&
    [first, later]
      .flatMap((result) => [variantOf(result, name), variantOf(result, before.baseline)])
      .every((side) => side !== undefined && !isFailing(side));
  return isSame ? [before.roundRatios, after.roundRatios] : [[], []];
}

/** requests/s of all rounds; empty if the load sets them, or failed. */
function ratesOf(result: Result, name: string): number[] {
  const variant = variantOf(result, name);
  if (variant === undefined || isFailing(variant)) return [];
  if (variant.load.rate !== undefined || variant.load.searched) return [];
  const rates = variant.rounds.map(({ phases }) => roundRps(phases));
  return rates.every((rate) => rate > 0) ? rates : [];
}
