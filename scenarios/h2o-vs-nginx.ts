import { cpus } from 'node:os';
import { defineScenario, h2o, nginx, wrk, type Published } from '../lib/scenario/index.ts';
import article from './articles/000.ts';

// Exported for the scenarios that take one step, or one number, out of this table.
export { article };
export const load = wrk('-c 100 -t 10 -d 10');
export const page = { docroot: 'nginx', path: '/', bodyBytes: 612 };

export const kernelSettings =
  "The article's kernel settings would hold for the whole machine and are not applied here, but in nginx-kernel-settings, in a network of its own: net.core.somaxconn = 32768, " +
  'net.core.netdev_max_backlog = 32768, net.ipv4.tcp_max_syn_backlog = 32768, net.ipv4.tcp_tw_recycle = 1 (gone since Linux 4.12), ' +
  'net.ipv4.tcp_tw_reuse = 1, net.ipv4.tcp_fin_timeout = 10, net.core.rmem_max = 16777216, net.core.wmem_max = 16777216, ' +
  'net.ipv4.tcp_rmem = 4096 349520 16777216, net.ipv4.tcp_wmem = 4096 65536 16777216, net.ipv4.ip_local_port_range = 1024 65535, ' +
  'net.ipv4.tcp_timestamps = 0. Its author doubts that they are needed.';

/** wrk's output for each row. Its MB and GB are powers of 1024. */
export const published = {
  h2oInitial: {
    rps: 582_269.87,
    transferBytesPerSecond: 462.01 * 1024 ** 2,
    latencyMs: { mean: 0.26578, sd: 0.76009, max: 17.04, withinSdPercent: 96.66 },
    perThreadRps: { mean: 59_040, sd: 7_090, max: 116_130, withinSdPercent: 71.93 },
    requests: 5_880_641,
    receivedBytes: 4.56 * 1024 ** 3,
    seconds: 10.1,
  },
  h2oTuned: {
    rps: 708_328.89,
    transferBytesPerSecond: 562.03 * 1024 ** 2,
    latencyMs: { mean: 0.1589, sd: 0.30295, max: 14.96, withinSdPercent: 97.11 },
    perThreadRps: { mean: 71_360, sd: 10_120, max: 106_080, withinSdPercent: 70.63 },
    requests: 7_153_711,
    receivedBytes: 5.54 * 1024 ** 3,
    seconds: 10.1,
  },
  nginxInitial: {
    rps: 53_433.93,
    transferBytesPerSecond: 43.26 * 1024 ** 2,
    latencyMs: { mean: 45.04, sd: 58.61, max: 206.35, withinSdPercent: 78.77 },
    perThreadRps: { mean: 5_520, sd: 2_770, max: 10_100, withinSdPercent: 62.83 },
    requests: 535_382,
    receivedBytes: 433.46 * 1024 ** 2,
    seconds: 10.02,
  },
  workers: {
    rps: 624_638.51,
    transferBytesPerSecond: 505.72 * 1024 ** 2,
    latencyMs: { mean: 0.82738, sd: 2.79, max: 64.81, withinSdPercent: 94.35 },
    perThreadRps: { mean: 62_790, sd: 8_740, max: 77_950, withinSdPercent: 84.26 },
    requests: 6_308_521,
    receivedBytes: 4.99 * 1024 ** 3,
    seconds: 10.1,
  },
  openFileCache: {
    rps: 700_324.14,
    transferBytesPerSecond: 567.0 * 1024 ** 2,
    latencyMs: { mean: 0.76152, sd: 6.12, max: 138.3, withinSdPercent: 98.88 },
    perThreadRps: { mean: 70_550, sd: 8_200, max: 85_080, withinSdPercent: 87.69 },
    requests: 7_073_264,
    receivedBytes: 5.59 * 1024 ** 3,
    seconds: 10.1,
  },
  acceptMutexDelay: {
    rps: 714_511.56,
    transferBytesPerSecond: 578.48 * 1024 ** 2,
    latencyMs: { mean: 0.40134, sd: 2.83, max: 85.56, withinSdPercent: 98.64 },
    perThreadRps: { mean: 72_030, sd: 8_270, max: 105_770, withinSdPercent: 86.4 },
    requests: 7_216_133,
    receivedBytes: 5.71 * 1024 ** 3,
    seconds: 10.1,
  },
  tcpNopush: {
    rps: 824_799.77,
    transferBytesPerSecond: 667.78 * 1024 ** 2,
    latencyMs: { mean: 0.16309, sd: 0.99, max: 36.45, withinSdPercent: 99.12 },
    perThreadRps: { mean: 82_930, sd: 9_710, max: 110_850, withinSdPercent: 69.9 },
    requests: 8_330_029,
    receivedBytes: 6.59 * 1024 ** 3,
    seconds: 10.1,
  },
} satisfies Record<string, Published>;

