// Checks whether a server speaks QUIC, the transport of HTTP/3.
import { randomBytes } from 'node:crypto';
import { createSocket } from 'node:dgram';
import { lookup } from 'node:dns/promises';
import { once } from 'node:events';
import { UserError } from '../errors.ts';
import { limited } from '../signals.ts';

/** A server that speaks QUIC answers sooner. */
const answerMs = 2500;
const repeatMs = 100;
/** Servers drop shorter datagrams (RFC 9000, section 14.1). */
const datagramBytes = 1200;

/** A QUIC packet with a reserved version (RFC 9000, section 15). A server answers with its versions and `id`, and keeps no state. */
function greeting(id: Buffer): Buffer {
  const head = [Buffer.of(0xc0, 0x1a, 0x2a, 0x3a, 0x4a, 8), randomBytes(8), Buffer.of(8), id];
  return Buffer.concat([...head, Buffer.alloc(datagramBytes)], datagramBytes);
}

/** Throws UserError if nothing answers QUIC at the origin's port, or the signal's reason. */
export async function requireQuic(origin: string, signal: AbortSignal): Promise<void> {
  const { hostname, port } = new URL(origin);
  const { address, family } = await lookup(hostname.replace(/^\[|\]$/g, ''));
  const socket = createSocket(family === 6 ? 'udp6' : 'udp4');
  const until = limited(signal, answerMs);
  const id = randomBytes(8);
  const greet = (): void =>
    // A refusal is reported at a later send. It is ignored, since the server may still be starting.
    socket.send(greeting(id), Number(port || 443), address, () => undefined);
  socket.on('error', () => undefined);
  const timer = setInterval(greet, repeatMs);
  try {
    greet();
    for (;;) {
      const [answer]: Buffer[] = await once(socket, 'message', { signal: until });
      if (answer === undefined) continue;
      if (answer.length > 14 && answer.readUInt32BE(1) === 0 && answer.subarray(6, 14).equals(id))
        return;
    }
  } catch {
    signal.throwIfAborted();
    throw new UserError(
      `${origin} has no HTTP/3: nothing answers QUIC on its UDP port ${port || 443}; turn it on in the server's config, or take another protocol`,
    );
  } finally {
    clearInterval(timer);
    socket.close();
  }
}
