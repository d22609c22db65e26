import { once } from 'node:events';
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { UserError } from '../errors.ts';

/** `address`: IPv4, as 127.0.0.1. */
export interface Address { address: string; port: number }

/** A port of 127.0.0.1 on which nothing listens now. It is not reserved: whoever starts a server on it has to cope with losing it. */
export function freePort(): Promise<number> {
  return listenOnce(0);
}

/** Why nothing can listen on that port of 127.0.0.1 (code EADDRINUSE, EACCES, …); undefined when a server can. */
export function portProblem(port: number): Promise<NodeJS.ErrnoException | undefined> {
  return listenOnce(port).then(() => undefined, (error: NodeJS.ErrnoException) => error);
}

function hex(bytes: Buffer): string {
  return bytes.toString('hex').toUpperCase();
}

async function listenOnce(port: number): Promise<number> {
  const server = createServer().listen(port, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return address.port;
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
export async function untilItHasThePort(pid: number, at: Address, command: string, signal: AbortSignal, limitMs = portLimitMs): Promise<void> {
  const deadline = performance.now() + limitMs;
  while (!listensOn(pid, at)) {
    signal.throwIfAborted();
    if (performance.now() >= deadline) throw new UserError(noPort(pid, at, command, limitMs));
    await delay(portPollMs);
  }
}

function noPort(pid: number, { address, port }: Address, command: string, limitMs: number): string {
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
export function listensOn(pid: number, { address: host, port }: Address): boolean {
  const address = `${hex(Buffer.from(host.split('.').map(Number).reverse()))}:${hex(Buffer.from([port >> 8, port & 0xff]))}`;
  const listening = '0A';
  try {
    const sockets = readFileSync(`/proc/${pid}/net/tcp`, 'latin1').split('\n').map((line) => line.trim().split(/\s+/))
      .flatMap(([, local, , state, , , , , , inode]) => local === address && state === listening ? [`socket:[${inode}]`] : []);
    return sockets.length > 0 && readdirSync(`/proc/${pid}/fd`).some((descriptor) => sockets.includes(linkOf(`/proc/${pid}/fd/${descriptor}`)));
  } catch {
    return false; // It has ended.
  }
}

function linkOf(file: string): string {
  try {
    return readlinkSync(file);
  } catch {
    return ''; // Closed since it was listed.
  }
}
