import { once } from 'node:events';
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';

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
