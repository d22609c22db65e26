// What goes to other hosts, and what comes back with their clocks.
import { once } from 'node:events';
import { mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { measureLink } from '../../lib/hosts/link.ts';
import { filesOf } from '../../lib/hosts/server-host.ts';
import type { LoadResult } from '../../lib/result/result.ts';
import { byOurClocks, recordByOurClock } from '../../lib/runner/k6-there.ts';
import { newFolder } from '../fixtures/new-folder.ts';

test('a folder is sent with all that is in it, and what a link points to is not', async () => {
  const own = newFolder();
  mkdirSync(join(own, 'www'));
  writeFileSync(join(own, 'a.conf'), 'events {}', { mode: 0o600 });
  writeFileSync(join(own, 'www/index.html'), 'hello', { mode: 0o644 });
  symlinkSync('/etc/passwd', join(own, 'elsewhere'));
  const files = await filesOf(own, 'web1');
  expect(files.sort((a, b) => (a.path < b.path ? -1 : 1))).toEqual([
    { path: 'a.conf', mode: 0o600, base64: Buffer.from('events {}').toString('base64') },
    { path: 'elsewhere', link: '/etc/passwd' },
    { path: 'www/index.html', mode: 0o644, base64: Buffer.from('hello').toString('base64') },
  ]);
});

test('no home is sent, and no folder that is too large', async () => {
  for (const one of [homedir(), '/tmp', '/']) await expect(filesOf(one, 'web1')).rejects.toThrow(`${one} would be sent to web1 with all that is in it: put the config`);
  const own = newFolder();
  writeFileSync(join(own, 'large'), Buffer.alloc(20_000_001));
  await expect(filesOf(own, 'web1')).rejects.toThrow('which is more than 2000 files or 20 MB');
  rmSync(join(own, 'large'));
  for (let file = 0; file <= 2000; file++) writeFileSync(join(own, String(file)), '');
  await expect(filesOf(own, 'web1')).rejects.toThrow('which is more than 2000 files or 20 MB');
});

test('times of another host are as this machine\'s clocks have them', () => {
  const ahead = { monotonicMs: 500, wallMs: 2500.4 };
  expect(recordByOurClock('{"data":{"time":"2026-01-01T00:00:01.123456789Z","value":1}}\n{"data":{"time":"2026-01-01T02:00:01+02:00"}}', ahead)).toBe(
    '{"data":{"time":"2025-12-31T23:59:58.623456789Z","value":1}}\n{"data":{"time":"2025-12-31T23:59:58.500000000Z"}}',
  );
  const result = { startedAt: '2026-01-01T00:00:05.000Z', endedAt: '2026-01-01T00:00:06.000Z', monotonicMs: [1500, 2500] } as unknown as LoadResult;
  expect(byOurClocks([{ results: [result] }], { ...ahead, wallMs: 2500 })).toEqual([
    { results: [{ startedAt: '2026-01-01T00:00:02.500Z', endedAt: '2026-01-01T00:00:03.500Z', monotonicMs: [1000, 2000] }] },
  ]);
});

test.each(['resetAndDestroy', 'destroy'] as const)('a link that is cut while it is measured is told, and ends nothing else: %s', async (cut) => {
  const server = createServer((socket) => {
    // Round trips are echoed; what is sent in bulk is too much for it.
    socket.on('data', (data) => (data.length > 1 ? socket[cut]() : socket.write(data)));
  }).listen(0, '127.0.0.1');
  onTestFinished(() => void server.close());
  await once(server, 'listening');
  await expect(measureLink({ address: '127.0.0.1', port: (server.address() as AddressInfo).port })).rejects.toThrow(/ECONNRESET|EPIPE|the connection was cut/);
});
