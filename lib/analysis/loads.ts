// What a variant's load is, as far as its table depends on it.
import type { Result, VariantResult } from '../result/result.ts';
import { isAtRate } from '../scenario/load.ts';
import { isHttp2 } from '../scenario/protocols.ts';

/** Requests start at a given rate, or one that is searched for. Where it is given, requests/s say nothing of the server, and latencies do. */
export function isOpenModel({ load }: Pick<VariantResult, 'load'>): boolean {
  return isAtRate(load);
}

/** Whether one of the variants that the result is about is HTTP/2. */
export function hasHttp2(result: Result): boolean {
  return result.variants.some(({ load }) => isHttp2(load.protocol));
}

/** Concurrent requests per connection. */
export function streamsOf({ load }: VariantResult): number {
  return load.streams ?? 1;
}
