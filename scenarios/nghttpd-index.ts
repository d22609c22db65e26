import { defineScenario, h2load, h2o, nghttpd, nginx } from '../lib/scenario/index.ts';
import article from './articles/002.ts';
import { allSucceeded } from './articles/outcomes.ts';

const cipher = 'ECDHE-RSA-AES128-GCM-SHA256';
const tls = { maxVersion: 'TLSv1.2', ciphers: [cipher], curves: ['P-256'] } as const;

export default defineScenario({
  name: 'nghttpd-index',
  title: 'nghttpd over HTTP/2 on 612 bytes, 50 requests at once; nginx and h2o beside it',
  article,
  knob: 'the server',
  load: h2load('-n 100000 -c 50 -m 50', { tls }),
  page: { docroot: 'nginx', path: '/', bodyBytes: 612 },
  variants: [
    {
      name: 'nghttpd',
      server: nghttpd(['h2', 'streams-1024'], { workers: 'server-cores', articleWorkers: 1 }),
      published: {
        rps: 61_841.2,
        transferBytesPerSecond: 37.81 * 1024 ** 2,
        seconds: 1.62,
        requests: 100_000,
        outcomes: allSucceeded,
        responses: { '2xx': 100_000 },
        successRatio: 1,
        errorsPerMillion: 0,
        receivedBytes: 64_106_550,
        headerBytes: 1_105_350,
        headerSavingsPercent: 93.82,
        bodyBytes: 61_200_000,
        latencyMs: { min: 12.82, max: 97.39, mean: 33.33, sd: 9.64, withinSdPercent: 89.78 },
        connectMs: { min: 240.24, max: 282.18, mean: 259.5, sd: 12.82, withinSdPercent: 54 },
        firstByteMs: { min: 283.93, max: 336.99, mean: 309.15, sd: 15.1, withinSdPercent: 56 },
        perConnectionRps: {
          min: 1237.36,
          max: 1255.62,
          mean: 1244.26,
          sd: 3.76,
          withinSdPercent: 66,
        },
        tls: { version: 'TLSv1.2', cipher, keyExchange: 'P-256' },
      },
    },
    {
      name: 'nginx',
      server: nginx(['h2'], { workers: 'server-cores', articleWorkers: 1 }),
      note: 'Beyond the article: the same work, with keepalive_requests raised, since a connection carries 2,000 requests.',
    },
    {
      name: 'h2o',
      server: h2o(['h2'], { workers: 'server-cores', articleWorkers: 1 }),
      note: 'Beyond the article: the same work.',
    },
  ],
  footnotes: [
    "The article's generator was a second host on 1 Gbit/s, its server had one core; here both are on one machine, over loopback.",
    'The generator offers TLS 1.2, ECDHE-RSA-AES128-GCM-SHA256 and P-256 only, as the article saw them.',
  ],
});
