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
