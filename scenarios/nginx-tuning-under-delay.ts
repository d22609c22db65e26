import {
  ab,
  defineScenario,
  nginx,
  type LoadProfile,
  type NetworkSpec,
  type Published,
} from '../lib/scenario/index.ts';
import article from './articles/004.ts';

// Exported for the scenario that asks what of this table is the network's queue.
export { article };
export const page = { docroot: 'nginx', path: '/', bodyBytes: 612 };

/**
 * The article's load; all its requests take 12 minutes for each variant and round, so a part of that unless --exact. ab's
 * time-out (30 s) is for all connections together: a single one goes on as long as the kernel tries, 127 s by its counts.
 * @param expectedRps with the last requests, which wait as long as that
 */
export const loadWith = (
  connections: number,
  secondsHere: number,
  expectedRps: number,
): LoadProfile => ({
  ...ab(`-c ${connections} -n 1000000 -r`),
  timeoutSeconds: 130,
  warmupSeconds: 3,
  secondsHere,
  expectedRps,
});

export const network: NetworkSpec = {
  toServer: { delayMs: 100, queuePackets: 1000 },
  toClient: { delayMs: 0 },
  serverSettings: ['centos-7'],
  clientSettings: ['generator'],
};

/** The packets in the article's two dumps of one request. */
export const packets = {
  untuned: {
    toServer: { syn: 1, ack: 3, data: 1, fin: 1 },
    toClient: { synAck: 1, ack: 2, data: 1, dataFin: 1 },
  },
  tcpNopush: {
    toServer: { syn: 1, ack: 2, data: 1, fin: 1 },
    toClient: { synAck: 1, ack: 2, dataFin: 1 },
  },
};

export const published = {
  untuned: { rps: 2211, errorsPerMillion: 363, packetsPerRequest: 11 },
  acceptMutexDelay: { rps: 2185, errorsPerMillion: 357, effect: 'none' },
  // The idle share is the least of its vmstat, with tcp_nopush on.
  tcpNopush: {
    rps: 2431,
    errorsPerMillion: 174,
    packetsPerRequest: 9,
    serverIdleShare: 0.84,
    effect: 'yes',
  },
  accessLogOff: { rps: 2196, errorsPerMillion: 711, effect: 'none' },
  kernelSettings: { rps: 2130, errorsPerMillion: 558, effect: 'none' },
} as const satisfies Record<string, Published>;

// A t2.micro has one core, and the package one worker.
export const workers = { workers: 1 } as const;

export const footnotes = [
  "Client and server are in network namespaces of the run's own, the server's with CentOS 7's kernel settings. The delay is on the client's way to " +
    "the server: in the article's packet dump, taken on the server, the SYN-ACK leaves 37 µs after the SYN, and its ACK comes 100.7 ms later.",
  'The limit of 1000 packets in the queue is our reading: the article names tc only, and 1000 is what its netem has unless told otherwise. ' +
    'With 100 ms of delay that lets 10,000 packets/s through.',
  'Without --exact a round is a window of the load, which is even from its third second on. Errors take longer to come: nginx gives up on a request ' +
    "that is not there after 60 s (as in the log that the article shows), and a connection is given up after 130 s, where the kernel's own tries end.",
  "The article's author saw other figures for one and the same setting: untuned 1,515 requests/s in the part before, and, tuned, 1,611 later and " +
    '2,714 after a reboot. That is more than any effect in the table.',
  'The article does not say how many connections nginx allowed (worker_connections): 10240 here.',
];

export default defineScenario({
  name: 'nginx-tuning-under-delay',
  title: 'nginx behind 100 ms, a connection per request: four settings, each alone',
  article,
  knob: 'tuning',
  load: loadWith(10_000, 35, 1400),
  page,
  network,
  rounds: 6,
  variants: [
    { name: 'untuned', server: nginx(['packaged'], workers), published: published.untuned },
    {
      name: 'accept-mutex-delay',
      server: nginx(['packaged', 'accept-mutex-delay'], workers),
      published: published.acceptMutexDelay,
      note: 'The delay is for workers that wait for each other, and there is one: the article expected no effect.',
    },
    {
      name: 'tcp-nopush',
      server: nginx(['packaged', 'tcp-nopush'], workers),
      published: published.tcpNopush,
    },
    {
      name: 'access-log-off',
      server: nginx(['packaged', 'access-log-off'], workers),
      published: published.accessLogOff,
    },
    {
      name: 'kernel-settings',
      server: nginx(['packaged'], workers),
      network: { ...network, serverSettings: [...network.serverSettings, 'article'] },
      published: published.kernelSettings,
      note: "The article's list, on the server's side only.",
    },
  ],
  footnotes,
});
