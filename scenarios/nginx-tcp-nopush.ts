import { defineScenario, nginx, wrk } from '../lib/scenario/index.ts';

// accept_mutex_delay stands in both variants; it acts from 2 workers on.
const minWorkers = 2;

export default defineScenario({
  name: 'nginx-tcp-nopush',
  title: 'nginx sends headers and file in one packet: tcp_nopush on',
  article: { id: '000', title: 'h2o vs nginx', year: 2015 },
  knob: 'tcp_nopush',
  load: wrk('-c 100 -t 10 -d 10'),
  page: { docroot: 'nginx', path: '/', bodyBytes: 612 },
  variants: [
    {
      name: 'accept-mutex-delay',
      server: nginx(['base', 'workers', 'open-file-cache', 'accept-mutex-delay'], { workers: 'server-cores', articleWorkers: 16, minWorkers }),
      published: {
        rps: 714_511.56,
        transferBytesPerSecond: 578.48 * 1024 ** 2,
        latencyMs: { mean: 0.40134, sd: 2.83, max: 85.56, withinSdPercent: 98.64 },
        perThreadRps: { mean: 72_030, sd: 8_270, max: 105_770, withinSdPercent: 86.4 },
        requests: 7_216_133,
        receivedBytes: 5.71 * 1024 ** 3,
        seconds: 10.1,
      },
    },
    {
      name: 'tcp-nopush',
      server: nginx(['base', 'workers', 'open-file-cache', 'accept-mutex-delay', 'tcp-nopush'], {
        workers: 'server-cores',
        articleWorkers: 16,
        minWorkers,
      }),
      published: {
        rps: 824_799.77,
        transferBytesPerSecond: 667.78 * 1024 ** 2,
        latencyMs: { mean: 0.16309, sd: 0.99, max: 36.45, withinSdPercent: 99.12 },
        perThreadRps: { mean: 82_930, sd: 9_710, max: 110_850, withinSdPercent: 69.9 },
        requests: 8_330_029,
        receivedBytes: 6.59 * 1024 ** 3,
        seconds: 10.1,
      },
    },
  ],
  footnotes: [
    "The article's kernel settings (net.core.somaxconn and eleven others) are not applied here; the author doubts that they are needed.",
  ],
});
