// Servers whose figures are known by arithmetic: what they do, the load on them, and what is true under continuous load.
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { UserError } from '../../errors.ts';
import { present } from '../../present.ts';
import { lastLine, run } from '../../process.ts';
import { command, nginx } from '../../scenario/index.ts';
import type {
  Arrivals,
  CommandServer,
  ConfiguredServer,
  LoadProfile,
  Page,
} from '../../scenario/model.ts';
import { shellWord } from '../../scenario/load/shell-words.ts';
import { goCompiler, goEnvironment } from '../../setup/k6.ts';
import type { Machine } from '../../setup/machine.ts';
import { projectRoot } from '../../setup/paths.ts';
import { chanceMs, latencyMs, type PoissonQueue } from './queue.ts';

/** What is measured of a server. Times are in milliseconds, CPU time in microseconds per response. */
export interface Figures {
  rps: number;
  p50Ms: number;
  p99Ms: number;
  /** The server's; null if unknown. */
  cpuMicros: number | null;
  /** Requests that come in a second and are not answered in it; null without a rate. */
  queueGrowthPerSecond: number | null;
  bodyBytes: number | null;
}

/** What arithmetic says; absent figures are not known. */
export type Truth = Partial<{ [Name in keyof Figures]: NonNullable<Figures[Name]> }> & {
  /** What the figures of one load are off by where requests arrive at random (root mean square). */
  chance?: Partial<Record<'rps' | 'p50Ms' | 'p99Ms', number>>;
};

export interface KnownServer {
  name: string;
  /** How its figures are calculated. */
  how: string;
  /** Flags of the server, see server/main.go. */
  options: string;
  /** What is in front of it, and passes each request on over TLS. */
  front?: 'nginx' | 'caddy';
  /** Length of a body. */
  bodyBytes: number;
  load: LoadProfile;
  /** Computed when asked for: a queue's formula takes a second. */
  truth(): Truth;
  /** Length of a measurement. */
  seconds: number;
  /** It takes long beside others, to warm up or to empty its queue: not in turns of eight. */
  takesLong?: true;
  /** One of the few of `--quick`. */
  isQuick?: true;
  /** The generators that people know load it too. */
  forPeers?: true;
}

/** A Go module. */
export const serverSources = join(projectRoot, 'lib/features/calibrate/server');
/** Length of the usual body. */
const bodyBytes = 612;
export const knownPage: Page = { path: '/', bodyBytes };

/** Builds the server in the folder and returns the program's path. @throws UserError if Go is missing or the build fails */
export async function buildServer(
  machine: Machine,
  folder: string,
  signal?: AbortSignal,
): Promise<string> {
  const program = join(folder, 'known-server');
  const { code, stderr } = await run({
    command: await goCompiler(machine),
    args: ['build', '-trimpath', '-buildvcs=false', '-o', program, '.'],
    cwd: serverSources,
    env: goEnvironment(machine.env),
    ...present({ signal }),
  });
  if (code !== 0)
    throw new UserError(`the server of known figures does not compile: ${lastLine(stderr)}`);
  return program;
}

/** @param program from buildServer */
export function commandOf(program: string, options: string): CommandServer {
  return command(`${shellWord(program)} ${options}`);
}

/** A server that passes requests on to `origin`, with TLS, HTTP/2 and (caddy) HTTP/3. @param folder receives the config */
export async function frontOf(
  front: 'nginx' | 'caddy',
  folder: string,
  name: string,
  origin: string,
): Promise<CommandServer | ConfiguredServer> {
  await mkdir(folder, { recursive: true });
  const file = join(folder, `${name}.${front}`);
  const { host } = new URL(origin);
  if (front === 'caddy') {
    await writeFile(
      file,
      `{\n admin off\n auto_https disable_redirects\n skip_install_trust\n storage file_system {$TMPDIR}/caddy\n default_bind {$HOST}\n}\nhttps://:{$PORT} {\n tls internal {\n on_demand\n }\n reverse_proxy ${host}\n}\n`,
    );
    return command(`caddy run --config ${shellWord(file)} --adapter caddyfile`, { tls: true });
  }
  await writeFile(
    file,
    `http { upstream known { server ${host}; keepalive 1000; } server { listen 443 ssl http2; ssl_certificate cert.pem; ssl_certificate_key cert.key; location / { proxy_pass http://known; proxy_http_version 1.1; proxy_set_header Connection ""; } } }\n`,
  );
  return nginx(['base', 'workers', 'keepalive-unlimited', file], { workers: 1 });
}

