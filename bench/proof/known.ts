// Servers with calculable figures; most of them wait.
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { command, nginx } from '../../lib/scenario/index.ts';
import type {
  Arrivals,
  CommandServer,
  ConfiguredServer,
  LoadProfile,
  Page,
  ServerSpec,
} from '../../lib/scenario/model.ts';
import { shellWord } from '../../lib/scenario/load/shell-words.ts';
import { smallPage } from '../experiments.ts';
import type { Arrangement, Expected, KnownFigures } from './results.ts';

/** A server and the load on it. */
export interface KnownServer {
  server: ServerSpec;
  page: Page;
  load: LoadProfile;
  /**
   * The server for the load alone, if different. In turns the engine starts a waiting server's connections one after the other.
   * Alone they start together, so that the server would answer in batches, with less CPU time per request.
   */
  alone?: ServerSpec;
  /** Length of the measurement in seconds. Default: usualSeconds. */
  seconds?: Record<Arrangement, number>;
}

export interface Known extends KnownServer {
  name: string;
  how: string;
  /** @param plain figures of the server `plain` */
  expected(alone: KnownFigures, plain: KnownFigures): Expected;
  /** A second server that each round loads alone. Default: the server itself. */
  plain?: ServerSpec;
  /** Length of the warm-up alone, in seconds. The default warm-up is too short for this server to reach full speed. */
  aloneWarmupSeconds?: number;
  /** Measured only on request, by name. */
  onRequest?: boolean;
}

/** Long enough for a precision of 1 %; all cases take 8 minutes. */
export const usualSeconds: Record<Arrangement, number> = { alone: 2, two: 2, eight: 1 };
/** For servers with fewer than 200 responses/s, and where one millisecond matters. */
const longSeconds: Record<Arrangement, number> = { alone: 2, two: 2, eight: 2 };

const layers = ['base', 'workers', 'keepalive-unlimited'];
/** The other sides: nginx with a static page. */
export const companion: KnownServer = {
  server: nginx(layers, { workers: 1 }),
  page: smallPage,
  load: { ...closedLoad(100), warmupSeconds: 0.2 },
};

const serverFolder = join(import.meta.dirname, 'servers');
const knownServer = join(serverFolder, 'known.mjs');
const { docroot: _, ...smallFile } = smallPage;
export const knownPage: Page = smallFile;

/**
 * Compiler and garbage collector threads would add to p99, so they do not run on the server's core. @param options see
 * servers/known.mjs
 */
