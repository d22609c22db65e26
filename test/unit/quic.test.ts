import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { udpNotes } from '../../lib/machine/usage.ts';
import { requireQuic } from '../../lib/servers/quic.ts';
import { newFolder } from '../fixtures/new-folder.ts';
import { refusalOf } from '../fixtures/refused.ts';

const never = new AbortController().signal;

/** Opens a UDP port that answers each datagram by a function. @returns the origin */
async function answering(answer: (datagram: Buffer) => Buffer | undefined): Promise<string> {
  const socket = createSocket('udp4');
  onTestFinished(() => void socket.close());
  socket.on('message', (datagram, { port, address }) => {
    const bytes = answer(datagram);
    if (bytes !== undefined) socket.send(bytes, port, address);
  });
  socket.bind(0, '127.0.0.1');
  await once(socket, 'listening');
  return `https://127.0.0.1:${socket.address().port}`;
}

/** A version negotiation packet (RFC 9000, section 17.2.1) that offers version 1, `to` the client's connection ID. */
const versions = (to: Buffer): Buffer =>
  Buffer.concat([Buffer.of(0x80, 0, 0, 0, 0, 8), to, Buffer.of(0, 0, 0, 0, 1)]);
const clientOf = (datagram: Buffer): Buffer => datagram.subarray(15, 23);

test('a QUIC server is found, even if it starts slowly', async () => {
  let asked = 0;
  const origin = await answering((datagram) => {
    expect(datagram.length).toBe(1200);
    return ++asked < 3 ? undefined : versions(clientOf(datagram));
  });
  await requireQuic(origin, never);
  expect(asked).toBe(3);
});

test.each<[string, (datagram: Buffer) => Buffer | undefined]>([
  ['says nothing', () => undefined],
  ['sends the datagram back', (datagram) => datagram],
  ['answers somebody else', () => versions(Buffer.alloc(8))],
])('a port that %s has no HTTP/3, which is detected within 3 s', async (_, answer) => {
  const origin = await answering(answer);
  const began = performance.now();
  expect(await refusalOf(requireQuic(origin, never))).toMatch(
    /^https:\S+ has no HTTP\/3: nothing answers QUIC on its UDP port \d+; turn it on/,
  );
  expect(performance.now() - began).toBeLessThan(3000);
});

test('an abort signal ends the wait', async () => {
  const origin = await answering(() => undefined);
  await expect(requireQuic(origin, AbortSignal.abort(new Error('stopped')))).rejects.toThrow(
    'stopped',
  );
});

test('small UDP buffers are reported, for HTTP/3 and without root', () => {
  const h3 = [{ protocol: 'h2' }, { protocol: 'h3' }] as const;
  const root = newFolder();
  const limits = join(root, 'proc/sys/net/core');
  const write = (name: string, bytes: number) => writeFileSync(join(limits, name), `${bytes}\n`);
  // Older kernels hide the settings in containers.
  expect(udpNotes(h3, false, root)).toEqual([]);
  mkdirSync(limits, { recursive: true });
  write('rmem_max', 212_992);
  write('wmem_max', 1e9);
  expect(udpNotes(h3, false, root)).toEqual([
    'the buffers of UDP are small, so HTTP/3 may lose datagrams: sudo sysctl net.core.rmem_max=7340032',
  ]);
  expect(udpNotes(h3, true, root)).toEqual([]);
  expect(udpNotes([{ protocol: 'h2' }], false, root)).toEqual([]);
  write('rmem_max', 4 * 1024 * 1024);
  expect(udpNotes(h3, false, root)).toEqual([]);
});
