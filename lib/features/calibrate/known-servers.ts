// Servers whose figures are known by arithmetic: what they do, the load on them, and their true figures under continuous load.
import { chanceMs, latencyMs, type PoissonQueue } from './queue.ts';
import type { Arrivals, LoadProfile } from '../../scenario/model.ts';
import { bodyBytes, closedLoad, loadAtRate, type KnownServer, type Truth } from './servers.ts';

/** As long as a run measures a rate in a round. */
const usualSeconds = 2;
/** The length of a load for servers of thousands of answers a second. */
const busySeconds = 1;

/** Each connection has an answer every `waitMs`. */
function waiting(waitMs: number, connections: number): KnownServer {
  return {
    name: `waits ${waitMs} ms`,
    how: `${connections} connections / ${waitMs} ms; of these ${waitCpuMicros} µs are CPU time`,
    options: `-then ${waitMs}ms -cpu ${waitCpuMicros}us`,
    bodyBytes,
    load: closedLoad(connections),
    seconds: usualSeconds,
    truth: () => ({
      rps: (1000 * connections) / waitMs,
      p50Ms: waitMs,
      p99Ms: waitMs,
      cpuMicros: waitCpuMicros,
    }),
  };
}
/** More than the system calls of a server that sleeps before each request. */
const waitCpuMicros = 200;

/** Requests/s of a pool at its limit. */
const capacity = 1000;
/** More connections than the longest queue below the capacity; above the capacity, the queue grows in the server first. */
const poolConnections = 300;
/**
 * Above this share of the capacity, p99 shows the pauses of a shared machine: the queue after a pause takes twenty times as long to
 * drain.
 */
const mostPercentForP99 = 90;
/** Long enough for a small random error: the longer the load, the smaller it is. */
const poissonSeconds = 3;

/**
 * Returns the figures of a pool of workers that serve 1,000 requests/s in all. Below that rate, evenly spaced requests never wait for
 * each other, so latency is the service time. Poisson arrivals do wait (M/D/c, see latencyMs). Above it, requests/s equal the capacity,
 * and the queue grows by the difference.
 */
export function poolTruth(workers: number, percent: number, arrivals: Arrivals): Truth {
  const rate = (capacity * percent) / 100;
  const serviceMs = (1000 * workers) / capacity;
  // It also works on requests that it answers only after the load.
  if (rate > capacity) return { rps: capacity, queueGrowthPerSecond: rate - capacity };
  const always = { rps: rate, cpuMicros: waitCpuMicros, queueGrowthPerSecond: 0 };
  if (arrivals === 'constant') {
    const evenly = { ...always, p50Ms: serviceMs };
    return percent > mostPercentForP99 ? evenly : { ...evenly, p99Ms: serviceMs };
  }
  const queue: PoissonQueue = { workers, serviceMs, rate };
  return {
    ...always,
    p50Ms: latencyMs(queue, 0.5),
    p99Ms: latencyMs(queue, 0.99),
    chance: {
      rps: Math.sqrt(rate / poissonSeconds),
      p50Ms: chanceMs(queue, poissonSeconds, 0.5),
      p99Ms: chanceMs(queue, poissonSeconds, 0.99),
    },
  };
}

function pool(
  workers: number,
  percent: number,
  arrivals: 'constant' | 'poisson' = 'constant',
): KnownServer {
  const rate = (capacity * percent) / 100;
  const serviceMs = (1000 * workers) / capacity;
  const evenly = arrivals === 'constant' ? '' : ', Poisson';
  return {
    name: `pool of ${workers} at ${percent} %${evenly}`,
    how: `${rate} requests/s to ${workers} × ${serviceMs} ms`,
    options: `-workers ${workers} -service ${serviceMs}ms -cpu ${waitCpuMicros}us`,
    bodyBytes,
    load: loadAtRate(poolConnections, rate, arrivals),
    seconds: arrivals === 'poisson' ? poissonSeconds : usualSeconds,
    truth: () => poolTruth(workers, percent, arrivals),
  };
}

const tenConnections = closedLoad(10);
/** The settings of most servers in the table. */
const usual = { bodyBytes, load: tenConnections, seconds: usualSeconds };

/** The figures of a server that is limited by the CPU time of its core: each request waits for those of all connections. */
function busyTruth(cpuMicros: number): Truth {
  return {
    rps: 1e6 / cpuMicros,
    p50Ms: (tenConnections.connections * cpuMicros) / 1000,
    cpuMicros,
  };
}

