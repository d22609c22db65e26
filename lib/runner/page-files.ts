// Lists of pages, as k6 reads them: beside its script, since they are too long for its environment.
import { createHash } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pageOf } from '../scenario/catalogue.ts';
import type { Page, Scenario, Variant } from '../scenario/model.ts';
import type { PageWeights } from '../scenario/page-list.ts';

const digests = new WeakMap<PageWeights, string>();

/** SHA-256 of the list, made once: it may be long, and variants mostly have the same one, if not as one object. */
function digestOf(weights: PageWeights): string {
  const known = digests.get(weights) ?? createHash('sha256').update(textOf(weights)).digest('hex');
  digests.set(weights, known);
  return known;
}

const textOf = (weights: PageWeights): string =>
  Object.entries(weights)
    .map(([path, weight]) => `${path} ${weight}\n`)
    .join('');

/** All that makes a page what it is, to be compared as text: of a list its digest. */
export function pageFacts({ weights, ...page }: Page): object {
  return weights === undefined ? page : { ...page, weights: digestOf(weights) };
}

/** Each once, by its digest. */
function listsOf(scenario: Scenario): Map<string, PageWeights> {
  return new Map(
    scenario.variants.flatMap((variant) => {
      const { weights } = pageOf(scenario, variant);
      return weights === undefined ? [] : [[digestOf(weights), weights] as const];
    }),
  );
}

/** The name of the file that has the variant's pages; null where it has one page. */
export function pageFileOf(scenario: Scenario, variant: Variant): string | null {
  const { weights } = pageOf(scenario, variant);
  return weights === undefined
    ? null
    : fileName([...listsOf(scenario).keys()].indexOf(digestOf(weights)));
}

/** Writes the scenario's lists into the run's folder, in the form that --urls reads too. Throws the file system's error. */
export async function writePageFiles(scenario: Scenario, folder: string): Promise<void> {
  await Promise.all(
    [...listsOf(scenario).values()].map((weights, index) =>
      writeFile(join(folder, fileName(index)), textOf(weights)),
    ),
  );
}

function fileName(index: number): string {
  return `pages-${index + 1}.txt`;
}
