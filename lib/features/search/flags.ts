// Reads the values of --within and --rates.
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
