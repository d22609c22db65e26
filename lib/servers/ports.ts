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
  const address = Buffer.from(host.split('.').map(Number).reverse()).toString('hex').toUpperCase();
  const sockets = listeningSockets(`/proc/${pid}/net/tcp`, port).filter((socket) => socket.address === address).map(({ inode }) => inode);
  return sockets.length > 0 && socketsOf(`/proc/${pid}`).some((inode) => sockets.includes(inode));
}

/** What listens on a TCP port by one of the kernel's lists (net/tcp, net/tcp6): local addresses as the list has them, and inodes. None when it cannot be read. */
export function listeningSockets(list: string, port: number): { address: string; inode: string }[] {
  const listening = '0A';
  try {
    return readFileSync(list, 'latin1').split('\n').flatMap((line) => {
      const [, local = '', , state, , , , , , inode = ''] = line.trim().split(/\s+/);
      const [address = '', hexPort = ''] = local.split(':');
      return state === listening && parseInt(hexPort, 16) === port ? [{ address, inode }] : [];
    });
  } catch {
    return [];
  }
}

/** Inodes of the sockets that a process has open. None when it has ended, or is another user's. */
export function socketsOf(folder: string): string[] {
  try {
    return readdirSync(`${folder}/fd`).flatMap((descriptor) => /^socket:\[(\d+)\]$/.exec(linkOf(`${folder}/fd/${descriptor}`))?.[1] ?? []);
  } catch {
    return [];
  }
}

function linkOf(file: string): string {
  try {
    return readlinkSync(file);
  } catch {
    return ''; // Closed since it was listed.
  }
}
