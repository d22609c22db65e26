import { defineScenario, nginx, wrk } from '../lib/scenario/index.ts';

export default defineScenario({
  name: 'nginx-open-file-cache',
  title: 'nginx remembers open files: open_file_cache max=100 inactive=20s',
  article: { id: '000', title: 'h2o vs nginx', year: 2015 },
  knob: 'open_file_cache',
  load: wrk('-c 100 -t 10 -d 10'),
  page: { docroot: 'nginx', path: '/', bodyBytes: 612 },
  variants: [
    {
      name: 'workers',
      server: nginx(['base', 'workers'], { workers: 'server-cores', articleWorkers: 16 }),
      published: {
        rps: 624_638.51,
        transferBytesPerSecond: 505.72 * 1024 ** 2,
        latencyMs: { mean: 0.82738, sd: 2.79, max: 64.81, withinSdPercent: 94.35 },
        perThreadRps: { mean: 62_790, sd: 8_740, max: 77_950, withinSdPercent: 84.26 },
        requests: 6_308_521,
        receivedBytes: 4.99 * 1024 ** 3,
        seconds: 10.1,
      },
    },
    {
      name: 'open-file-cache',
      server: nginx(['base', 'workers', 'open-file-cache'], { workers: 'server-cores', articleWorkers: 16 }),
      published: {
        rps: 700_324.14,
        transferBytesPerSecond: 567.0 * 1024 ** 2,
        latencyMs: { mean: 0.76152, sd: 6.12, max: 138.3, withinSdPercent: 98.88 },
        perThreadRps: { mean: 70_550, sd: 8_200, max: 85_080, withinSdPercent: 87.69 },
        requests: 7_073_264,
        receivedBytes: 5.59 * 1024 ** 3,
        seconds: 10.1,
      },
    },
    {
      name: 'workers-unlimited',
      onRequest: true,
      server: nginx(['base', 'workers', 'keepalive-unlimited'], { workers: 'server-cores', articleWorkers: 16 }),
      note: 'Beyond the article: connections are not closed after 100 requests.',
    },
    {
      name: 'open-file-cache-unlimited',
      onRequest: true,
      against: 'workers-unlimited',
      server: nginx(['base', 'workers', 'open-file-cache', 'keepalive-unlimited'], { workers: 'server-cores', articleWorkers: 16 }),
      note: 'Beyond the article: connections are not closed after 100 requests.',
    },
  ],
  footnotes: [
    "The article's kernel settings (net.core.somaxconn and eleven others) are not applied here; the author doubts that they are needed.",
  ],
});