/** One worker with a service time of 100 µs that stalls at times. A stall lengthens the latency of one request of each connection. */
const stalling = {
  serviceMicros: 100,
  connections: 100,
  cpuMicros: 50,
  requestsBetween: 2000,
  stallMs: 500,
} as const;
function stallTruth(): Truth {
  const { serviceMicros, connections, cpuMicros, requestsBetween, stallMs } = stalling;
  const queueMs = (connections * serviceMicros) / 1000;
  return {
    rps: (1000 * requestsBetween) / ((requestsBetween * serviceMicros) / 1000 + stallMs),
    p50Ms: queueMs,
    p99Ms: queueMs + stallMs,
    cpuMicros,
  };
}

const [tailMs, tailEach, tailRate] = [500, 50, 500] as const;
const largeBytes = 50_000;

const [tlsWaitMs, tlsConnections] = [50, 50] as const;
const fewConnections = { ...closedLoad(5), command: '5 connections × 10 streams', streams: 10 };
/** Other generators have no HTTP/3 as they are installed. */
function overTls(name: string, load: LoadProfile): KnownServer {
  const front = load.protocol === 'h3' ? 'caddy' : 'nginx';
  return {
    name: `waits ${tlsWaitMs} ms, ${name}`,
    how: `${tlsConnections} requests at a time / ${tlsWaitMs} ms, behind ${front}`,
    options: `-then ${tlsWaitMs}ms -cpu 50us`,
    front,
    bodyBytes,
    load,
    seconds: usualSeconds,
    truth: () => ({ rps: (1000 * tlsConnections) / tlsWaitMs, p50Ms: tlsWaitMs }),
    ...(front === 'nginx' && { forPeers: true }),
  };
}

