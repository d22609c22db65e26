import { defineScenario, h2load, h2o, nghttpd, nginx } from '../lib/scenario/index.ts';
import article from './articles/002.ts';
import { allSucceeded, outcomesWith } from './articles/outcomes.ts';

const cipher = 'ECDHE-RSA-AES128-GCM-SHA256';
const tls = { maxVersion: 'TLSv1.2', ciphers: [cipher], curves: ['P-256'] } as const;
const negotiated = { version: 'TLSv1.2', cipher, keyExchange: 'P-256' };

/** What h2load says of 100,000 requests that were all answered. */
// The server stays up from the first to the third.
const phases = [
  {
    rps: 221.86,
    transferBytesPerSecond: 111.22 * 1024 ** 2,
    seconds: 450.73,
    requests: 100_000,
    outcomes: allSucceeded,
    responses: { '2xx': 100_000 },
    successRatio: 1,
    errorsPerMillion: 0,
    receivedBytes: 52_562_510_160,
    headerBytes: 1_485_680,
    headerSavingsPercent: 91.84,
    bodyBytes: 52_530_400_000,
    latencyMs: { min: 56_830, max: 446_960, mean: 429_170, sd: 34_980, withinSdPercent: 98.04 },
    connectMs: { min: 561.03, max: 393_840, mean: 5300, sd: 34_220, withinSdPercent: 99.22 },
    firstByteMs: { min: 1440, max: 394_080, mean: 5890, sd: 34_190, withinSdPercent: 99.22 },
    perConnectionRps: { min: 0.22, max: 0.26, mean: 0.23, sd: 0.01, withinSdPercent: 76.47 },
    tls: negotiated,
  },
  {
    rps: 1381.7,
    transferBytesPerSecond: 106.76 * 1024 ** 2,
    seconds: 72.37,
    requests: 100_000,
    outcomes: outcomesWith(15_386),
    responses: { '2xx': 15_386, '4xx': 84_614 },
    successRatio: 0.15386,
    errorsPerMillion: 0,
    receivedBytes: 8_101_811_032,
    headerBytes: 620_554,
    headerSavingsPercent: 94.87,
    bodyBytes: 8_094_934_830,
    latencyMs: { min: 220.26, max: 69_560, mean: 11_090, sd: 24_840, withinSdPercent: 84.61 },
    connectMs: { min: 2410, max: 3500, mean: 2710, sd: 209.69, withinSdPercent: 61.67 },
    firstByteMs: { min: 2870, max: 3550, mean: 3220, sd: 178.49, withinSdPercent: 60.2 },
    perConnectionRps: { min: 1.35, max: 34.17, mean: 26.35, sd: 10.77, withinSdPercent: 84.61 },
    tls: negotiated,
  },
  {
    rps: 398.47,
    transferBytesPerSecond: 110.43 * 1024 ** 2,
    seconds: 250.96,
    requests: 100_000,
    outcomes: outcomesWith(55_272),
    responses: { '2xx': 55_272, '4xx': 44_728 },
    successRatio: 0.55272,
    errorsPerMillion: 0,
    receivedBytes: 29_060_038_344,
    headerBytes: 1_028_368,
    headerSavingsPercent: 93.13,
    bodyBytes: 29_041_267_160,
    latencyMs: { min: 388.56, max: 248_250, mean: 132_460, sd: 118_830, withinSdPercent: 55.27 },
    connectMs: { min: 1480, max: 3520, mean: 2720, sd: 186.34, withinSdPercent: 68.63 },
    firstByteMs: { min: 2750, max: 3680, mean: 3230, sd: 134.29, withinSdPercent: 66.57 },
    perConnectionRps: { min: 0.39, max: 35.69, mean: 14.2, sd: 15.37, withinSdPercent: 57.94 },
    tls: negotiated,
  },
] as const;

const workers = { workers: 'server-cores', articleWorkers: 1 } as const;

export default defineScenario({
  name: 'nghttpd-img',
  title: 'nghttpd over HTTP/2 on 525 kB, three times without a restart; its file limit',
  article,
  knob: 'the file limit',
  load: h2load('-n 100000 -c 1020 -m 1020', { tls }),
  page: { docroot: 'images', path: '/img.html', bodyBytes: 525_304 },
  phases: { count: 3, pauseSeconds: 5 },
  rounds: 1,
  variants: [
    {
      name: 'nghttpd-1024',
      server: nghttpd(['h2', 'streams-1024'], { ...workers, fileLimit: 1024 }),
      published: { ...phases[0], phases },
      note: 'With a file limit of 1024, as we think the article had it.',
    },
    {
      name: 'nghttpd-4096',
      server: nghttpd(['h2', 'streams-1024'], { ...workers, fileLimit: 4096 }),
      note: 'Beyond the article: with a file limit of 4096.',
    },
    {
      name: 'nginx-4096',
      against: 'nghttpd-4096',
      server: nginx(['h2'], { ...workers, fileLimit: 4096 }),
      note: 'Beyond the article: with a file limit of 4096.',
    },
    {
      name: 'h2o-4096',
      against: 'nghttpd-4096',
      server: h2o(['h2'], { ...workers, fileLimit: 4096 }),
      note: 'Beyond the article: with a file limit of 4096.',
    },
    {
      name: 'nginx-1024',
      onRequest: true,
      server: nginx(['h2'], { ...workers, fileLimit: 1024 }),
      note: 'Beyond the article: with a file limit of 1024.',
    },
    {
      name: 'h2o-1024',
      server: h2o(['h2'], { ...workers, fileLimit: 1024 }),
      note: 'Beyond the article: with a file limit of 1024.',
    },
  ],
  footnotes: [
    "The article gives no cause for its 4xx answers. That the server's file limit is one is our explanation: 1,020 connections leave a limit of 1024 no room for files.",
    'nghttpd keeps a page open until 2 s after its last connection, and the check that it is ready has opened it: phase 1 finds it open and has no 4xx. In the pause it is closed, and in phases 2 and 3 the connections take the last descriptors: it cannot be opened, and is answered with 404, until a connection ends.',
    '4xx answers are quick: requests/s counts them too and says nothing without the success ratio.',
    "The article's network was full (1 Gbit/s, about 111 MB/s), and its server had one core; here both sides are on one machine, over loopback.",
    'A phase at full size moves 52.5 GB, so there is one round unless --rounds says otherwise.',
    'The generator offers TLS 1.2, ECDHE-RSA-AES128-GCM-SHA256 and P-256 only, as the article saw them.',
  ],
});
