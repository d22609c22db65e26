// article.html: an article's claims and tables beside what was measured here.
import type { Result, VariantResult } from '../../result/result.ts';
import {
  articleHead,
  articleTitle,
  claimsLines,
  colours,
  scenarioDetails,
  scenarioPart,
  type ArticleRun,
} from '../article.ts';
import { comparisonOfClaim, decideClaim } from '../claims.ts';
import type { Contribute, Contribution } from '../contribution.ts';
import { effectRows, type EffectRow } from './headline.ts';
import { html, listHtml, nothing, page, partHtml, tableHtml, type Html } from './page.ts';

export function articlePage(run: ArticleRun, contributionsTo: Contribute): Promise<string> {
  const title = articleTitle(run.article);
  const { url } = run.article;
  const source = url === undefined ? nothing : html`<p><a href="${url}">${url}</a></p>`;
  const body = html`<header><h1>${title}</h1>${source}${glanceHtml(run)}</header>
${articleHead(run, true).map((part) => html`<section>${partHtml(part, { wraps: true })}</section>`)}
${[...run.results].map(([key, result]) => scenarioHtml(key, result, contributionsTo(result)))}`;
  return page(title, body, []);
}

/** A row per claim: its state, and the effect here with its interval, beside that of the article. */
function glanceHtml({ article, results, missing }: ArticleRun): Html {
  const rows = (article.claims ?? []).map((claim): EffectRow => {
    const { state } = decideClaim(claim, article, results, missing);
    const measured = comparisonOfClaim(claim, results);
    return {
      label: html`<strong>${state}</strong>: ${claim.text}`,
      colour: colours[state],
      comparison: measured?.comparison,
      sameWithin: measured?.sameWithin ?? 0,
    };
  });
  if (rows.length === 0) return nothing;
  return html`<p class="title">${claimsLines({ article, results, missing })} The bars are the effects here with their intervals, the dotted lines those of the article.</p>${effectRows(rows)}`;
}

function scenarioHtml(key: string, result: Result, contributions: readonly Contribution[]): Html {
  const part = scenarioPart(key, result, contributions);
  return html`<section>${partHtml(part)}${barsHtml(result)}${detailsHtml(result, contributions)}</section>`;
}

function detailsHtml(result: Result, contributions: readonly Contribution[]): Html[] {
  return scenarioDetails(result, contributions).map(
    ({ title, tables, below }) =>
      html`<details><summary>${title.replace(/:$/, '')}</summary><div class="side-by-side">${tables.map((table) => tableHtml(table))}</div>${listHtml(below, 'footnotes')}</details>
`,
  );
}

type Both = VariantResult & { published: { rps: number }; rps: { median: number } };

/** Shows requests/s published and measured, each as a multiple of the first row's; nothing for fewer than two rows with both. */
function barsHtml({ variants }: Result): Html {
  const rows = variants.filter(
    (variant): variant is Both => variant.published?.rps !== undefined && variant.rps !== null,
  );
  const [first] = rows;
  if (first === undefined || rows.length < 2) return nothing;
  const pairs = rows.map(({ name, published, rps }) => ({
    name,
    published: published.rps / first.published.rps,
    measured: rps.median / first.rps.median,
  }));
  const most = Math.max(...pairs.flatMap(({ published, measured }) => [published, measured]));
  const bar = (kind: 'published' | 'here', value: number) =>
    html`<div class="length ${kind}" style="width:${((65 * value) / most).toFixed(1)}%"></div><span>${value.toFixed(2)} ${kind}</span>`;
  return html`<h4>Requests/s, ${first.name} being 1</h4><dl class="bars">${pairs.map(
    ({ name, published, measured }) =>
      html`<dt>${name}</dt><dd>${bar('published', published)}</dd><dd>${bar('here', measured)}</dd>`,
  )}</dl>`;
}
