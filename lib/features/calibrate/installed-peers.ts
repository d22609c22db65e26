// The generators that are installed here, with their versions.
import { unknownWord, UserError } from '../../errors.ts';
import { present } from '../../present.ts';
import { find, thisMachine } from '../../setup/machine.ts';
import { isServerName } from '../../setup/servers.ts';
import {
  abPeer,
  h2loadPeer,
  ohaPeer,
  stockK6,
  vegetaPeer,
  wrkPeer,
  wrk2Peer,
  type PeerGenerator,
} from './peers.ts';
import type { KnownServer } from './servers.ts';
import { run } from '../../process.ts';
import { serverBuild } from '../../servers/index.ts';
import type { ToolName } from '../../setup/tools.ts';

export interface Peer {
  generator: PeerGenerator<string>;
  binary: string;
  version: string;
  /** A shorter load is none that its authors answer for. */
  leastSeconds?: number;
}

interface Program {
  generator: PeerGenerator<string>;
  /** What it can make. */
  makes: readonly ('closed' | 'rate' | 'h2')[];
  leastSeconds?: number;
}

/** wrk2 builds a program called `wrk`; it must be called wrk2 in PATH. It calibrates itself in its first 10 s. */
const programs: readonly Program[] = [
  { generator: wrkPeer, makes: ['closed'] },
  { generator: wrk2Peer, makes: ['rate'], leastSeconds: 12 },
  { generator: h2loadPeer, makes: ['closed', 'rate', 'h2'] },
  { generator: abPeer, makes: ['closed'] },
  { generator: vegetaPeer, makes: ['closed', 'rate'] },
  { generator: ohaPeer, makes: ['closed', 'rate', 'h2'] },
  { generator: stockK6, makes: ['closed', 'rate'] },
];

const peerNames = programs.map(({ generator }) => generator.name);

/** @throws UserError (exit code 2) for a name that is none of a generator */
export function requirePeerNames(names: readonly string[]): void {
  for (const name of names)
    if (!peerNames.includes(name)) throw unknownWord('generator', name, peerNames);
}

/** Returns whether the generator can make the load of that server. */
export function canLoad(
  { generator }: Pick<Peer, 'generator'>,
  { load, front }: Pick<KnownServer, 'load' | 'front'>,
): boolean {
  const makes = programs.find((program) => program.generator === generator)?.makes ?? [];
  const isOfGo = generator === vegetaPeer || generator === stockK6;
  // Over TLS Go's client chooses HTTP/2 by itself, on one connection.
  if (isOfGo && front !== undefined) return false;
  if (load.arrivals === 'poisson') return false;
  // The others' commands keep connections.
  if (!load.keepAlive) return generator === abPeer;
  if (load.protocol === 'h2') return makes.includes('h2');
  return makes.includes(load.rate === undefined ? 'closed' : 'rate');
}

/**
 * Finds the generators in PATH; k6 is the one of the run.
 * @param asked only these; undefined: all that are found
 * @throws UserError, with exit code 2 for one that is not installed
 */
export async function findPeers(
  k6: string,
  asked: readonly string[] | undefined,
  signal: AbortSignal,
): Promise<Peer[]> {
  const peers: Peer[] = [];
  for (const { generator, leastSeconds } of programs) {
    const { name, tool } = generator;
    if (asked !== undefined && !asked.includes(name)) continue;
    const binary = tool === 'k6' ? k6 : await find(tool, thisMachine());
    if (binary === undefined) {
      if (asked !== undefined)
        throw new UserError(
          `--peers ${name}: there is no ${tool} in PATH: install it, or leave it out`,
          2,
        );
      continue;
    }
    const version = await versionOf(tool, binary, signal);
    peers.push({ generator, binary, version: version ?? '', ...present({ leastSeconds }) });
  }
  return peers;
}

/** The argument with which each generator prints its version, and where the version stands in the output. */
const questions = {
  wrk: ['-v', /wrk \D*([\d.]+)/],
  wrk2: ['-v', /wrk \D*([\d.]+)/],
  ab: ['-V', /Version (\S+)/],
  h2load: ['--version', /nghttp2\/(\S+)/],
  vegeta: ['-version', /Version: *(\S+)/],
  oha: ['--version', /oha (\S+)/],
} as const satisfies Record<string, readonly [argument: string, pattern: RegExp]>;

const isAsked = (tool: string): tool is keyof typeof questions => tool in questions;

/** A program that prints its version takes milliseconds. */
const limitSeconds = 10;

/**
 * Returns the version that a tool prints; undefined for a tool whose version is found in another way (influxd).
 * @throws UserError for a program that does not end, or for one that is not the server it should be; the signal's reason
 */
export async function versionOf(
  tool: string,
  binary: string,
  signal?: AbortSignal,
): Promise<string | undefined> {
  if (tool === 'k6' || isServerName(tool)) return (await serverBuild(tool, binary, signal)).version;
  if (!isAsked(tool)) return undefined;
  const [argument, pattern] = questions[tool];
  const message = `${binary} ${argument} had not ended after ${limitSeconds} s: is it ${tool}?`;
  const { stdout, stderr } = await run({
    command: binary,
    args: [argument],
    limit: { seconds: limitSeconds, message },
    ...present({ signal }),
  });
  return pattern.exec(stdout + stderr)?.[1] ?? 'of an unknown version';
}

/**
 * Returns versions by tool name.
 * @throws as versionOf
 */
export async function toolVersions(
  binaries: Partial<Record<ToolName, string>>,
  signal: AbortSignal,
): Promise<Record<string, string>> {
  const versions: Record<string, string> = {};
  for (const [tool, binary] of Object.entries(binaries)) {
    const version = await versionOf(tool, binary, signal);
    if (version !== undefined) versions[tool] = version;
  }
  return versions;
}
