// Servers with exact waits, queues, stalls and work (servers/timed), and their expected figures under continuous load.
import { join } from 'node:path';
import { UserError } from '../../lib/errors.ts';
import { present } from '../../lib/present.ts';
import { lastLine, run } from '../../lib/process.ts';
import { command } from '../../lib/scenario/index.ts';
import type { Arrivals, CommandServer } from '../../lib/scenario/model.ts';
import { shellWord } from '../../lib/scenario/load/shell-words.ts';
import { findGo, goEnvironment } from '../../lib/setup/k6.ts';
import type { Machine } from '../../lib/setup/machine.ts';
import { closedLoad, knownPage, loadAtRate, type Known } from './known.ts';
import { chanceMs, latencyMs, type PoissonQueue } from './queue.ts';
import type { Arrangement, Expected } from './results.ts';

/** Go module of the server. */
export const timedSources = join(import.meta.dirname, 'servers', 'timed');

/** Builds servers/timed in the folder and returns the program's path. @throws UserError if Go is missing or the build fails */
export async function buildTimed(
  machine: Machine,
  folder: string,
  signal?: AbortSignal,
): Promise<string> {
  const program = join(folder, 'timed');
  const { code, stderr } = await run({
    command: (await findGo(machine)).binary,
    args: ['build', '-trimpath', '-buildvcs=false', '-o', program, '.'],
    cwd: timedSources,
    env: goEnvironment(machine.env),
    ...present({ signal }),
  });
  if (code !== 0) throw new UserError(`servers/timed does not compile: ${lastLine(stderr)}`);
  return program;
}

/** @param program from buildTimed @param options see servers/timed/main.go */
export function timed(program: string, options: string): CommandServer {
  return command(`${shellWord(program)} ${options}`);
}

/** A case that needs the program of buildTimed. */
interface Timed extends Omit<Known, 'server' | 'alone' | 'page' | 'expected'> {
  options: string;
  /** Options of the server for the load alone, if different. */
  alone?: string;
  /** Expected figures under continuous load. */
  truth(): Expected;
}

const everywhere = (seconds: number): Record<Arrangement, number> => ({
  alone: seconds,
  two: seconds,
  eight: seconds,
});

/** Requests/s of a pool at its limit. */
export const capacity = 1000;
/** CPU time of a request to a pool: more than the system calls need on a busy machine, with a sleep before each request. */
const poolCpuMicros = 200;
const poolSeconds = 3;
/** More than the longest queue below the capacity, and enough that above the capacity the queue grows in the server first. */
const poolConnections = 300;
const poolPercents = [50, 80, 90, 95, 110, 130] as const;
const isUsualPool = (percent: number, arrivals: Arrivals): boolean =>
  percent === 80 || (percent === 130 && arrivals === 'constant');
/**
 * At higher utilisation p99 includes the machine's pauses of some ms per second, because the queue after a pause takes 10 times
 * as long to drain.
 */
const mostPercentForP99 = 80;

/**
 * Expected figures of a worker pool with 1,000 requests/s of capacity. Below the capacity, evenly spaced requests never wait for
 * each other, so latency is the service time. Poisson arrivals do wait (M/D/c, see latencyMs). Above the capacity, requests/s
 * equal the capacity, and the queue grows by the difference.
 */
export function poolTruth(workers: number, percent: number, arrivals: Arrivals): Expected {
  const rate = (capacity * percent) / 100;
  const serviceMs = (1000 * workers) / capacity;
  if (rate > capacity)
    return { rps: capacity, cpuMicros: poolCpuMicros, queueGrowthPerSecond: rate - capacity };
  const always = { rps: rate, cpuMicros: poolCpuMicros, queueGrowthPerSecond: 0 };
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
      rps: Math.sqrt(rate / poolSeconds),
      p50Ms: chanceMs(queue, poolSeconds, 0.5),
      p99Ms: chanceMs(queue, poolSeconds, 0.99),
    },
  };
}

function pool(workers: number, percent: number, arrivals: 'constant' | 'poisson'): Timed {
  const rate = (capacity * percent) / 100;
  const serviceMs = (1000 * workers) / capacity;
  return {
    name: `pool of ${workers}, ${percent} %, ${arrivals}`,
    how: `${rate} requests/s to a capacity of ${capacity}/s: ${workers} × ${serviceMs} ms`,
    options: `-workers ${workers} -service ${serviceMs}ms -cpu ${poolCpuMicros}us`,
    load: loadAtRate(poolConnections, rate, arrivals),
    seconds: everywhere(poolSeconds),
    onRequest: !isUsualPool(percent, arrivals),
    truth: () => poolTruth(workers, percent, arrivals),
  };
}

/**
 * Each connection always has a request, on a core or in the wait, and none queues for a core. Together the connections make
 * 10,000 requests/s. At a higher rate the CPU time per request would be below the server's overhead for requests that arrive one
 * by one.
 */
function manyCores(cores: number, waitMs: number): Timed {
  const [connections, serviceMicros, cpuMicros] = [10 * waitMs, 50, 75];
  const eachMs = waitMs + serviceMicros / 1000;
  return {
    name: `${cores} cores, waits ${waitMs} ms`,
    how: `${connections} connections / (${serviceMicros} µs of one of ${cores} cores + ${waitMs} ms)`,
    options: `-workers ${cores} -service ${serviceMicros}us -then ${waitMs}ms -cpu ${cpuMicros}us`,
    load: closedLoad(connections),
    truth: () => ({ rps: (1000 * connections) / eachMs, p50Ms: eachMs, p99Ms: eachMs, cpuMicros }),
  };
}

