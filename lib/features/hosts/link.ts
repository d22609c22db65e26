// The link to another host, measured.
import { once } from 'node:events';
import { connect as connectTo, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import type { LinkFigures } from '../../result/environment.ts';
import type { Address } from '../../servers/ports.ts';

const roundTrips = 500;
const roundTripsMs = 2000;
const limitMs = 5000;
const chunkBytes = 256 * 1024;
const throughputMs = 500;

/**
 * Measures round trips and throughput over the agent's echo.
 * @param token the echo sends it first; other machines do not know it
 * @throws the system's error, or an Error if another machine answers
 */
export async function measureLink({ address, port }: Address, token: string): Promise<LinkFigures> {
  const socket = connectTo({ host: address, port, noDelay: true });
  try {
    await once(socket, 'connect', { signal: AbortSignal.timeout(limitMs) });
    const cut = once(socket, 'close').then(() => {
      throw new Error('the connection was cut');
    });
    await Promise.race([cut, greeted(socket, token)]);
    const roundTripMs = await Promise.race([cut, roundTripTimes(socket)]);
    return { roundTripMs, bytesPerSecond: await Promise.race([cut, throughput(socket)]) };
  } catch (error) {
    if (!(error instanceof Error) || error.name !== 'AbortError') throw error;
    throw new Error(`no answer within ${limitMs / 1000} s`);
  } finally {
    socket.destroy();
  }
}

async function greeted(socket: Socket, token: string): Promise<void> {
  let received = '';
  while (received.length < token.length) {
    const [part]: Buffer[] = await once(socket, 'data', { signal: AbortSignal.timeout(limitMs) });
    received += part?.toString('latin1') ?? '';
  }
  if (received !== token) throw new Error('another machine answers there');
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
  const quantile = (part: number) => times[Math.ceil(part * times.length) - 1] as number;
  return { p50: quantile(0.5), p99: quantile(0.99) };
}

/** Measures the throughput in bytes/s. */
async function throughput(socket: Socket): Promise<number> {
  const chunk = Buffer.alloc(chunkBytes);
  const beganMs = performance.now();
  const receivedBefore = socket.bytesRead;
  const send = () => {
    while (socket.write(chunk));
  };
  socket.on('drain', send);
  send();
  await delay(throughputMs);
  socket.off('drain', send);
  return (socket.bytesRead - receivedBefore) / ((performance.now() - beganMs) / 1000);
}
