import type { Feature } from '../../feature.ts';
import { foundLines, ratesFound } from './found.ts';
import { readRates, readWithin } from './flags.ts';
import { searchWithin } from './search.ts';
import { atRates } from './sweep.ts';

/** Rates: the search for the highest within a limit (docs/verdicts.md, Searches), and latency by rate. */
export const search: Feature = {
  flags: {
    within: {
      group: 'verdict',
      value: 'p99=5ms',
      setsRate: true,
      inSteps: true,
      check: readWithin,
      help: 'search for the highest rate that keeps this latency',
    },
    rates: {
      group: 'verdict',
      value: '1k,2k,5k',
      setsRate: true,
      inScripts: true,
      check: readRates,
      help: "latency by rate: all of these requests/s instead of the load's own",
    },
  },
  scenario: ({ scenario, shown, flags, responses }) => {
    const rates = flags.get('rates');
    if (rates === undefined) return undefined;
    return atRates(scenario, shown, readRates('--rates', rates), responses);
  },
  steppedLoad: (scenario, flags) => {
    const asked = flags.get('within');
    const within = asked === undefined ? scenario.within : readWithin('--within', asked);
    return within && searchWithin(within);
  },
  found: ratesFound,
  findings: foundLines,
};
