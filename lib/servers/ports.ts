import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';

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
