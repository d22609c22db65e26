// requests/s by concurrent streams per connection, against the line of HTTP/1.1.
import type { Comparison, Result, VariantResult } from '../result/result.ts';
import { isHttp2 } from '../scenario/protocols.ts';
import { comparisonOf } from './comparisons.ts';

/** From this many numbers of streams on it is a curve. */
const fewestPoints = 3;

/** A variant that was measured, its requests/s, and its comparison with HTTP/1.1, where there is one. */
export interface Point {
  variant: VariantResult;
  rps: number;
  ratio: number;
  comparison?: Comparison | undefined;
}

/** HTTP/1.1 and the same server's (or another's) HTTP/2 with several numbers of streams. */
export interface StreamSweep {
  line: Point;
  curve: Point[];
}

/** Concurrent requests per connection. */
export function streamsOf({ load }: VariantResult): number {
  return load.streams ?? 1;
}

/** The sweep in a result, most streams first; undefined where there is none, or nothing was answered over HTTP/1.1. `ratio` is that of requests/s to HTTP/1.1's. */
export function streamSweep(result: Result): StreamSweep | undefined {
  const measured = result.variants.flatMap((variant) =>
    variant.rps === null ? [] : [{ variant, rps: variant.rps.median }],
  );
  const http1 = measured.find(({ variant }) => !isHttp2(variant.load.protocol));
  const http2 = measured.filter(({ variant }) => isHttp2(variant.load.protocol));
  // Verdicts by something else are told one by one.
  if (result.comparisons.some(({ metric }) => metric !== 'rps')) return undefined;
  if (
    http1 === undefined ||
    http1.rps === 0 ||
    new Set(http2.map(({ variant }) => streamsOf(variant))).size < fewestPoints
  )
    return undefined;
  const curve = http2.map(({ variant, rps }): Point => {
    const comparison = comparisonOf(result, variant.name, http1.variant.name);
    return { variant, rps, ratio: comparison?.ratio || rps / http1.rps, comparison };
  });
  return {
    line: { ...http1, ratio: 1 },
    curve: curve.sort((a, b) => streamsOf(b.variant) - streamsOf(a.variant)),
  };
}
