// Several runs in one page: those of one scenario beside each other, different scenarios below each other.
import { isDeepStrictEqual } from 'node:util';
import { comparisonOf, variantOf, comparable } from '../../analysis/comparisons.ts';
import { isFailing, roundRps } from '../../analysis/phases.ts';
import { groupedBy, unpairedRatio } from '../../analysis/statistics.ts';
import { minimumRounds } from '../../analysis/verdict.ts';
import { perSecond, success, times } from '../../format.ts';
import type { Comparison, Result, VariantResult } from '../../result/result.ts';
import { hasPhases, rateText } from '../run-tables.ts';
import { findingLines, footnoteLines } from '../sentences.ts';
import {
  type Cell,
  type Column,
  type Table,
  figure,
  leftColumn,
  rightColumn,
  tableOf,
} from '../table.ts';
import { cpuCell, verdictCell } from '../verdict-words.ts';
import { effectsHtml, headline, shownOf } from './headline.ts';
import { type Html, html, list, nothing, paragraphs, tableHtml } from './markup.ts';
import { page } from './page.ts';
import { differingFacts, environmentTable } from '../environment.ts';

/** @param results at least one, in the order in which they are shown */
export function severalPage(results: readonly Result[]): Promise<string> {
  // Two comparisons of a person's own are of one scenario when they have the same title.
  const groups = [
    ...groupedBy(results, ({ scenario, title }) => JSON.stringify([scenario, title])).values(),
  ];
  const title = `${results.length} runs side by side`;
  const body = html`<header><h1>${title}</h1>
${paragraphs([results.map(({ run }) => run).join(' · ')], 'about')}</header>
${groups.map((group) => groupHtml(group))}`;
  return page(title, body, []);
}

function groupHtml(results: readonly Result[]): Html {
  // What tells runs of one scenario apart: when they began, as far as that differs.
  const titles = results.map(({ run, scenario }) =>
    run
      .replace(`-${scenario}`, '')
      .replace('T', ' ')
      .replaceAll(/(?<= \d\d)-(\d\d)-(\d\d)/g, ':$1:$2'),
  );
  const differing = differingFacts(results);
  const [first] = results;
  // Those of one pair of variants are below each other.
  const shown = [
    ...groupedBy(results.flatMap(shownOf), ({ one }) =>
      JSON.stringify([one.variant, one.baseline]),
    ).values(),
  ].flat();
  return html`<section><h2>${first?.title ?? ''}</h2>
${paragraphs([first?.scenario ?? ''], 'about')}${
    results.length < 2
      ? nothing
      : paragraphs([
          differing.length === 0
            ? 'No difference is known in how and where these runs were made; what is in their configs was not compared.'
            : `These runs differ in: ${differing.join(', ')}. Figures of different machines, boots or versions compare by their ratios at most.`,
        ])
  }
${effectsHtml(shown, (row) => html`<strong>${headline(row)}</strong>${results.length < 2 ? nothing : `, ${titles[results.indexOf(row.result)] ?? ''}`}`)}
${tableHtml(runsTable(results, titles), `${first?.title ?? ''}, run by run`)}
${runAgainstRun(results, titles)}${results.map(
    (result, index) => html`<h3>Found in ${titles[index] ?? ''}</h3>
${list(findingLines(result), 'findings')}${list(result.warnings, 'warnings')}${list(footnoteLines(result), 'footnotes')}`,
  )}
<h3>Environment</h3>
${tableHtml(environmentTable(results, titles), 'environment', { wraps: true })}</section>`;
}

/** A row per variant, a group of columns per run. */
function runsTable(results: readonly Result[], titles: readonly string[]): Table {
  const names = [...new Set(results.flatMap(({ variants }) => variants.map(({ name }) => name)))];
  const published = { group: 'published' };
  // As in a run's own table: with several load phases they are those of one of them.
  const publishedColumns = results.some(hasPhases)
    ? []
    : [
        rightColumn(
          'requests/s',
          (name: string) =>
            figure(
              results
                .map((result) => variantOf(result, name)?.published?.rps)
                .find((rps) => rps !== undefined),
              perSecond,
            ),
          published,
        ),
        leftColumn(
          'ratio',
          (name: string) =>
            figure(
              results
                .map((result) => comparisonOf(result, name)?.publishedRatio)
                .find((ratio) => ratio !== undefined && ratio !== null),
              times,
            ),
          published,
        ),
      ];
  return tableOf(names, [
    leftColumn('variant', (name) => name),
    ...publishedColumns,
    ...results.flatMap((result, index) => runColumns(result, titles[index] ?? '')),
  ]);
}

