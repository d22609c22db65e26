// Whether a server has connections of its own, by which it may wait for a backend.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { openSync, readFileSync } from 'node:fs';
import { connect, createServer, type AddressInfo } from 'node:net';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { connectsOut } from '../../lib/servers/ports.ts';
import { newFolder } from '../fixtures/new-folder.ts';

test("connections of clients are not a server's own, and those to others are", async () => {
  const script = `
    const net = require('node:net');
    const server = net.createServer().listen(0, '127.0.0.1', () => console.error(server.address().port));
    server.on('connection', (client) => client.once('data', (port) =>
      net.connect(Number(port), '127.0.0.1').on('connect', () => client.write('connected'))));`;
  const log = join(newFolder(), 'log');
  const file = openSync(log, 'w');
  const child = spawn(process.execPath, ['-e', script], { stdio: ['ignore', file, file] });
  const backend = createServer().listen(0, '127.0.0.1');
  try {
    await once(backend, 'listening');
    const port = await vi.waitFor(() => {
      const text = readFileSync(log, 'utf8');
      expect(text).toMatch(/^\d+\n$/);
      return Number(text);
    }, 20_000);
    const client = connect(port, '127.0.0.1');
    await once(client, 'connect');
    expect(await connectsOut([child.pid as number])).toBe(false);
    client.write(String((backend.address() as AddressInfo).port));
    await once(client, 'data');
    expect(await connectsOut([child.pid as number])).toBe(true);
    client.destroy();
  } finally {
    child.kill();
    backend.close();
  }
});

test.each([
  ['none that it opened', 'socketpair(A, B, AF_UNIX, SOCK_STREAM, 0);', false],
  [
    'one, with a backend',
    'socket(A, AF_UNIX, SOCK_STREAM, 0); connect(A, sockaddr_un($ARGV[0])) or die;',
    true,
  ],
])('over unix sockets it has %s', async (_, code, isOut) => {
  const path = join(newFolder(), 'socket');
  const backend = createServer().listen(path);
  await once(backend, 'listening');
  const log = join(newFolder(), 'log');
  const file = openSync(log, 'w');
  const line = ['-MSocket', '-e', `$| = 1; ${code} print 1; sleep 60`, path];
  // Node's pipes are sockets.
  const child = spawn('perl', line, { stdio: ['ignore', file, file] });
  try {
    await vi.waitFor(() => expect(readFileSync(log, 'utf8')).toBe('1'), 20_000);
    expect(await connectsOut([child.pid as number])).toBe(isOut);
  } finally {
    child.kill();
    backend.close();
  }
});
