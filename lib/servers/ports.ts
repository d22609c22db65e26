// Ports and addresses of this machine: free ones and the processes that listen.
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { createServer } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { UserError } from '../errors.ts';
import { textOf } from '../files.ts';
import { processIds, socketsOf } from '../process.ts';

/** `address`: IPv4, such as 127.0.0.1. */
export interface Address {
  address: string;
  port: number;
}

/** Where a backend listens. */
export type UpstreamAddress = { port: number } | { socket: string };

export const loopbackAddress = '127.0.0.1';

const octet = '(?:25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)';
const v6 = '::1|(?:0{1,4}:){7}0{0,3}1';
const loopback = new RegExp(`^(?:localhost|127(?:\\.${octet}){3}|${v6}|\\[(?:${v6})\\])$`, 'i');

/** Whether a host of a URL or a config is this machine. Accepts the usual notations only, which no resolver is asked about. */
export function isLoopback(host: string): boolean {
  return loopback.test(host);
}

/** Below the ports that the kernel gives to connections, so that no other process gets one by chance. */
const ownPorts = { first: 20_000, last: 29_999 };
export const ownPortsText = `${ownPorts.first} to ${ownPorts.last}`;
const portsTried = 100;

/** Returns a port on which nothing listens now. It is not reserved. Throws UserError if all tried ports are in use, or the error of listening. */
export async function freePort(address = loopbackAddress): Promise<number> {
  for (let tried = 1; ; tried++) {
    const port = randomInt(ownPorts.first, ownPorts.last + 1);
    const problem = await portProblem({ address, port });
    if (problem === undefined) return port;
    if (problem.code !== 'EADDRINUSE') throw problem;
    if (tried === portsTried)
      throw new UserError(
        `none of ${portsTried} ports of ${address} from ${ownPortsText} is free: end what has them (ss -tlnp)`,
      );
  }
}

/** Returns the error of listening there (EADDRINUSE, EACCES, …); undefined if a server can listen. */
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
/** A server that answers listens already. The limit is for a server whose port another process took. */
const portLimitMs = 10_000;

/** Waits until the process itself listens there, since another process may have answered. Throws UserError or the signal's reason. */
export async function untilItHasThePort(
  pid: number,
  at: Address,
  command: string,
  signal: AbortSignal,
  limitMs = portLimitMs,
): Promise<void> {
  const deadlineMs = performance.now() + limitMs;
  while (!listensOn(pid, at)) {
    signal.throwIfAborted();
    if (performance.now() >= deadlineMs) throw new UserError(noPort(pid, at, command, limitMs));
    await delay(portPollMs);
  }
}

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
    if ((error as NodeJS.ErrnoException).code === 'EACCES')
      return `${who} hides from this user whether ${address}:${port} is its own: its file has rights of its own (setcap, setuid) or cannot be read; take a copy without them (cp), or start bakeoff as root`;
  }
  return `${who} does not listen on ${address}:${port} within ${limitMs / 1000} s, where somebody else answers: end that, or see why it waits`;
}

/** Whether a process listens there, in its own network namespace. */
export function listensOn(pid: number, at: Address): boolean {
  return listeningOf(pid).some((one) => isAt(one, at));
}

export function isAt(one: Address, { address, port }: Address): boolean {
  return one.address === address && one.port === port;
}

export interface Listening extends Address {
  inode: string;
}

export function listeningOf(pid: number | string): Listening[] {
  const own = new Set(socketsOf(`/proc/${pid}`));
  return own.size === 0
    ? []
    : listeningSockets(`/proc/${pid}`).filter(({ inode }) => own.has(inode));
}

/** Throws UserError with `whatToDo` if others on the network can reach one of the sockets. */
export function requireLoopback(found: readonly Listening[], who: string, whatToDo: string): void {
  const open = found.find(({ address }) => !/^127\.|^::1$/.test(address));
  if (open !== undefined)
    throw new UserError(
      `${who} listens on ${hostAndPort(open)}, where others on the network can reach it: ${whatToDo}`,
    );
}

/** The ids of the processes that have the socket that listens there, in this network namespace. */
export function holdersOf(at: Address): string[] {
  const inode = listeningSockets('/proc/self').find((one) => isAt(one, at))?.inode;
  return inode === undefined
    ? []
    : processIds('/proc').filter((pid) => socketsOf(`/proc/${pid}`).includes(inode));
}

export function hostAndPort({ address, port }: Address): string {
  return `${address.includes(':') ? `[${address}]` : address}:${port}`;
}

/** All listening TCP sockets of a network namespace. `folder`: /proc, or a process's folder in it. */
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

/** The kernel writes an address as 32-bit words in its own byte order. */
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
