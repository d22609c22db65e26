import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { createServer } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { UserError } from '../errors.ts';
import { processIds, socketsOf } from '../process.ts';
import { textOf } from '../files.ts';

/** `address`: IPv4, as 127.0.0.1. */
export interface Address {
  address: string;
  port: number;
}

/** This machine alone reaches it. */
export const loopbackAddress = '127.0.0.1';

const octet = '(?:25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)';
const v6 = '::1|(?:0{1,4}:){7}0{0,3}1';
const loopback = new RegExp(`^(?:localhost|127(?:\\.${octet}){3}|${v6}|\\[(?:${v6})\\])$`, 'i');

/**
 * Whether a host, as a URL or a config has it, is this machine only. Only what no resolver is asked about: 127.0.0.1 as it is
 * usually written, also where another notation (127.1, 0x7f000001, ::ffff:127.0.0.1, a dot at the end) or name (a.localhost) may
 * mean the same.
 */
export function isLoopback(host: string): boolean {
  return loopback.test(host);
}

/** Below those that the kernel gives to connections and to whoever asks for any port: nobody else comes to have one by chance. */
const ownPorts = { first: 20_000, last: 29_999 };
/** For who has to let them through. */
export const ownPortsText = `${ownPorts.first} to ${ownPorts.last}`;
const portsTried = 100;

/**
 * A port of this machine's address on which nothing listens now. It is not reserved: whoever starts a server on it has to cope with losing it.
 * @throws UserError where all that were tried are taken, or what listening on the last one ended with
 */
export async function freePort(address = loopbackAddress): Promise<number> {
  for (let tried = 1; ; tried++) {
    const port = randomInt(ownPorts.first, ownPorts.last + 1);
    const problem = await portProblem({ address, port });
    if (problem === undefined) return port;
    if (tried === portsTried)
      throw problem.code === 'EADDRINUSE'
        ? new UserError(
            `none of ${portsTried} ports of ${address} from ${ownPortsText} is free: end what has them (ss -tlnp)`,
          )
        : problem;
  }
}

/** Why nothing can listen there (code EADDRINUSE, EACCES, …); undefined when a server can. */
export async function portProblem({
  address,
  port,
}: Address): Promise<NodeJS.ErrnoException | undefined> {
  const server = createServer().listen(port, address);
  try {
    await once(server, 'listening');
  } catch (error) {
    return error as NodeJS.ErrnoException;
  }
  await new Promise((resolve) => server.close(resolve));
  return undefined;
}

const portPollMs = 20;
/** A server that answers listens already: this is for one whose port another process answers on. */
const portLimitMs = 10_000;

/**
 * Waits until it is this process that listens there. The answer that came from there may have been another server's, that took the
 * port first: ours does not come to have it then.
 * @param command what the process runs, for the message
 * @throws UserError when it does not within the limit, or this user may not see whether it does; the signal's reason
 */
export async function untilItHasThePort(
  pid: number,
  at: Address,
  command: string,
  signal: AbortSignal,
  limitMs = portLimitMs,
): Promise<void> {
  const deadline = performance.now() + limitMs;
  while (!listensOn(pid, at)) {
    signal.throwIfAborted();
    if (performance.now() >= deadline) throw new UserError(noPort(pid, at, command, limitMs));
    await delay(portPollMs);
  }
}

/** Why a process does not have a port, where another one answers. */
export function noPort(
  pid: number,
  { address, port }: Address,
  command: string,
  limitMs: number,
): string {
  const who = `${command} (pid ${pid})`;
  try {
    readdirSync(`/proc/${pid}/fd`);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EACCES') {
      return `${who} hides from this user whether ${address}:${port} is its own: its file has rights of its own (setcap, setuid) or cannot be read; take a copy without them (cp), or start bakeoff as root`;
    }
  }
  return `${who} does not listen on ${address}:${port} within ${limitMs / 1000} s, where somebody else answers: end that, or see why it waits`;
}

/** Whether it is this process that listens there, in its own network: whether a socket of its own is the one in the kernel's list. */
export function listensOn(pid: number, at: Address): boolean {
  return listeningOf(pid).some((one) => isAt(one, at));
}

export function isAt(one: Address, { address, port }: Address): boolean {
  return one.address === address && one.port === port;
}

/** A TCP socket that listens: its address as people write it, 127.0.0.1 or ::1. */
export interface Listening extends Address {
  inode: string;
}

/** Those of a process, in its own network. */
export function listeningOf(pid: number | string): Listening[] {
  const own = new Set(socketsOf(`/proc/${pid}`));
  return own.size === 0
    ? []
    : listeningSockets(`/proc/${pid}`).filter(({ inode }) => own.has(inode));
}

/** @throws UserError where others can reach what listens, with what to do about it */
export function requireLoopback(found: readonly Listening[], who: string, whatToDo: string): void {
  const open = found.find(({ address }) => !/^127\.|^::1$/.test(address));
  if (open !== undefined)
    throw new UserError(
      `${who} listens on ${hostAndPort(open)}, where others on the network can reach it: ${whatToDo}`,
    );
}

/** The ids of the processes with a socket that listens there, in this network. */
export function holdersOf(at: Address): string[] {
  const inode = listeningSockets('/proc/self').find((one) => isAt(one, at))?.inode;
  return inode === undefined
    ? []
    : processIds('/proc').filter((pid) => socketsOf(`/proc/${pid}`).includes(inode));
}

/** As URLs have it. */
export function hostAndPort({ address, port }: Address): string {
  return `${address.includes(':') ? `[${address}]` : address}:${port}`;
}

/** The kernel writes addresses as words of 32 bits in its own order of bytes. */
function addressText(hex: string): string {
  const bytes = (hex.match(/.{8}/g) ?? []).flatMap((word) => [
    ...Buffer.from(word, 'hex').reverse(),
  ]);
  const [mapped, last] = [bytes.slice(0, -4), bytes.slice(-4)];
  if (mapped.every((byte, index) => byte === (index < 10 ? 0 : 0xff))) return last.join('.');
  const words = Array.from({ length: 8 }, (_, index) =>
    ((bytes[2 * index] as number) * 256 + (bytes[2 * index + 1] as number)).toString(16),
  );
  return new URL(`http://[${words.join(':')}]`).hostname.slice(1, -1);
}

/** All of a network, by the kernel's lists. `folder`: of the proc file system, or of a process in it. None where they cannot be read. */
export function listeningSockets(folder: string): Listening[] {
  const listening = '0A';
  return ['tcp', 'tcp6']
    .flatMap((list) => textOf(`${folder}/net/${list}`).split('\n'))
    .flatMap((line) => {
      const [, local = '', , state, , , , , , inode = ''] = line.trim().split(/\s+/);
      const [address = '', hexPort = ''] = local.split(':');
      return state === listening
        ? [{ address: addressText(address), port: parseInt(hexPort, 16), inode }]
        : [];
    });
}