export function closedLoad(connections: number): LoadProfile {
  return {
    command: `${connections} connections`,
    protocol: 'http/1.1',
    connections,
    threads: 1,
    keepAlive: true,
    durationSeconds: 1,
  };
}

function loadAtRate(connections: number, rate: number, arrivals: Arrivals): LoadProfile {
  const { durationSeconds: _, ...load } = closedLoad(connections);
  return {
    ...load,
    command: `${rate} requests/s, ${connections} connections`,
    rate,
    arrivals,
    requests: rate,
  };
}

/** As long as a run measures a rate in a round. */
const usualSeconds = 2;
/** For servers of thousands of answers a second. */
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
export const capacity = 1000;
/** More than the longest queue below the capacity; above it, the queue grows in the server first. */
const poolConnections = 300;
/** At more, p99 has the pauses of a shared machine: the queue after a pause takes twenty times as long to drain. */
const mostPercentForP99 = 90;
/** Chance is the smaller, the longer the load is. */
const poissonSeconds = 3;

/**
 * Figures of a pool of workers that make 1,000 requests/s in all. Below that, evenly spaced requests never wait for each other, so
 * latency is the service time. Poisson arrivals do wait (M/D/c, see latencyMs). Above it, requests/s equal the capacity, and the
 * queue grows by the difference.
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

/** A server that is limited by the CPU time of its core: each request waits for those of all connections. */
function busyTruth(cpuMicros: number, connections: number): Truth {
  return { rps: 1e6 / cpuMicros, p50Ms: (connections * cpuMicros) / 1000, cpuMicros };
}

/** One worker with a service time of 100 µs, and a stall that the requests of all connections have in their latency. */
const stalling = { serviceMicros: 100, connections: 100, cpuMicros: 50 } as const;
function stallTruth(requestsBetween: number, stallMs: number): Truth {
  const { serviceMicros, connections, cpuMicros } = stalling;
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

/** In the order of the table. */
export const knownServers: readonly KnownServer[] = [
  { ...waiting(50, 50), isQuick: true, forPeers: true },
  { ...waiting(100, 100), forPeers: true },
  {
    name: 'computes 200 µs',
    how: 'one core / 200 µs; 10 connections wait for each other',
    options: '-cpu 200us',
    bodyBytes,
    load: closedLoad(10),
    seconds: busySeconds,
    truth: () => busyTruth(200, 10),
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
    truth: () => stallTruth(2000, 500),
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
    bodyBytes: largeBytes,
    load: closedLoad(10),
    seconds: usualSeconds,
    truth: () => ({ rps: 500, p50Ms: 20, cpuMicros: waitCpuMicros, bodyBytes: largeBytes }),
  },
  {
    name: 'compiles for 2 s',
    how: '140 µs of CPU time, and twice as much in the first 2 s, which are no part of a running server',
    options: '-cpu 140us -slow-for 2s',
    bodyBytes,
    load: closedLoad(10),
    // Longer than its slow time: nobody can know of what comes after the load.
    seconds: 3,
    takesLong: true,
    truth: () => busyTruth(140, 10),
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
    bodyBytes,
    load: closedLoad(10),
    seconds: usualSeconds,
    truth: () => ({ rps: 1e6 / 1500, cpuMicros: 1500 }),
  },
  {
    name: 'works after its answer',
    how: '50 µs of CPU time before an answer and 100 after it, of which at most 10 ms are left for later',
    options: '-cpu 50us -after 100us -backlog 10ms',
    bodyBytes,
    load: closedLoad(10),
    seconds: usualSeconds,
    truth: () => busyTruth(150, 10),
  },
  overTls('HTTP/1.1 over TLS', closedLoad(tlsConnections)),
  overTls('HTTP/2 over TLS', { ...fewConnections, protocol: 'h2' }),
  overTls('HTTP/3', { ...fewConnections, protocol: 'h3' }),
];