/** The servers in the order of the table. */
export const knownServers: readonly KnownServer[] = [
  { ...waiting(50, 50), isQuick: true, forPeers: true },
  { ...waiting(100, 100), forPeers: true },
  {
    name: 'computes 200 µs',
    how: 'one core / 200 µs; 10 connections wait for each other',
    options: '-cpu 200us',
    ...usual,
    seconds: busySeconds,
    truth: () => busyTruth(200),
    isQuick: true,
    forPeers: true,
  },
  pool(20, 50),
  { ...pool(20, 80), forPeers: true },
  pool(20, 90),
  pool(20, 95),
  { ...pool(20, 110), takesLong: true },
  { ...pool(20, 130), takesLong: true, isQuick: true, forPeers: true },
  { ...pool(1, 80, 'poisson'), isQuick: true },
  pool(4, 80, 'poisson'),
  {
    name: `1 of ${tailEach} waits ${tailMs} ms`,
    how: `${tailRate} requests/s, of which 2 % come ${tailMs} ms later: p99 is theirs`,
    options: `-then 5ms -tail ${tailMs}ms -tail-each ${tailEach} -cpu ${waitCpuMicros}us`,
    bodyBytes,
    load: loadAtRate(100, tailRate, 'constant'),
    seconds: usualSeconds,
    truth: () => ({
      rps: tailRate,
      p50Ms: 5,
      p99Ms: tailMs + 5,
      cpuMicros: waitCpuMicros,
      queueGrowthPerSecond: 0,
    }),
  },
  {
    name: 'stalls every 2,000 requests',
    how: '2,000 × 100 µs, then a stall of 0.5 s, which 100 requests of 2,000 meet',
    options: '-service 100us -cpu 50us -stall 500ms -stall-after 2000',
    bodyBytes,
    load: closedLoad(stalling.connections),
    // Whole periods have the same number of stalls wherever they begin.
    seconds: 2.1,
    truth: stallTruth,
    isQuick: true,
    forPeers: true,
  },
  {
    // The warm-up empties the bucket.
    name: '500 tokens/s',
    how: '500 answers/s, of which up to 300 are kept while nobody asks; 50 connections wait for each other',
    options: '-tokens 500 -burst 300 -cpu 300us',
    bodyBytes,
    load: closedLoad(50),
    seconds: usualSeconds,
    truth: () => ({ rps: 500, p50Ms: 100, p99Ms: 100, cpuMicros: 300 }),
  },
  {
    name: 'sends 50,000 bytes',
    how: '10 connections / 20 ms',
    options: `-then 20ms -cpu ${waitCpuMicros}us -body ${largeBytes}`,
    ...usual,
    bodyBytes: largeBytes,
    truth: () => ({ rps: 500, p50Ms: 20, cpuMicros: waitCpuMicros, bodyBytes: largeBytes }),
  },
  {
    name: 'compiles for 2 s',
    how: '140 µs of CPU time, and twice as much in the first 2 s, which are no part of a running server',
    options: '-cpu 140us -slow-for 2s',
    ...usual,
    // Longer than its slow time: nobody can know of what comes after the load.
    seconds: 3,
    takesLong: true,
    truth: () => busyTruth(140),
  },
  {
    name: 'uneven connections',
    how: '4 workers of 500 µs with 40, 30, 20 and 10 connections: all are busy, and 40 wait for the first',
    options: '-workers 4 -uneven -service 500us -cpu 50us',
    bodyBytes,
    load: closedLoad(100),
    seconds: busySeconds,
    truth: () => ({ rps: 8000, p99Ms: 20, cpuMicros: 50 }),
  },
  {
    name: '8 cores, waits 50 ms',
    how: '500 connections / (50 µs of one of 8 cores + 50 ms)',
    options: '-workers 8 -service 50us -then 50ms -cpu 75us',
    bodyBytes,
    load: closedLoad(500),
    seconds: busySeconds,
    truth: () => ({ rps: 500_000 / 50.05, p50Ms: 50.05, p99Ms: 50.05, cpuMicros: 75 }),
  },
  {
    name: 'forks',
    how: '1,500 µs of CPU time for each request, most of it in a process of its own',
    options: '-fork 1500us',
    ...usual,
    truth: () => ({ rps: 1e6 / 1500, cpuMicros: 1500 }),
  },
  {
    name: 'works after its answer',
    how: '50 µs of CPU time before an answer and 100 after it, of which at most 10 ms are left for later',
    options: '-cpu 50us -after 100us -backlog 10ms',
    ...usual,
    truth: () => busyTruth(150),
  },
  {
    name: 'works long after its answer',
    how: '50 µs of CPU time before an answer and 100 after it, of which at most 300 ms are left for later',
    options: '-cpu 50us -after 100us -backlog 300ms',
    ...usual,
    takesLong: true,
    truth: () => busyTruth(150),
  },
  {
    name: 'polls',
    how: 'one core / 200 µs, and it never waits for requests',
    options: '-cpu 200us -poll',
    ...usual,
    seconds: busySeconds,
    takesLong: true,
    truth: () => busyTruth(200),
  },
  {
    name: 'has a job each second',
    how: '100 ms of each second are for the job; 90 % of a core / 180 µs',
    options: '-cpu 180us -job 100ms -job-each 1s',
    ...usual,
    // Whole periods.
    seconds: 2,
    takesLong: true,
    truth: () => ({ rps: 5000, cpuMicros: 200 }),
  },
  {
    name: 'spins a quarter of the time',
    how: '1 of 4 ms of a core are for a thread that polls; 75 % of it / 150 µs',
    options: '-cpu 150us -job 1ms -job-each 4ms',
    ...usual,
    seconds: busySeconds,
    takesLong: true,
    truth: () => ({ rps: 5000, cpuMicros: 200 }),
  },
  {
    name: '4 processes',
    how: 'one core / 200 µs; the processes share the 20 connections',
    options: '-cpu 200us -processes 4',
    bodyBytes,
    load: closedLoad(20),
    seconds: busySeconds,
    truth: () => ({ rps: 5000, cpuMicros: 200 }),
  },
  {
    name: 'stalls 2 s of each 10 s',
    how: '8 of 10 s / 1 ms; 0.2 % of the requests meet the stall',
    options: '-service 1ms -cpu 200us -stall 2s -stall-each 10s',
    bodyBytes,
    load: closedLoad(20),
    seconds: 10,
    takesLong: true,
    // p99 has the pauses of a shared machine.
    truth: () => ({ rps: 800, p50Ms: 20, cpuMicros: 200 }),
  },
  {
    name: '500 tokens/s, asked for 800',
    how: '500 answers/s, of which up to 300 are kept; the queue grows by the rest',
    options: '-tokens 500 -burst 300 -cpu 300us',
    bodyBytes,
    load: loadAtRate(poolConnections, 800, 'constant'),
    seconds: usualSeconds,
    takesLong: true,
    truth: () => ({ rps: 500, queueGrowthPerSecond: 300 }),
  },
  overTls('HTTP/1.1 over TLS', closedLoad(tlsConnections)),
  overTls('HTTP/2 over TLS', { ...fewConnections, protocol: 'h2' }),
  overTls('HTTP/3', { ...fewConnections, protocol: 'h3' }),
];
