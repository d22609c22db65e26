// Servers that wait, queue, stall or compute by arithmetic (servers/timed), and what continuous load of them comes to.
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

/** Its Go module. */
export const timedSources = join(import.meta.dirname, 'servers', 'timed');

/** Builds servers/timed in the folder, and returns its path. @throws UserError without Go, or if it does not compile */
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

/** @param program of buildTimed @param options as servers/timed/main.go has them */
export function timed(program: string, options: string): CommandServer {
  return command(`${shellWord(program)} ${options}`);
}

/** One that needs the program of buildTimed. */
interface Timed extends Omit<Known, 'server' | 'alone' | 'page' | 'expected'> {
  options: string;
  /** Of the server to load alone, if it is another one. */
  alone?: string;
  /** Of continuous load. */
  truth(): Expected;
}

const everywhere = (seconds: number): Record<Arrangement, number> => ({
  alone: seconds,
  two: seconds,
  eight: seconds,
});

/** Requests/s of a pool that is at its limit. */
export const capacity = 1000;
/** Of a request to a pool: more than its system calls need, with a sleep before each, on a busy machine. */
const poolCpuMicros = 200;
const poolSeconds = 3;
/** More than the longest queue below the capacity, and so many that one above it grows in the server first. */
const poolConnections = 300;
const poolPercents = [50, 80, 90, 95, 110, 130] as const;
const isUsualPool = (percent: number, arrivals: Arrivals): boolean =>
  percent === 80 || (percent === 130 && arrivals === 'constant');
/** Above, a pause of the machine of some ms, which every second has, is in p99: the queue that it leaves takes 10 times as long to go. */
const mostPercentForP99 = 80;

/**
 * A pool of workers that each take a request for workers / 1,000/s. Evenly spread requests below the capacity never wait for each
 * other: their latency is the service time. Those of a Poisson process do (M/D/c, see latencyMs). Above the capacity requests/s are
 * the capacity, and the queue grows by the rest.
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
 * Each connection has a request with one of the cores or waiting all the time, and never for a core. Together they make 10,000
 * requests/s: of more, the CPU time would be less than what the server needs where its requests come one by one.
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

/** One worker of 100 µs that stops now and then. Of the requests, those that wait at that moment have the stall in their latency. */
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
 * A server at its limit: a core of its own makes so many requests of so much CPU time, and each waits for those of all connections.
 * Its p99 is that of whatever else uses the core for a moment.
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
    // What was left in the bucket goes in the warm-up.
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
    // p50 lies between the second worker's latency and the third's, and has no truth.
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
    // Whole stretches have as many stalls wherever they begin.
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
    // Children share the core, so their order is the kernel's.
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

/** @param program of buildTimed */
export function timedServers(program: string): Known[] {
  return cases.map(({ options, alone = options, truth, ...one }): Known => {
    let known: Expected | undefined;
    return {
      ...one,
      server: timed(program, options),
      alone: timed(program, alone),
      page: knownPage,
      // Poisson's takes a second.
      expected: () => (known ??= truth()),
    };
  });
}