/**
 * One worker with a service time of 100 µs and occasional stalls. Requests that wait at that moment have the stall in their
 * latency.
 */
const stalling = { serviceMicros: 100, connections: 100, cpuMicros: 50 } as const;

function stallTruth(requestsBetween: number, stallMs: number): Expected {
  const { serviceMicros, connections, cpuMicros } = stalling;
  const queueMs = (connections * serviceMicros) / 1000;
  const isInP99 = connections / requestsBetween > 0.01;
  return {
    rps: (1000 * requestsBetween) / ((requestsBetween * serviceMicros) / 1000 + stallMs),
    p50Ms: queueMs,
    p99Ms: queueMs + (isInP99 ? stallMs : 0),
    cpuMicros,
  };
}

/**
 * Expected figures of a server that is limited by the CPU time of its core: each request waits for those of all connections. p99
 * has no expected value, because it depends on other processes that use the core for a moment.
 */
function busyTruth(cpuMicros: number, connections: number): Expected {
  return { rps: 1e6 / cpuMicros, p50Ms: (connections * cpuMicros) / 1000, cpuMicros };
}

const stallOptions = `-service ${stalling.serviceMicros}us -cpu ${stalling.cpuMicros}us`;

const cases: readonly Timed[] = [
  ...[1, 4].flatMap((workers) =>
    (['constant', 'poisson'] as const).flatMap((arrivals) =>
      poolPercents.map((percent) => pool(workers, percent, arrivals)),
    ),
  ),
  {
    name: 'compiles for 3 s',
    how: '140 µs of CPU time; in the first 3 s twice as much, which is no part of what a running server makes',
    options: '-cpu 140us -slow-for 3s',
    alone: '-cpu 140us',
    load: closedLoad(10),
    truth: () => busyTruth(140, 10),
  },
  {
    // The warm-up empties the bucket.
    name: 'token bucket',
    how: '500 tokens/s, of which up to 300 are kept while nobody asks; each of 50 connections waits for all',
    options: '-tokens 500 -burst 300 -cpu 300us',
    load: closedLoad(50),
    seconds: everywhere(2),
    truth: () => ({ rps: 500, p50Ms: 100, p99Ms: 100, cpuMicros: 300 }),
  },
  {
    name: 'token bucket at 600/s',
    how: '500 tokens/s, of which up to 300 are kept while nobody asks: a queue that grows by 100 requests/s',
    options: '-tokens 500 -burst 300 -cpu 300us',
    load: { ...loadAtRate(poolConnections, 600), warmupSeconds: 4 },
    seconds: everywhere(poolSeconds),
    onRequest: true,
    truth: () => ({ rps: 500, cpuMicros: 300, queueGrowthPerSecond: 100 }),
  },
  manyCores(8, 50),
  manyCores(16, 100),
  {
    // p50 lies between the latencies of the second and the third worker, so there is no expected value.
    name: 'uneven connections',
    how: '4 workers of 500 µs with 40, 30, 20 and 10 connections: all are busy, and 40 wait for the first',
    options: '-workers 4 -uneven -service 500us -cpu 50us',
    load: closedLoad(100),
    truth: () => ({ rps: 8000, p99Ms: 20, cpuMicros: 50 }),
  },
  {
    name: 'stalls each 2,000 requests',
    how: '2,000 × 100 µs, then a stall of 0.5 s, which 100 requests of 2,000 meet',
    options: `${stallOptions} -stall 500ms -stall-after 2000`,
    load: closedLoad(stalling.connections),
    // Whole periods contain the same number of stalls at any offset.
    seconds: everywhere(2.1),
    truth: () => stallTruth(2000, 500),
  },
  {
    name: 'stalls each 10 s',
    how: '8.5 s at 100 µs a request, then a stall of 1.5 s, which 100 requests of 85,000 meet',
    options: `${stallOptions} -stall 1500ms -stall-each 10s`,
    load: closedLoad(stalling.connections),
    seconds: everywhere(10),
    onRequest: true,
    truth: () => stallTruth(85_000, 1500),
  },
  {
    // Children share the core, so the kernel decides their order.
    name: 'forks',
    how: '1,500 µs of CPU time for each request, most of it in a process of its own',
    options: '-fork 1500us',
    load: closedLoad(10),
    seconds: everywhere(2),
    truth: () => ({ rps: 1e6 / 1500, cpuMicros: 1500 }),
  },
  {
    name: 'works after its answer',
    how: '50 µs of CPU time before an answer and 100 after it, of which at most 10 ms are left for later',
    options: '-cpu 50us -after 100us -backlog 10ms',
    load: closedLoad(10),
    truth: () => busyTruth(150, 10),
  },
];

/** @param program from buildTimed */
export function timedServers(program: string): Known[] {
  return cases.map(({ options, alone = options, truth, ...rest }): Known => {
    let known: Expected | undefined;
    return {
      ...rest,
      server: timed(program, options),
      alone: timed(program, alone),
      page: knownPage,
      // Computed once: the Poisson formula takes a second.
      expected: () => (known ??= truth()),
    };
  });
}
