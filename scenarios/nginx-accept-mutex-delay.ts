import { defineScenario, nginx, wrk } from '../lib/scenario/index.ts';

// With one worker nginx takes no accept mutex, and there is nothing to delay.
const minWorkers = 2;

export default defineScenario({
  name: 'nginx-accept-mutex-delay',
  title: 'nginx waits less for its turn to accept: accept_mutex_delay 100ms',
  article: { id: '000', title: 'h2o vs nginx', year: 2015 },
  knob: 'accept_mutex_delay 100ms',
  load: wrk('-c 100 -t 10 -d 10'),
  page: { docroot: 'nginx', path: '/', bodyBytes: 612 },
  variants: [
    {
      name: 'open-file-cache',
      server: nginx(['base', 'workers', 'open-file-cache'], { workers: 'server-cores', articleWorkers: 16, minWorkers }),
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
  ],
  footnotes: [
    "The article's kernel settings (net.core.somaxconn and eleven others) are not applied here; the author doubts that they are needed.",
    'accept_mutex is on in both, as it was by default in nginx 1.8.0, with at least 2 workers: with one, nginx leaves it out.',
  ],
});
