import { defineScenario, h2load, h2o, nginx } from '../lib/scenario/index.ts';
import article from './articles/001.ts';
import { allSucceeded } from './articles/outcomes.ts';

// The cipher that h2load printed for both servers, and the two curves that it saw.
const cipher = 'ECDHE-RSA-AES128-GCM-SHA256';
const tls = { maxVersion: 'TLSv1.2', ciphers: [cipher], curves: ['P-256', 'P-384'] } as const;

export default defineScenario({
  name: 'h2o-vs-nginx-h2',
  title: 'h2o against nginx over HTTP/2 and TLS, and what the curve alone is worth',
  article,
  knob: 'h2o',
  load: h2load('-n 100000 -c 1000 -t 16', { tls }),
  page: { docroot: 'h2o', path: '/', bodyBytes: 177 },
  variants: [
    {
      name: 'nginx',
      server: nginx(['h2-tuned'], { workers: 'server-cores', minWorkers: 2 }),
      published: {
        rps: 8272.15,
        transferBytesPerSecond: 2.35 * 1024 ** 2,
        seconds: 12.09,
        requests: 100_000,
        outcomes: allSucceeded,
        responses: { '2xx': 100_000 },
        successRatio: 1,
        errorsPerMillion: 0,
        receivedBytes: 29_749_000,
        headerBytes: 10_200_000,
        headerSavingsPercent: 39.64,
        bodyBytes: 17_700_000,
        latencyMs: { min: 0.516, max: 1300, mean: 74.59, sd: 59.11, withinSdPercent: 85.52 },
        connectMs: { min: 608.48, max: 3660, mean: 2700, sd: 968.2, withinSdPercent: 82 },
        firstByteMs: { min: 836.13, max: 3750, mean: 3190, sd: 1090, withinSdPercent: 82 },
        perConnectionRps: { min: 8.3, max: 51.32, mean: 15.11, sd: 14.38, withinSdPercent: 82 },
        tls: { version: 'TLSv1.2', cipher, keyExchange: 'P-384' },
      },
    },
    {
      name: 'h2o',
      server: h2o(['h2-tuned'], { workers: 'server-cores' }),
      published: {
        rps: 12_126.65,
        transferBytesPerSecond: 2.44 * 1024 ** 2,
        seconds: 8.25,
        requests: 100_000,
        outcomes: allSucceeded,
        responses: { '2xx': 100_000 },
        successRatio: 1,
        errorsPerMillion: 0,
        receivedBytes: 21_074_909,
        headerBytes: 1_544_909,
        headerSavingsPercent: 91.27,
        bodyBytes: 17_700_000,
        latencyMs: { min: 0.276, max: 227.02, mean: 71.42, sd: 13.34, withinSdPercent: 92.24 },
        connectMs: { min: 349.15, max: 991.57, mean: 732.81, sd: 157.3, withinSdPercent: 63.6 },
        firstByteMs: { min: 405.79, max: 1060, mean: 809.04, sd: 169.83, withinSdPercent: 64.1 },
        perConnectionRps: { min: 12.02, max: 19.16, mean: 12.62, sd: 0.79, withinSdPercent: 90.7 },
        tls: { version: 'TLSv1.2', cipher, keyExchange: 'P-256' },
      },
    },
    {
      name: 'nginx-p256',
      server: nginx(['h2-tuned', 'curve-p256'], { workers: 'server-cores', minWorkers: 2 }),
      note: "Beyond the article: its nginx with h2o's curve, P-256 (prime256v1).",
    },
  ],
  footnotes: [
    'The article held nginx to the curve P-384 (secp384r1) and left h2o at P-256; a P-384 handshake takes far more CPU.',
    "h2load's time begins with the first connect, so it holds 1,000 TLS handshakes; the article takes it to begin after them.",
    'The generator offers TLS 1.2, that cipher and these two curves only, as the article saw them.',
    'The article does not say how many cores it had: both servers get a worker per server core, nginx at least 2, since it takes no accept mutex with one.',
  ],
});
