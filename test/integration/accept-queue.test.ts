// Connections that a full accept queue refuses, with a server that does not accept.
import { once } from 'node:events';
import { connect } from 'node:net';
import { spawn } from 'node:child_process';
import { expect, onTestFinished, test, vi } from 'vitest';
import { listenersIn, watchAcceptQueue } from '../../lib/servers/accept-queue.ts';
import type { StartedServer } from '../../lib/servers/index.ts';

async function startServer(backlog: number) {
  const script = `const s = require('net').createServer().listen({ port: 0, host: '127.0.0.1', backlog: ${backlog} }, () => console.log(s.address().port))`;
  const child = spawn(process.execPath, ['-e', script], { stdio: ['ignore', 'pipe', 'inherit'] });
  onTestFinished(() => void child.kill('SIGKILL'));
  const [port] = (await once(child.stdout, 'data')) as [Buffer];
  const { pid } = child;
  const server = { pid, origin: `http://127.0.0.1:${Number(port)}` } as StartedServer;
  return { server, child, port: Number(port) };
}

test('the overflows of a stopped server are its own, not those of another one in the same network', async () => {
  const [full, other] = await Promise.all([startServer(1), startServer(7)]);
  const read = watchAcceptQueue(full.server);
  const readOther = watchAcceptQueue(other.server);
  full.child.kill('SIGSTOP');
  for (let n = 0; n < 6; n++) {
    const socket = connect(full.port, '127.0.0.1').on('error', () => undefined);
    onTestFinished(() => void socket.destroy());
  }
  await vi.waitFor(async () => {
    const queue = await read();
    expect(queue?.backlog).toBe(1);
    expect(queue?.overflows).toBeGreaterThanOrEqual(4);
  }, 20_000);
  // The namespace has overflows now, and none of them is this server's.
  expect(await readOther()).toEqual({ overflows: 0, backlog: 7 });
});

test('what ran elsewhere, or has ended, is not known', async () => {
  expect(
    await watchAcceptQueue({ origin: 'http://127.0.0.1:1' } as StartedServer)(),
  ).toBeUndefined();
  const { server, child } = await startServer(1);
  const read = watchAcceptQueue(server);
  child.kill('SIGKILL');
  await once(child, 'exit');
  expect(await read()).toBeUndefined();
});

test('sockets are read from the words of ss', () => {
  const memory = (drops: number) => `skmem:(r0,rb131072,t0,tb16384,f0,w0,o0,bl0,d${drops})`;
  const text = `LISTEN 6      5            0.0.0.0:8080        0.0.0.0:*\n\t ${memory(1809)}\nLISTEN 0      511             [::]:8080           [::]:*     ino:5 ${memory(0)}\n`;
  expect(listenersIn(text)).toEqual([
    { backlog: 5, drops: 1809 },
    { backlog: 511, drops: 0 },
  ]);
  expect(listenersIn('')).toEqual([]);
});
