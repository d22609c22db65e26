// What npm run bench compares: loads, generators, and how much of its peer's CPU or memory the load engine may need.
import { join } from 'node:path';
import { nginx } from '../lib/scenario/index.ts';
import type { Page, ConfiguredServer } from '../lib/scenario/model.ts';
import {
  ab,
  h2load,
  loadgen,
  loadgenOfTen,
  loadgenWithoutStart,
  stockK6,
  streamingLoadgen,
  twoLoadgens,
  wrk,
  type BenchLoad,
  type Contender,
  type RunLength,
} from './contenders.ts';
import type { Arrangement, Limits, Unit } from './ratios.ts';

export interface Experiment {
  /** As a person names it; the words before its dashes name all that begin with them. */
  name: string;
  title: string;
  server: ConfiguredServer;
  page: Page;
  load: Omit<BenchLoad, 'length'>;
  /** @param seconds what the person wants a run to take; counts are chosen to take about as long */
  length(seconds: number): RunLength;
  /** What the CPU is divided by. */
  unit: Unit;
  /** @param rounds that the person wants */
  rounds?(rounds: number): number;
  arrangements: readonly Arrangement[];
  /** The first one is measured, the second is its peer, others stand beside. */
  contenders: readonly [Contender, Contender, ...Contender[]];
  limits(arrangement: Arrangement): Limits;
}

const both: readonly Arrangement[] = ['a core each', 'one core'];
const timed = (seconds: number): RunLength => ({ seconds });

/** nginx at its fastest: what a generator has to keep up with. */
const fastest = ['base', 'workers', 'open-file-cache', 'tcp-nopush', 'keepalive-unlimited'];
const plainNginx = nginx(fastest, { workers: 1 });
export const tlsLayer = join(import.meta.dirname, 'nginx-tls.conf');
const tlsNginx = nginx([...fastest, tlsLayer], { workers: 1 });

const manyNginx = nginx([...fastest, join(import.meta.dirname, 'nginx-many.conf')], { workers: 1 });

export const smallPage: Page = { docroot: 'nginx', path: '/', bodyBytes: 612 };
export const largePage: Page = { docroot: 'images', path: '/img.html', bodyBytes: 525_304 };

/** About what a core answers per second with a new connection each, and with a TLS handshake each. */
const newConnectionsPerSecond = 15_000;
const handshakesPerSecond = 1000;

const http1: Experiment['load'] = {
  protocol: 'http/1.1',
  connections: 100,
  streams: 1,
  keepAlive: true,
};
const h2: Experiment['load'] = { protocol: 'h2', connections: 100, streams: 100, keepAlive: true };

