import {
  defineScenario,
  nginx,
  type NetworkSpec,
  type Published,
  type Variant,
} from '../lib/scenario/index.ts';
import {
  article,
  footnotes,
  loadWith,
  network,
  page,
  published,
  workers,
} from './nginx-tuning-under-delay.ts';

/** With 18 rows a round of each has to be short. */
const secondsHere = 12;

interface Condition {
  name: string;
  connections: number;
  network?: NetworkSpec;
  /** Beside nginx as packaged. */
  knobs?: readonly string[];
  /** The same as in loadWith. */
  expectedRps: number;
  published?: { off?: Published; on?: Published };
  onRequest?: true;
  /** What is different from the article's own condition. */
  note?: string;
}

const limited = { delayMs: 100, queuePackets: 1000 };
const unlimited = { delayMs: 100 };
const undelayed = { delayMs: 0 };
const toServerUnlimited: NetworkSpec = { ...network, toServer: unlimited };
const toClientLimited: NetworkSpec = { ...network, toServer: undelayed, toClient: limited };
const toClientUnlimited: NetworkSpec = { ...network, toServer: undelayed, toClient: unlimited };

const conditions: readonly Condition[] = [
  {
    name: 'to-server-limit-10k',
    connections: 10_000,
    expectedRps: 1200,
    published: { off: published.untuned, on: published.tcpNopush },
  },
  { name: 'to-server-limit-1k', connections: 1000, expectedRps: 1400, note: '1,000 connections' },
  {
    name: 'to-server-no-limit-10k',
    connections: 10_000,
    network: toServerUnlimited,
    expectedRps: 12_000,
    note: 'no limit of the queue',
  },
  {
    name: 'to-server-no-limit-1k',
    connections: 1000,
    network: toServerUnlimited,
    expectedRps: 4500,
    note: 'no limit of the queue, 1,000 connections',
  },
  {
    name: 'to-client-limit-10k',
    connections: 10_000,
    network: toClientLimited,
    expectedRps: 1400,
    note: "the delay and its queue on the server's way out",
  },
  {
    name: 'to-client-limit-1k',
    connections: 1000,
    network: toClientLimited,
    expectedRps: 1400,
    note: "the delay and its queue on the server's way out, 1,000 connections",
  },
  {
    name: 'to-client-no-limit-10k',
    connections: 10_000,
    network: toClientUnlimited,
    expectedRps: 12_000,
    note: "the delay on the server's way out, no limit of the queue",
  },
  {
    name: 'to-client-no-limit-1k',
    connections: 1000,
    network: toClientUnlimited,
    expectedRps: 4500,
    note: "the delay on the server's way out, no limit of the queue, 1,000 connections",
  },
  {
    name: 'backlog-no-limit-10k',
    connections: 10_000,
    knobs: ['backlog-16384'],
    expectedRps: 12_000,
    network: {
      ...toServerUnlimited,
      serverSettings: [...network.serverSettings, 'somaxconn-16384'],
    },
    note: 'no limit of the queue, and a listen queue of 16384 instead of 128',
  },
  {
    name: 'to-server-limit-20k',
    connections: 20_000,
    expectedRps: 1200,
    onRequest: true,
    // The article has no figure for requests/s but says that they were no more.
    published: { on: { errorsPerMillion: 19_374 } },
    note: '20,000 connections',
  },
];

/** nginx without tcp_nopush under this condition, and with it. */
function pairOf({
  name,
  connections,
  network: ownNetwork,
  knobs = [],
  expectedRps,
  published: figures = {},
  onRequest,
  note,
}: Condition): Variant[] {
  const common = {
    load: loadWith(connections, secondsHere, expectedRps),
    ...(ownNetwork === undefined ? {} : { network: ownNetwork }),
    ...(onRequest === undefined ? {} : { onRequest }),
    ...(note === undefined ? {} : { note: `Beyond the article's table: ${note}.` }),
  };
  const withConfig = (
    config: readonly string[],
    printed: Published | undefined,
  ): Omit<Variant, 'name'> => ({
    ...common,
    server: nginx(config, workers),
    ...(printed === undefined ? {} : { published: printed }),
  });
  return [
    { name, against: null, ...withConfig(['packaged', ...knobs], figures.off) },
    {
      name: `${name}-nopush`,
      against: name,
      ...withConfig(['packaged', ...knobs, 'tcp-nopush'], figures.on),
    },
  ];
}

export default defineScenario({
  name: 'nginx-tuning-queue-limit',
  title: "is it tcp_nopush or the network's queue: direction, limit, connections",
  article,
  knob: 'tcp_nopush',
  load: loadWith(10_000, secondsHere, 1200),
  page,
  network,
  // 18 rows: fewer rounds than usual, so that all of it is done in half an hour.
  rounds: 5,
  variants: conditions.flatMap(pairOf),
  // What the article says of 20,000 connections.
  alsoCompare: [{ variant: 'to-server-limit-20k-nopush', against: 'to-server-limit-10k-nopush' }],
  footnotes: [
    'Rows that end in -nopush have tcp_nopush on, and are against the row without it.',
    'A request takes two round trips, so behind 100 ms 1,000 connections come to 5,000 requests/s at most: where the queue has no ' +
      'limit that sets their pace, whatever nginx does.',
    ...footnotes,
  ],
});
