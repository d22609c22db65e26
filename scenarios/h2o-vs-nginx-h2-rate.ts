import { defineScenario, h2o, nginx, vegeta } from '../lib/scenario/index.ts';
import article from './articles/001.ts';

// The same settings as in h2o-vs-nginx-h2, on the same two servers.
const tls = {
  maxVersion: 'TLSv1.2',
  ciphers: ['ECDHE-RSA-AES128-GCM-SHA256'],
  curves: ['P-256', 'P-384'],
} as const;
const load = vegeta('-http2 -insecure -duration=10s -rate=1000', {
  bucketsMs: [0.15, 0.3, 0.45, 0.6, 0.75, 0.9, 1, 2, 5],
  tls,
});

/** The article's histogram: how many responses were in each bucket, the last one being all that is longer. */
function histogram(counts: readonly number[]) {
  const bounds = [0, ...(load.bucketSeconds ?? [])];
  return counts.map((count, index) => ({
    fromSeconds: bounds[index] ?? NaN,
    toSeconds: bounds[index + 1] ?? null,
    count,
  }));
}

export default defineScenario({
  name: 'h2o-vs-nginx-h2-rate',
  title: 'h2o against nginx over HTTP/2 at 1000 requests/s: how long they take, in buckets',
  article,
  knob: 'h2o',
  load,
  page: { docroot: 'h2o', path: '/', bodyBytes: 177 },
  variants: [
    {
      name: 'nginx',
      server: nginx(['h2-tuned'], { workers: 'server-cores', minWorkers: 2 }),
      published: {
        requests: 10_000,
        buckets: histogram([0, 0, 342, 2617, 6000, 207, 19, 257, 36, 522]),
      },
    },
    {
      name: 'h2o',
      server: h2o(['h2-tuned'], { workers: 'server-cores' }),
      published: {
        requests: 10_000,
        buckets: histogram([0, 0, 657, 5740, 3318, 63, 7, 148, 9, 58]),
      },
    },
  ],
  footnotes: [
    "All requests share one connection, as with vegeta's client. Its latency begins when a request leaves; here it begins when the request was due.",
    'The article held nginx to the curve P-384 (secp384r1) and left h2o at P-256: with one handshake in 10,000 requests that matters at the start only.',
  ],
});
