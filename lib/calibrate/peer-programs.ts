// The generators that are installed here, with their versions.
import { unknownWord, UserError } from '../errors.ts';
import { present } from '../present.ts';
import { run } from '../process.ts';
import { find, thisMachine } from '../setup/machine.ts';
import { ab, h2load, oha, stockK6, vegeta, wrk, wrk2, type Generator } from './peers.ts';
import type { KnownServer } from './servers.ts';

export interface Peer {
  generator: Generator<string>;
  binary: string;
  version: string;
  /** A shorter load is none that its authors answer for. */
  leastSeconds?: number;
}

interface Program {
  generator: Generator<string>;
  /** Its arguments that print the version, and where that stands. */
  version: readonly [argument: string, pattern: RegExp];
  /** What it can make. */
  makes: readonly ('closed' | 'rate' | 'h2')[];
  leastSeconds?: number;
}

/** wrk2 is built as `wrk`, and has to be called wrk2 in PATH. In its first 10 s it calibrates itself. */
const programs: readonly Program[] = [
  { generator: wrk, version: ['-v', /wrk \D*([\d.]+)/], makes: ['closed'] },
  { generator: wrk2, version: ['-v', /wrk \D*([\d.]+)/], makes: ['rate'], leastSeconds: 12 },
  {
    generator: h2load,
    version: ['--version', /nghttp2\/(\S+)/],
    makes: ['closed', 'rate', 'h2'],
  },
  { generator: ab, version: ['-V', /Version (\S+)/], makes: ['closed'] },
  {
    generator: vegeta,
    version: ['-version', /Version: *(\S*)/],
    makes: ['closed', 'rate'],
  },
  { generator: oha, version: ['--version', /oha (\S+)/], makes: ['closed', 'rate', 'h2'] },
  { generator: stockK6, version: ['version', /v(\S+)/], makes: ['closed', 'rate'] },
];

const peerNames = programs.map(({ generator }) => generator.name);

/** @throws UserError (exit code 2) for a name that is none of a generator */
export function requirePeerNames(names: readonly string[]): void {
  for (const name of names)
    if (!peerNames.includes(name)) throw unknownWord('generator', name, peerNames);
}

/** A program that prints its version takes milliseconds. */
const versionSeconds = 10;

/** Whether the generator can make the load of that server. */
export function canLoad({ generator }: Peer, { load, front }: KnownServer): boolean {
  const makes = programs.find((program) => program.generator === generator)?.makes ?? [];
  const isOfGo = generator === vegeta || generator === stockK6;
  // Over TLS Go's client chooses HTTP/2 by itself, on one connection.
  if (isOfGo && front !== undefined) return false;
  if (load.arrivals === 'poisson') return false;
  if (load.protocol === 'h2') return makes.includes('h2');
  return makes.includes(load.rate === undefined ? 'closed' : 'rate');
}

/**
 * The generators that PATH has; k6 is that of the run. @param asked only these; undefined: all that are there
 * @throws UserError, with exit code 2 for one that is not installed
 */
export async function findPeers(
  k6: string,
  asked: readonly string[] | undefined,
  signal: AbortSignal,
): Promise<Peer[]> {
  const peers: Peer[] = [];
  for (const { generator, version, leastSeconds } of programs) {
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
    const [argument, pattern] = version;
    const words = `${binary} ${argument} had not ended after ${versionSeconds} s: leave ${name} out with --peers`;
    const limit = { seconds: versionSeconds, words };
    const { stdout, stderr } = await run({ command: binary, args: [argument], limit, signal });
    const found = pattern.exec(stdout + stderr)?.[1] ?? '';
    peers.push({
      generator,
      binary,
      version: found === '' ? 'of an unknown version' : found,
      ...present({ leastSeconds }),
    });
  }
  return peers;
}
