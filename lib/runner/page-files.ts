// Lists of pages, as k6 reads them: beside its script, since they are too long for its environment.
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pageOf } from '../scenario/catalogue.ts';
import type { Scenario, Variant } from '../scenario/model.ts';
import type { PageWeights } from '../scenario/page-list.ts';

/** Each once: variants mostly have the same one. */
function listsOf(scenario: Scenario): PageWeights[] {
  const lists = scenario.variants.map((variant) => pageOf(scenario, variant).weights);
  return [...new Set(lists)].filter((list) => list !== undefined);
}

/** The name of the file that has the variant's pages; null where it has one page. */
export function pageFileOf(scenario: Scenario, variant: Variant): string | null {
  const { weights } = pageOf(scenario, variant);
  return weights === undefined ? null : fileName(listsOf(scenario).indexOf(weights));
}

/** Writes the scenario's lists into the run's folder, in the form that --urls reads too. Throws the file system's error. */
export async function writePageFiles(scenario: Scenario, folder: string): Promise<void> {
  await Promise.all(listsOf(scenario).map((weights, index) => (
    writeFile(join(folder, fileName(index)), Object.entries(weights).map(([path, weight]) => `${path} ${weight}\n`).join(''))
  )));
}

function fileName(index: number): string {
  return `pages-${index + 1}.txt`;
}
