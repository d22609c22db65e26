// Searches for the highest rate within a limit, with a config against itself: how often the two are called different.
import type { Within } from '../../lib/scenario/model.ts';
import { measureAgainstItself } from './aa.ts';
import type { Lab } from './lab.ts';
import type { ProofData } from './results.ts';

/** Pauses of a virtual machine alone do not break it. */
export const searchedWithin: Within = { metric: 'p99', ms: 10 };

export function measureSearch(lab: Lab, data: ProofData['search'], save: () => Promise<void>): Promise<void> {
  return measureAgainstItself(lab, data, save, { within: data.within, quick: true });
}
