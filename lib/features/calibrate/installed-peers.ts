// The generators that are installed here, with their versions.
import { unknownWord, UserError } from '../../errors.ts';
import { present } from '../../present.ts';
import { find, thisMachine } from '../../setup/machine.ts';
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
import { versionOf } from './versions.ts';

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

/** wrk2's build is `wrk`, but has to be wrk2 in PATH. It calibrates itself for 10 s. */
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

/** Whether the generator can make the load of that server. */
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
 * Those in PATH, and the run's k6. @param asked only these; undefined: all @throws UserError, with exit code 2 for one that is not
 * installed
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