export function known(options: string): CommandServer {
  return command(
    `${[process.execPath, '--single-threaded', '--min-semi-space-size=64', knownServer].map(shellWord).join(' ')} ${options}`,
  );
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

export function loadAtRate(
  connections: number,
  rate: number,
  arrivals: Arrivals = 'constant',
): LoadProfile {
  const { durationSeconds: _, ...load } = closedLoad(connections);
  return {
    ...load,
    command: `${rate} requests/s, ${connections} connections`,
    rate,
    arrivals,
    requests: rate,
  };
}

const asAlone = ({ p50Ms, p99Ms, cpuMicros }: KnownFigures): Expected => ({
  p50Ms,
  p99Ms,
  cpuMicros,
});

/**
 * Each connection gets a response every `waitMs` plus the overhead measured alone, which is capped at `mostOverheadMs` plus 1 %.
 */
function afterWait(
  waitMs: number,
  connections: number,
  mostOverheadMs: number,
  alone: KnownFigures,
): Expected {
  const withOverhead = (ms: number): number =>
    Math.min(Math.max(ms, waitMs), 1.01 * waitMs + mostOverheadMs);
  return {
    ...asAlone(alone),
    rps: (1000 * connections) / withOverhead(alone.meanMs),
    p50Ms: withOverhead(alone.p50Ms),
  };
}

/**
 * The responses also cost work, a third of the core in total: the CPU time per request of a nearly idle server varies by 20 % and
 * more.
 */
const waits = [
  { ms: 1, connections: 4, workMicros: 100, seconds: longSeconds },
  { ms: 20, connections: 10, workMicros: 600, seconds: longSeconds },
  { ms: 50, connections: 25, workMicros: 600, seconds: longSeconds },
  { ms: 200, connections: 100, workMicros: 600, seconds: longSeconds },
] as const;
/** nginx's regular expression backtracks over the letters: 45 take 0.2 ms, 90 take 1.5 ms. */
const nginxWork = (letters: number): string =>
  `set $letters ${'a'.repeat(letters)}; if ($letters ~ a*a*a*[bc]) { }`;

const [slowEvery, slowMs, rate] = [50, 1000, 500] as const;
const piece = { kibibytes: 200, count: 2, perSecond: 1000 } as const;
const limited = { rate: 500, connections: 50 } as const;
/** CPU time in ms that the server burns per second. */
const burnMs = 30;
/** The computing server's work per response. */
const workMicros = 140;

/** @param folder receives configs and a page @param backends origins of the backends */
export async function knownServers(
  folder: string,
  backends: Record<keyof typeof backendServers, string>,
): Promise<Known[]> {
  const www = join(folder, 'www');
  await mkdir(www, { recursive: true });
  const pieces = 1024 * piece.kibibytes * piece.count;
  const bodyBytes = pieces + 1024;
  const largePage: Page = { docroot: www, path: '/page.html', bodyBytes };
  await writeFile(join(www, 'page.html'), '.'.repeat(bodyBytes));
  const withLines = async (name: string, lines: string): Promise<ConfiguredServer> => {
    const layer = join(folder, `${name}.conf`);
    await writeFile(layer, `http { ${lines} }\n`);
    return nginx([...layers, layer], { workers: 1 });
  };
  const proxied = { waitMs: backendWaitMs, connections: 100 };
  const proxyTo = (backend: keyof typeof backendServers): Promise<ConfiguredServer> =>
    withLines(
      `proxy-${backend}`,
      `upstream backend { server ${new URL(backends[backend]).host}; keepalive ${2 * proxied.connections}; } server { location / { proxy_pass http://backend; proxy_http_version 1.1; proxy_set_header Connection ""; ${nginxWork(45)} } }`,
    );
  const limitedMs = (1000 * limited.connections) / limited.rate;
  const piecesMs = (1000 * piece.count * piece.kibibytes) / piece.perSecond;
  const downloads = 40;
  const pieceByPiece = (rate: string): string =>
    `server { location / { limit_rate ${rate}; sendfile_max_chunk ${piece.kibibytes}k; ${nginxWork(90)} } }`;
  // Like --spread: a connection's first response takes up to twice as long, depending on the last digit of the connection's
  // number.
  const rates = Array.from(
    { length: 10 },
    (_, digit) => `~^1:.*${digit}$ ${Math.round(piece.perSecond / (1 + digit / 10))}k;`,
  );
  const firstAnswersApart = `map $connection_requests:$connection $rate { default ${piece.perSecond}k; ${rates.join(' ')} } `;
  return [
    ...waits.map(({ ms, connections, workMicros, ...more }): Known => ({
      name: `waits ${ms} ms`,
      how: `${connections} connections / (${ms} ms + work of ${workMicros} µs + overhead alone)`,
      server: known(`--wait ${ms} --work ${workMicros}`),
      alone: known(`--wait ${ms} --work ${workMicros} --spread`),
      page: knownPage,
      load: { ...closedLoad(connections), warmupSeconds: Math.max(0.4, (3 * ms) / 1000) },
      ...more,
      expected: (alone) => afterWait(ms, connections, (3 * workMicros) / 1000, alone),
    })),
    {
      // The last response ends the measurement, so requests/s are below the rate.
      name: `waits ${slowMs} ms, 1 of ${slowEvery}`,
      how: `at ${rate} requests/s 2 % of the answers come after ${slowMs} ms: so p99, and p50 as alone`,
      server: known(`--wait ${slowMs} --every ${slowEvery} --work 600`),
      page: knownPage,
      load: loadAtRate(50, rate),
      seconds: { alone: 2, two: 2, eight: 1 },
      expected: (alone) => ({ ...asAlone(alone), p99Ms: slowMs }),
    },
    {
      name: 'limit_rate',
      how: `${downloads} connections / ${piecesMs} ms: ${piece.count} pieces of ${piece.kibibytes} KiB at ${piece.perSecond} KiB/s, and a last KiB at once`,
      server: await withLines('limit-rate', pieceByPiece(`${piece.perSecond}k`)),
      alone: await withLines('limit-rate-alone', `${firstAnswersApart}${pieceByPiece('$rate')}`),
      page: largePage,
      load: closedLoad(downloads),
      seconds: longSeconds,
      expected: ({ cpuMicros }) => ({
        rps: (1000 * downloads) / piecesMs,
        p50Ms: piecesMs,
        p99Ms: piecesMs,
        cpuMicros,
      }),
    },
    {
      name: 'limit_req',
      how: `rate=${limited.rate}r/s; each of ${limited.connections} connections waits for all`,
      server: await withLines(
        'limit-req',
        `limit_req_zone $binary_remote_addr zone=all:1m rate=${limited.rate}r/s; server { location / { limit_req zone=all burst=100; ${nginxWork(57)} } }`,
      ),
      page: smallPage,
      load: closedLoad(limited.connections),
      seconds: longSeconds,
      expected: ({ cpuMicros }) => ({
        rps: limited.rate,
        p50Ms: limitedMs,
        p99Ms: limitedMs,
        cpuMicros,
      }),
    },
    {
      name: 'proxy',
      how: `${proxied.connections} connections / (the backend's ${proxied.waitMs} ms + overhead alone)`,
      server: await proxyTo('inTurns'),
      alone: await proxyTo('alone'),
      page: smallPage,
      load: closedLoad(proxied.connections),
      expected: (alone) => afterWait(proxied.waitMs, proxied.connections, 1, alone),
    },
    {
      name: `burns ${burnMs} ms each second`,
      how: `${(1 - burnMs / 1000).toFixed(2)} × the same server alone that burns nothing`,
      server: known(`--work ${workMicros} --burn ${burnMs}`),
      plain: known(`--work ${workMicros}`),
      page: knownPage,
      load: closedLoad(10),
      seconds: { alone: 3, two: 3, eight: 3 },
      expected: (_, plain) => burning(burnMs / 1000, plain),
    },
    {
      name: 'keepalive_timeout 1s',
      how: `${rate} requests/s; no error and no new connection in a window`,
      server: await withLines(
        'keepalive',
        `keepalive_timeout 1s; server { location / { ${nginxWork(45)} } }`,
      ),
      page: smallPage,
      load: loadAtRate(20, rate),
      seconds: { alone: 1, two: 1, eight: 1 },
      expected: ({ cpuMicros }) => ({ rps: rate, cpuMicros, errors: 0, reconnects: 0 }),
    },
    {
      name: 'JVM',
      how: 'the HTTP server of the JDK, interpreted at first: 8 s of it alone after 10 s of load',
      // Without nodelay the second packet of a response waits 40 ms for the acknowledgement of the first.
      server: command(
        `java -Dsun.net.httpserver.nodelay=true ${shellWord(join(serverFolder, 'Jvm.java'))}`,
      ),
      page: knownPage,
      load: closedLoad(10),
      seconds: { alone: 8, two: 2, eight: 2 },
      aloneWarmupSeconds: 10,
      // Java is rarely installed.
      onRequest: true,
      expected: ({ rps, p50Ms, cpuMicros }) => ({ rps, p50Ms, cpuMicros }),
    },
  ];
}

/**
 * Expected figures of a server at its limit that spends this share of the core on other work. @param plain figures without other
 * work
 */
function burning(share: number, { rps, p50Ms, p99Ms, cpuMicros }: KnownFigures): Expected {
  return {
    rps: (1 - share) * rps,
    p50Ms,
    p99Ms,
    cpuMicros: cpuMicros === null ? null : cpuMicros / (1 - share),
  };
}

const backendWaitMs = 50;
/** The proxy's backends. */
export const backendServers = {
  inTurns: known(`--wait ${backendWaitMs}`),
  alone: known(`--wait ${backendWaitMs} --spread`),
};
export const backendPage = knownPage;

/** A waiting server against a faster, computing server. */
export const mixed = {
  how: `${workMicros} µs of work against a wait of 40 ms with 100 connections, which can make 2,500 requests/s`,
  sides: {
    waiting: {
      server: known('--wait 40'),
      alone: known('--wait 40 --spread'),
      page: knownPage,
      load: closedLoad(100),
    },
    computing: { server: known(`--work ${workMicros}`), page: knownPage, load: closedLoad(100) },
  } satisfies Record<string, KnownServer>,
};