// As many as in the later steps, so that each step changes one thing; with one worker nginx takes no accept mutex.
const workers = { workers: 'server-cores', articleWorkers: 16, minWorkers: 2 } as const;

const keepsConnections =
  "h2o keeps connections open, and the article's nginx closes each one after 100 requests (keepalive_requests): " +
  'only nginx has the cost of reconnecting, which is part of every comparison of the two.';

export default defineScenario({
  name: 'h2o-vs-nginx',
  title: "h2o against nginx over HTTP/1.1, tuned step by step: the article's seven rows",
  article,
  knob: 'tuning',
  load,
  page,
  variants: [
    {
      name: 'h2o-initial',
      // Its own default: the cores of the machine, whichever of them it is given.
      server: h2o(['base'], { workers: cpus().length, articleWorkers: 36 }),
      published: published.h2oInitial,
      note: keepsConnections,
    },
    {
      name: 'h2o-tuned',
      server: h2o(['base', 'tuned'], { workers: 'server-cores', articleWorkers: 16 }),
      needsServerCores: 2,
      published: published.h2oTuned,
      note: keepsConnections,
    },
    {
      name: 'nginx-initial',
      against: 'h2o-initial',
      server: nginx(['base'], { workers: 1 }),
      published: published.nginxInitial,
      note: "The article's first nginx.conf has one worker, where h2o has a thread for each core: on one server core only the servers differ.",
    },
    {
      name: 'nginx-workers',
      against: 'nginx-initial',
      server: nginx(['base', 'workers'], workers),
      needsServerCores: 2,
      published: published.workers,
    },
    {
      name: 'nginx-open-file-cache',
      against: 'nginx-workers',
      server: nginx(['base', 'workers', 'open-file-cache'], workers),
      published: published.openFileCache,
    },
    {
      name: 'nginx-accept-mutex-delay',
      against: 'nginx-open-file-cache',
      server: nginx(['base', 'workers', 'open-file-cache', 'accept-mutex-delay'], workers),
      published: published.acceptMutexDelay,
    },
    {
      name: 'nginx-tcp-nopush',
      against: 'nginx-accept-mutex-delay',
      server: nginx(
        ['base', 'workers', 'open-file-cache', 'accept-mutex-delay', 'tcp-nopush'],
        workers,
      ),
      published: published.tcpNopush,
    },
    {
      name: 'nginx-tcp-nopush-unlimited',
      onRequest: true,
      against: 'h2o-tuned',
      server: nginx(
        [
          'base',
          'workers',
          'open-file-cache',
          'accept-mutex-delay',
          'tcp-nopush',
          'keepalive-unlimited',
        ],
        workers,
      ),
      note: 'Beyond the article: connections are not closed after 100 requests, as h2o has it.',
    },
  ],
  // What the article concludes: nginx can be tuned to match h2o, and the cache and nopush make 200,000 requests/s of it.
  alsoCompare: [
    { variant: 'nginx-tcp-nopush', against: 'h2o-tuned' },
    { variant: 'nginx-tcp-nopush', against: 'nginx-workers' },
  ],
  footnotes: [
    kernelSettings,
    "The article's servers shared 36 virtual cores with wrk; here server and generator have cores of their own, and no number of threads takes any from the generator. h2o-num-threads and nginx-workers run both on all cores.",
    'Without num-threads h2o starts a thread for each core of the machine (36 in the article). h2o-initial does so here, too, whichever cores it is given.',
    'accept_mutex is on in all rows of nginx, as it was by default in 1.8.0, and from nginx-workers on there are at least 2 workers: with one, nginx leaves it out.',
  ],
});
