// The experiments of npm run bench: loads, generators, and limits for the load engine's CPU time and memory as multiples of the
// peer's.
import { join } from 'node:path';
import { nginx } from '../lib/scenario/index.ts';
import type { Page, ConfiguredServer } from '../lib/scenario/model.ts';
import {
  ab,
  h2load,
  stockK6,
  wrk,
  type Generator,
  type GeneratorLoad,
  type RunLength,
} from '../lib/features/calibrate/peers.ts';
import {
  loadgen,
  loadgenOfTen,
  loadgenWithoutStart,
  streamingLoadgen,
  twoLoadgens,
} from './engine.ts';
import type { Arrangement, Limits, Unit } from './ratios.ts';

export interface Experiment {
  /** A prefix up to a dash selects all experiments that begin with it. */
  name: string;
  title: string;
  server: ConfiguredServer;
  page: Page;
  load: Omit<GeneratorLoad, 'length'>;
  /** @param seconds length of a run; request counts are chosen to take about that long */
  length(seconds: number): RunLength;
  /** CPU time is reported per this unit. */
  unit: Unit;
  /** @param rounds the requested number */
  rounds?(rounds: number): number;
  arrangements: readonly Arrangement[];
  /** The first contender is measured against the second, its peer; others are for information. */
  contenders: readonly [Generator, Generator, ...Generator[]];
  limits(arrangement: Arrangement): Limits;
}

const both: readonly Arrangement[] = ['a core each', 'one core'];
const timed = (seconds: number): RunLength => ({ seconds });

/** nginx at its fastest: the generator must keep up. */
const fastest = ['base', 'workers', 'open-file-cache', 'tcp-nopush', 'keepalive-unlimited'];
const plainNginx = nginx(fastest, { workers: 1 });
export const tlsLayer = join(import.meta.dirname, 'nginx-tls.conf');
const tlsNginx = nginx([...fastest, tlsLayer], { workers: 1 });

const manyNginx = nginx([...fastest, join(import.meta.dirname, 'nginx-many.conf')], { workers: 1 });

export const smallPage: Page = { docroot: 'nginx', path: '/', bodyBytes: 612 };
export const largePage: Page = { docroot: 'images', path: '/img.html', bodyBytes: 525_304 };

/** Approximate requests/s of one core, with a new connection per request, and with a TLS handshake per request. */
const newConnectionsPerSecond = 15_000;
const handshakesPerSecond = 1000;

const http1: Experiment['load'] = {
  protocol: 'http/1.1',
  connections: 100,
  streams: 1,
  keepAlive: true,
};
const h2: Experiment['load'] = { protocol: 'h2', connections: 100, streams: 100, keepAlive: true };

const plainly: Omit<Experiment, 'name' | 'title' | 'contenders' | 'limits'> = {
  server: plainNginx,
  page: smallPage,
  load: http1,
  length: timed,
  unit: 'request',
  arrangements: both,
};
const overTls: Omit<Experiment, 'name' | 'title' | 'limits'> = {
  ...plainly,
  server: tlsNginx,
  contenders: [loadgen, h2load],
};
/** A load of about this length, with a new connection for each request. */
const newConnections: Omit<Experiment, 'name' | 'title' | 'contenders' | 'limits'> = {
  ...plainly,
  load: { ...http1, protocol: 'http/1.0', keepAlive: false },
  length: (seconds) => ({ requests: Math.round(seconds * newConnectionsPerSecond) }),
};

export const experiments: readonly Experiment[] = [
  {
    ...plainly,
    name: 'http1-keep-alive',
    title: 'HTTP/1.1, keep-alive, 100 connections',
    contenders: [loadgen, wrk, stockK6],
    // The server is the bottleneck only if both sides have a core of their own.
    limits: (arrangement) => ({ cpu: 1, ...(arrangement === 'one core' ? {} : { rps: 0.98 }) }),
  },
  {
    ...newConnections,
    name: 'http1-new-connections',
    title: 'HTTP/1.0, a new connection each, 100 at a time',
    contenders: [loadgen, ab],
    limits: () => ({ cpu: 0.95 }),
  },
  {
    // Compares the generator with itself: 10,000 connections against 10.
    ...newConnections,
    name: 'http1-many-connections',
    title: 'HTTP/1.0, a new connection each, 10,000 at a time',
    server: manyNginx,
    load: { ...newConnections.load, connections: 10_000 },
    arrangements: ['a core each'],
    contenders: [loadgen, loadgenOfTen, ab],
    limits: () => ({ cpu: 1.3, memoryBytes: 200e6 }),
  },
  {
    // k6 runs on one core and the database on the other, so that k6's CPU time is undisturbed. A difference of 1 % needs more
    // pairs.
    ...plainly,
    name: 'http1-streaming',
    title: 'HTTP/1.1, keep-alive, streaming to InfluxDB',
    rounds: (rounds) => 2 * rounds,
    arrangements: ['one core'],
    contenders: [streamingLoadgen, loadgen],
    limits: () => ({ cpu: 1.01 }),
  },
  {
    // Both processes share the generator's core. The two starts of k6 are excluded. A difference of a few percent needs more
    // pairs.
    ...plainly,
    name: 'http1-two-generators',
    title: 'HTTP/1.1, keep-alive, 100 connections of two k6',
    rounds: (rounds) => 2 * rounds,
    contenders: [twoLoadgens, loadgenWithoutStart],
    limits: () => ({ cpu: 1.03 }),
  },
  {
    ...overTls,
    name: 'tls-http1',
    title: 'HTTP/1.1 over TLS, keep-alive, 100 connections',
    limits: (arrangement) => ({ cpu: arrangement === 'one core' ? 0.9 : 1 }),
  },
  {
    // h2load starts once per run, because it opens connections only at its start.
    ...overTls,
    name: 'tls-handshakes',
    title: `HTTP/2, ${handshakesPerSecond} new connections at once with a request each, again and again`,
    load: { ...h2, connections: handshakesPerSecond, streams: 1 },
    unit: 'handshake',
    length: (seconds) => ({ requests: handshakesPerSecond, runs: seconds }),
    limits: () => ({ cpu: 1 }),
  },
  {
    ...overTls,
    name: 'h2-100x100',
    title: 'HTTP/2, 100 connections × 100 streams',
    load: h2,
    limits: (arrangement) => ({ cpu: arrangement === 'one core' ? 0.5 : 1 }),
  },
  {
    ...overTls,
    name: 'h2-100x1',
    title: 'HTTP/2, 100 connections × 1 stream',
    load: { ...h2, streams: 1 },
    limits: (arrangement) => ({ cpu: arrangement === 'one core' ? 0.75 : 1 }),
  },
  {
    ...overTls,
    name: 'h2-body',
    title: 'HTTP/2, a body of 525,304 bytes, 100 connections × 1 stream',
    page: largePage,
    load: { ...h2, streams: 1 },
    unit: 'MB of body',
    limits: () => ({ cpu: 1 }),
  },
  {
    // 10,000 handshakes take long even if the other experiments are short. Memory hardly differs between rounds.
    ...overTls,
    name: 'h2-memory',
    title: 'HTTP/2, 10,000 connections open at once',
    load: { ...h2, connections: 10_000, streams: 1 },
    length: () => ({ seconds: 40 }),
    rounds: (rounds) => Math.min(rounds, 2),
    arrangements: ['a core each'],
    limits: () => ({ memory: 0.7 }),
  },
];

/** nginx at its fastest, over HTTP/1.1. */
export const plain = { server: plainNginx, page: smallPage, load: http1 };
