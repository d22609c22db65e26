import type { Feature } from '../../cli/feature.ts';
import { foundLines } from './found.ts';
import { searchWithin } from './search.ts';
import { atRates } from './sweep.ts';
import { isLatency } from '../../analysis/metrics.ts';
import { usageError } from '../../errors.ts';
import { enumeration, whole } from '../../format.ts';
import { latencyMetrics } from '../../scenario/latency-metrics.ts';
import type { Reader } from '../../scenario/load/flags.ts';
import { longestLatencyMs, type Within } from '../../scenario/model.ts';
import { highestRate } from './rate-search.ts';

const msPerUnit: Readonly<Record<string, number>> = { us: 0.001, µs: 0.001, ms: 1, s: 1000 };

/** Reads p99=5ms. Throws UserError (exit code 2). */
export function readWithin(flag: string, text: string): Within {
  const [, metric = '', number, unit = ''] = /^(\w+)=([\d.]+)(\D+)$/.exec(text) ?? [];
  const ms = Number(number) * (msPerUnit[unit] ?? NaN);
  if (isLatency(metric) && ms >= 0.001 && ms <= longestLatencyMs) return { metric, ms };
  throw usageError(
    `${flag} ${text}: give ${enumeration(latencyMetrics, 'or')} and a time from 1us to 60s with its unit, such as p99=5ms`,
  );
}

/** Reads 500,1k,2.5k as requests/s, ascending. Throws UserError (exit code 2). */
export const readRates: Reader<number[]> = (flag, text) => {
  const rates = text.split(',').map((word) => {
    const [, number = '', thousand] = /^(\d+(?:\.\d+)?)(k?)$/.exec(word.trim()) ?? [];
    // 1.001 * 1000 is 1000.9999999999999.
    return Number((Number(number) * (thousand === 'k' ? 1000 : 1)).toPrecision(12));
  });
  if (!rates.every((rate) => Number.isInteger(rate) && rate >= 1 && rate <= highestRate))
    throw usageError(
      `${flag} ${text}: give requests/s from 1 to ${whole(highestRate)} with commas between them, such as 500,1k,2.5k`,
    );
  return [...new Set(rates)].sort((a, b) => a - b);
};

/** Searches for the highest rate within a latency limit (docs/verdicts.md, Searches), and measures latency by rate. */
export const search: Feature = {
  run: {
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
    planner: {
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
    },
  },
  report: (result) => ({ findings: foundLines(result) }),
};
