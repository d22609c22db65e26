// What a single run says of its article.
import { variantOf } from '../../analysis/comparisons.ts';
import type { Environment } from '../../result/environment.ts';
import type { Result } from '../../result/result.ts';
import type { Article } from '../../scenario/article.ts';
import type { ClaimRow, RunPlaces } from './schema.ts';
import { articleTitle, measuredEnvironment } from '../../report/article.ts';
import { decideClaim, madeBy, ownFigures } from '../../report/claims.ts';

/**
 * Decides the claims that rest on the result's scenario, each as far as it does. A claim on a variant that --variants left out is not
 * among them. `number` is the claim's in the article, from 1.
 */
export function claimsOfRun(article: Article, result: Result): (ClaimRow & { number: number })[] {
  const shown = (name: string) => variantOf(result, name) !== undefined;
  const results = new Map([[result.scenario, result]]);
  const decided = [];
  for (const [index, { text, figures, ...claim }] of (article.claims ?? []).entries()) {
    const rests = claim.rests.filter(({ scenario }) => scenario === result.scenario);
    if (rests.length === 0 || !rests.every((rest) => shown(rest.variant) && shown(rest.against)))
      continue;
    const ofRun = { ...claim, rests };
    const makes = madeBy(ownFigures(ofRun, article, results));
    const decision = decideClaim(ofRun, article, results);
    decided.push({ number: index + 1, text, figures, makes, ...decision });
  }
  return decided;
}

/** Says where a run's page is, and on which machines the run and its article were measured. */
export function placesOf(
  report: string,
  environment: Environment,
  article: Article | undefined,
): RunPlaces {
  const places: RunPlaces = { report, machine: measuredEnvironment(environment).join(' · ') };
  if (article !== undefined) {
    places.articleTitle = articleTitle(article);
    if (article.machine !== undefined)
      places.articleMachine = Object.values(article.machine).join(' · ');
  }
  return places;
}