export const experiments: readonly Experiment[] = [
  {
    name: 'http1-keep-alive',
    title: 'HTTP/1.1, keep-alive, 100 connections',
    server: plainNginx,
    page: smallPage,
    load: http1,
    length: timed,
    unit: 'request',
    arrangements: both,
    contenders: [loadgen, wrk, stockK6],
    // Only with a core each does the server set the pace.
    limits: (arrangement) => ({ cpu: 1, ...(arrangement === 'one core' ? {} : { rps: 0.98 }) }),
  },
  {
    name: 'http1-new-connections',
    title: 'HTTP/1.0, a new connection each, 100 at a time',
    server: plainNginx,
    page: smallPage,
    load: { ...http1, protocol: 'http/1.0', keepAlive: false },
    unit: 'request',
    length: (seconds) => ({ requests: Math.round(seconds * newConnectionsPerSecond) }),
    arrangements: both,
    contenders: [loadgen, ab],
    limits: () => ({ cpu: 0.95 }),
  },
  {
    // The generator is its own peer: what ten thousand cost is what they cost more than ten. ab takes as many.
    name: 'http1-many-connections',
    title: 'HTTP/1.0, a new connection each, 10,000 at a time',
    server: manyNginx,
    page: smallPage,
    load: { ...http1, protocol: 'http/1.0', keepAlive: false, connections: 10_000 },
    unit: 'request',
    length: (seconds) => ({ requests: Math.round(seconds * newConnectionsPerSecond) }),
    arrangements: ['a core each'],
    contenders: [loadgen, loadgenOfTen, ab],
    limits: () => ({ cpu: 1.3, memoryBytes: 200e6 }),
  },
  {
    // On one core, with the database on the other: what is billed to k6 is k6's. One percent needs more pairs to be seen.
    name: 'http1-streaming',
    title: 'HTTP/1.1, keep-alive, streaming to InfluxDB',
    server: plainNginx,
    page: smallPage,
    load: http1,
    length: timed,
    unit: 'request',
    rounds: (rounds) => 2 * rounds,
    arrangements: ['one core'],
    contenders: [streamingLoadgen, loadgen],
    limits: () => ({ cpu: 1.01 }),
  },
  {
    // Both on the generator's core. k6 is started twice for it, which is not what it costs. Few percents need more pairs to be seen.
    name: 'http1-two-generators',
    title: 'HTTP/1.1, keep-alive, 100 connections of two k6',
    server: plainNginx,
    page: smallPage,
    load: http1,
    length: timed,
    unit: 'request',
    rounds: (rounds) => 2 * rounds,
    arrangements: both,
    contenders: [twoLoadgens, loadgenWithoutStart],
    limits: () => ({ cpu: 1.03 }),
  },
  {
    name: 'tls-http1',
    title: 'HTTP/1.1 over TLS, keep-alive, 100 connections',
    server: tlsNginx,
    page: smallPage,
    load: http1,
    length: timed,
    unit: 'request',
    arrangements: both,
    contenders: [loadgen, h2load],
    limits: (arrangement) => ({ cpu: arrangement === 'one core' ? 0.9 : 1 }),
  },
  {
    // k6 is started once for all of its runs, h2load for each: it makes no new connection after the first ones.
    name: 'tls-handshakes',
    title: `HTTP/2, ${handshakesPerSecond} new connections at once with a request each, again and again`,
    server: tlsNginx,
    page: smallPage,
    load: { ...h2, connections: handshakesPerSecond, streams: 1 },
    unit: 'handshake',
    length: (seconds) => ({ requests: handshakesPerSecond, runs: seconds }),
    arrangements: both,
    contenders: [loadgen, h2load],
    limits: () => ({ cpu: 1 }),
  },
  {
    name: 'h2-100x100',
    title: 'HTTP/2, 100 connections × 100 streams',
    server: tlsNginx,
    page: smallPage,
    load: h2,
    length: timed,
    unit: 'request',
    arrangements: both,
    contenders: [loadgen, h2load],
    limits: (arrangement) => ({ cpu: arrangement === 'one core' ? 0.5 : 1 }),
  },
  {
    name: 'h2-100x1',
    title: 'HTTP/2, 100 connections × 1 stream',
    server: tlsNginx,
    page: smallPage,
    load: { ...h2, streams: 1 },
    length: timed,
    unit: 'request',
    arrangements: both,
    contenders: [loadgen, h2load],
    limits: (arrangement) => ({ cpu: arrangement === 'one core' ? 0.75 : 1 }),
  },
  {
    name: 'h2-body',
    title: 'HTTP/2, a body of 525,304 bytes, 100 connections × 1 stream',
    server: tlsNginx,
    page: largePage,
    load: { ...h2, streams: 1 },
    length: timed,
    unit: 'MB of body',
    arrangements: both,
    contenders: [loadgen, h2load],
    limits: () => ({ cpu: 1 }),
  },
  {
    // However short the others: 10,000 handshakes take their time beside the requests of those that are done. Memory hardly
    // differs from round to round.
    name: 'h2-memory',
    title: 'HTTP/2, 10,000 connections open at once',
    server: tlsNginx,
    page: smallPage,
    load: { ...h2, connections: 10_000, streams: 1 },
    length: () => ({ seconds: 40 }),
    unit: 'request',
    rounds: (rounds) => Math.min(rounds, 2),
    arrangements: ['a core each'],
    contenders: [loadgen, h2load],
    limits: () => ({ memory: 0.7 }),
  },
];

/** nginx at its fastest, over HTTP/1.1. */
export const plain = { server: plainNginx, page: smallPage, load: http1 };
