// Builds, starts and loads the servers whose figures are known, and says what is known of one.
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

/** What is measured of a server. Times are in milliseconds, CPU time is in microseconds per response. */
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
  /** The random error of one load's figures if requests arrive at random (root mean square, in the figure's unit). */
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
  bodyBytes: number;
  load: LoadProfile;
  /** Computed when asked for: a queue's formula takes a second. */
  truth(): Truth;
  /** Length of a measurement. */
  seconds: number;
  /** It takes long to warm up or to empty its queue, so it is left out of turns of eight. */
  takesLong?: true;
  /** One of the few of `--quick`. */
  isQuick?: true;
  /** The generators that people know load it too. */
  forPeers?: true;
}

/** A Go module. */
export const serverSources = join(projectRoot, 'lib/features/calibrate/server');
/** Length of the usual body. */
export const bodyBytes = 612;
export const knownPage: Page = { path: '/', bodyBytes };

/**
 * Builds the server in the folder and returns the program's path.
 * @throws UserError if Go is missing or the build fails
 */
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

/**
 * Returns a server that passes requests on to `origin`, with TLS, HTTP/2 and (caddy) HTTP/3.
 * @param folder receives the config
 */
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

export function closedLoad(connections: number, durationSeconds = 1): LoadProfile {
  return {
    command: `${connections} connections`,
    protocol: 'http/1.1',
    connections,
    threads: 1,
    keepAlive: true,
    durationSeconds,
  };
}

export function loadAtRate(
  connections: number,
  rate: number,
  arrivals: Arrivals,
  seconds = 1,
): LoadProfile {
  const { durationSeconds: _, ...load } = closedLoad(connections);
  return {
    ...load,
    command: `${rate} requests/s, ${connections} connections`,
    rate,
    arrivals,
    requests: rate * seconds,
  };
}
