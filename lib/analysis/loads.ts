// What a variant's load is, as far as its table depends on it.
import type { VariantResult } from '../result/result.ts';
import { isAtRate } from '../scenario/load.ts';

/** Requests start at a given rate, or one that is searched for. Where it is given, requests/s say nothing of the server, and latencies do. */
export function isOpenModel({ load }: Pick<VariantResult, 'load'>): boolean {
  return isAtRate(load);
}

/** Concurrent requests per connection. */
export function streamsOf({ load }: VariantResult): number {
  return load.streams ?? 1;
}
