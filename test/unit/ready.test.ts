import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import { createServer as createTcpServer, type AddressInfo, type Server } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { expect, it, onTestFinished } from 'vitest';
import { freePort, portProblem } from '../../lib/servers/ports.ts';
import { waitUntilReady } from '../../lib/servers/ready.ts';

/** An address of our own in 127.0.0.0/8: the ports of 127.0.0.1 come and go with other tests' connections. */
const quietAddress = '127.86.73.12';

async function listening(server: Server, port = 0, address = '127.0.0.1'): Promise<number> {
  server.listen(port, address);
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  return (server.address() as AddressInfo).port;
}

/** A port of that address on which nothing listens. */
async function closedPort(): Promise<number> {
  const server = createTcpServer();
  const port = await listening(server, 0, quietAddress);
  await new Promise((resolve) => server.close(resolve));
  return port;
}

const answering = (listener: RequestListener): Server => createServer(listener);
const never = new AbortController().signal;
const page = { path: '/', bodyBytes: 5 };

it('waits until the server is there', async () => {
  const port = await closedPort();
  const ready = waitUntilReady(`http://${quietAddress}:${port}`, page, never);
  let asked = 0;
  const server = answering((_, response) => { asked++; response.end('12345'); });
  // Refused connections come first.
  const started = delay(100).then(() => listening(server, port, quietAddress));
  await Promise.all([ready, started]);
  expect(asked).toBe(1);
});

it('tells a wrong status and a wrong length at once', async () => {
  const wrong = async (listener: RequestListener): Promise<void> => waitUntilReady(`http://127.0.0.1:${await listening(answering(listener))}`, page, never);
  await expect(wrong((_, response) => { response.statusCode = 403; response.end('12345'); })).rejects.toThrow(/answers with status 403 instead of 200$/);
  await expect(wrong((_, response) => { response.end('123456'); })).rejects.toThrow(/answers with 6 bytes instead of 5: /);
  await expect(wrong((_, response) => { response.end(); })).rejects.toThrow(/answers with 0 bytes instead of 5: /);
});

it('gives up after its limit on a server that never answers, and on one that is not there', async () => {
  const silent = await listening(createTcpServer());
  await expect(waitUntilReady(`http://127.0.0.1:${silent}`, page, never, 100)).rejects.toThrow(`http://127.0.0.1:${silent}/ did not answer within 0.1 s`);
  await expect(waitUntilReady(`http://${quietAddress}:${await closedPort()}`, page, never, 100)).rejects.toThrow(/did not answer within 0\.1 s/);
  const stalling = await listening(answering((_, response) => { response.writeHead(200, { 'content-length': 5 }).write('123'); }));
  await expect(waitUntilReady(`http://127.0.0.1:${stalling}`, page, never, 100)).rejects.toThrow(/did not answer within 0\.1 s/);
});

it("stops waiting with the signal's reason", async () => {
  const silent = await listening(createTcpServer());
  const controller = new AbortController();
  const ready = waitUntilReady(`http://127.0.0.1:${silent}`, page, controller.signal);
  controller.abort(new Error('enough'));
  await expect(ready).rejects.toThrow('enough');
});

it('knows which ports are taken', async () => {
  const port = await listening(createTcpServer());
  expect((await portProblem(port))?.code).toBe('EADDRINUSE');
  expect(await portProblem(await freePort())).toBeUndefined();
});
