// What the way to another host is like, measured over a connection to its agent's echo.
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import type { Address } from '../servers/ports.ts';
import type { LinkFigures } from '../result/result.ts';

const roundTrips = 500;
/** So many of them, or as many as there are in this time. */
const roundTripsMs = 2000;
/** Of the connect, and of one round trip. */
const limitMs = 5000;
const chunkBytes = 256 * 1024;
/** Of sending as much as goes through, to and fro. */
const throughputMs = 500;

/** Throws the system's error where nothing answers there. */
export async function measureLink({ address, port }: Address): Promise<LinkFigures> {
  const socket = connect({ host: address, port, noDelay: true });
  try {
    await once(socket, 'connect', { signal: AbortSignal.timeout(limitMs) });
    // By a reset, too.
    const cut = once(socket, 'close').then(() => {
      throw new Error('the connection was cut');
    });
    return await Promise.race([cut, figuresOf(socket)]);
  } catch (error) {
    throw (error as Error).name === 'AbortError'
      ? new Error(`no answer within ${limitMs / 1000} s`)
      : error;
  } finally {
    socket.destroy();
  }
}

async function figuresOf(socket: Socket): Promise<LinkFigures> {
  return { roundTripMs: await roundTripTimes(socket), bytesPerSecond: await throughput(socket) };
}

async function roundTripTimes(socket: Socket): Promise<LinkFigures['roundTripMs']> {
  const times: number[] = [];
  const endMs = performance.now() + roundTripsMs;
  while (times.length < roundTrips && (times.length === 0 || performance.now() < endMs)) {
    const beganMs = performance.now();
    socket.write('.');
    await once(socket, 'data', { signal: AbortSignal.timeout(limitMs) });
    times.push(performance.now() - beganMs);
  }
  times.sort((a, b) => a - b);
  const quantile = (part: number): number => times[Math.ceil(part * times.length) - 1] as number;
  return { p50: quantile(0.5), p99: quantile(0.99) };
}

/** Bytes/s of what came back, while as much is sent as goes through. */
async function throughput(socket: Socket): Promise<number> {
  const chunk = Buffer.alloc(chunkBytes);
  const beganMs = performance.now();
  let received = 0;
  let sending = true;
  const count = (data: Buffer): void => {
    received += data.length;
  };
  socket.on('data', count);
  const send = (): void => {
    while (sending && socket.write(chunk));
  };
  socket.on('drain', send);
  send();
  await new Promise((resolve) => setTimeout(resolve, throughputMs));
  sending = false;
  socket.off('data', count).off('drain', send);
  return received / ((performance.now() - beganMs) / 1000);
}