function runColumns(result: Result, group: string): Column<string>[] {
  const told =
    (cell: (variant: VariantResult, comparison: Comparison | undefined) => Cell) =>
    (name: string): Cell => {
      const variant = variantOf(result, name);
      return variant === undefined ? '' : cell(variant, comparisonOf(result, name));
    };
  return [
    rightColumn(
      'requests/s',
      told((variant) => rateText(variant, result)),
      { group },
    ),
    leftColumn(
      'against its baseline',
      told((variant, comparison) =>
        comparable(variant, comparison) ? verdictCell(comparison, result) : '',
      ),
      { group },
    ),
    rightColumn(
      'CPU µs/req',
      told(({ serverCpuMicrosPerRequest }) =>
        figure(serverCpuMicrosPerRequest?.median, (value) => value.toFixed(1)),
      ),
      { group },
    ),
    leftColumn(
      'CPU ratio',
      told((variant, comparison) => (comparison === undefined ? '' : cpuCell(comparison, variant))),
      { group },
    ),
    rightColumn(
      'success',
      told(({ successRatio }) => figure(successRatio, success)),
      { group },
    ),
  ];
}

/** Each run after the first against the first: what each variant answered, and what its effect was. */
function runAgainstRun(
  [first, ...later]: readonly Result[],
  [firstTitle = '', ...titles]: readonly string[],
): Html {
  if (first === undefined || later.length === 0) return nothing;
  const columns = later.flatMap((result, index): Column<string>[] => {
    const group = `${titles[index] ?? ''} against ${firstTitle}`;
    return [
      leftColumn('requests/s', (name) => ratioCell(ratesOf(first, name), ratesOf(result, name)), {
        group,
      }),
      leftColumn('ratio to its baseline', (name) => ratioCell(...sameRatios(name, first, result)), {
        group,
      }),
    ];
  });
  const table = tableOf(
    first.variants.map(({ name }) => name),
    [leftColumn('variant', (name) => name), ...columns],
  );
  if (table.rows.length === 0) return nothing;
  return html`<h3>Run against run</h3>
${tableHtml(table, 'Run against run')}
${paragraphs(
  [
    `Rounds of two runs are no pairs: intervals are Welch's, of 95 % each, from ${minimumRounds} rounds on. The machine may have changed between the runs, which requests/s show; a variant's ratio to its baseline was measured within each run, and hardly has that in it.`,
  ],
  'about',
)}`;
}

/** '' where there are too few rounds for an interval. */
function ratioCell(before: readonly number[], after: readonly number[]): string {
  if (Math.min(before.length, after.length) < minimumRounds) return '';
  const { ratio, interval } = unpairedRatio(before, after);
  return times(ratio, interval);
}

/** Of each round; none where they are ratios of other figures, or to another baseline, or of loads that failed. */
function sameRatios(
  name: string,
  first: Result,
  later: Result,
): [before: number[], after: number[]] {
  const [before, after] = [comparisonOf(first, name), comparisonOf(later, name)];
  if (
    before === undefined ||
    after === undefined ||
    before.metric !== after.metric ||
    before.baseline !== after.baseline
  )
    return [[], []];
  // What a search finds are not the requests/s of a load.
  if (!isDeepStrictEqual(first.search?.within, later.search?.within)) return [[], []];
  const sides = [first, later].flatMap((result) => [
    variantOf(result, name),
    variantOf(result, before.baseline),
  ]);
  return sides.some((side) => side === undefined || isFailing(side))
    ? [[], []]
    : [before.roundRatios, after.roundRatios];
}

/** requests/s of each round; none where the load set them, or failed. */
function ratesOf(result: Result, name: string): number[] {
  const variant = variantOf(result, name);
  if (
    variant === undefined ||
    variant.load.rate !== undefined ||
    variant.load.searched ||
    isFailing(variant)
  )
    return [];
  const rates = variant.rounds.map(({ phases }) => roundRps(phases));
  return rates.every((rate) => rate > 0) ? rates : [];
}
