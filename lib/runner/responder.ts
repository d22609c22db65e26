// Starts the responder: a server of ours that answers every request at once, with a body of zeros.
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';
import { startChild } from '../process.ts';
import type { Interrupt } from './interrupt.ts';
import { LoadFailure } from './k6.ts';

export interface ResponderOptions {
  binary: string;
  protocol: 'http/1.1' | 'h2' | 'h2c';
  bodyBytes: number;
  /** Key and certificates as PEM: it speaks TLS then. */
  certificateFile: string | undefined;
  cpus: readonly number[];
  interrupt: Interrupt;
}

export interface Responder {
  /** e.g. 127.0.0.1:18080 */
  address: string;
  /** As of a server. */
  died: Promise<string>;
  stop(): Promise<void>;
}

const startSeconds = 10;
const listening = /^listening (127\.0\.0\.1:\d+)$/;

/**
 * Returns once it listens.
 * @throws LoadFailure when it does not start, Interrupted after a signal
 */
export async function startResponder(options: ResponderOptions): Promise<Responder> {
  const { interrupt: { signal, guard } } = options;
  const child = await startChild({
    command: options.binary,
    args: [
      '--protocol', options.protocol, '--body-bytes', String(options.bodyBytes), '--threads', String(options.cpus.length),
      ...(options.certificateFile === undefined ? [] : ['--certificate', options.certificateFile]),
    ],
    cpus: options.cpus,
  });
  const unguard = guard(child.pid);
  let said = '';
  child.process.stderr?.setEncoding('utf8').on('data', (text: string) => { said = (said + text).slice(-2000); });
  const died = child.exited.then(({ code, signal: by }) => {
    const last = said.trimEnd().split('\n').at(-1) ?? '';
    return `the responder ended ${by === null ? `with code ${code}` : `by ${by}`}${last === '' ? '' : `: ${last}`}`;
  });
  const stop = async (): Promise<void> => {
    await child.stop();
    unguard();
  };
  const over = new AbortController();
  try {
    signal.throwIfAborted();
    const lines = createInterface({ input: child.process.stdout as NodeJS.ReadableStream });
    const line = await Promise.race([
      once(lines, 'line', { signal: over.signal }).then(([text]) => answered(text as string), () => ''),
      died,
      once(signal, 'abort', { signal: over.signal }).then(() => '', () => ''),
      delay(startSeconds * 1000, 'the responder does not say where it listens', { signal: over.signal }).catch(() => ''),
    ]);
    signal.throwIfAborted();
    const address = listening.exec(line)?.[1];
    if (address === undefined) throw new LoadFailure(line);
    return { address, died, stop };
  } catch (error) {
    await stop();
    throw error;
  } finally {
    over.abort();
  }
}

function answered(line: string): string {
  return listening.test(line) ? line : `the responder says ${JSON.stringify(line)} instead of where it listens`;
}
