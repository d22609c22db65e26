// Signals to this process: the first one ends the work in order, a second one ends it at once.
import { setMaxListeners } from 'node:events';
import { killChildren } from './process.ts';

/** A signal has ended the run. Exit code 130. */
export class Interrupted extends Error {
  constructor() {
    super('interrupted');
  }
}

const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/** npm passes the terminal's Ctrl-C on. */
const sameWishMs = 500;

const finishing = new Set<string>();

/** Protects work from a second signal, because half-done work would leave a mess. @param what names the work */
export function toItsEnd<T>(what: string, work: Promise<T>): Promise<T> {
  finishing.add(what);
  return work.finally(() => finishing.delete(what));
}

/**
 * Handles the signals until `release`. The first one prints `ending` and aborts `signal` with an Interrupted. Another one, at least half a
 * second later, kills the children and exits with 130.
 */
export function takeSignals(ending: string) {
  const controller = new AbortController();
  const { signal } = controller;
  // Each server of a group listens to it while it starts.
  setMaxListeners(0, signal);
  let isSameWish = true;

  function handle() {
    if (!signal.aborted) {
      // A signal that came while this process was busy is handled before an immediate.
      setTimeout(() => setImmediate(() => (isSameWish = false)), sameWishMs).unref();
      console.error(`${process.stderr.isTTY ? '\n' : ''}${ending}`);
      controller.abort(new Interrupted());
      return;
    }
    if (isSameWish) return;
    if (finishing.size > 0)
      return console.error(`${[...finishing].join(', ')} has to finish first`);
    killChildren();
    process.exit(130);
  }

  for (const name of signals) process.on(name, handle);
  return {
    signal,
    release() {
      for (const name of signals) process.off(name, handle);
    },
  };
}

/** Does the work between takeSignals and release. Throws Interrupted after a signal, or what the work throws. */
export async function underSignals<T>(
  ending: string,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const { signal, release } = takeSignals(ending);
  try {
    return await work(signal);
  } catch (error) {
    signal.throwIfAborted();
    throw error;
  } finally {
    release();
  }
}

/**
 * Returns a signal that aborts as the given one does, or with a TimeoutError after so many milliseconds. The work must keep Node running by
 * itself.
 * In Node 20 an AbortSignal.timeout within AbortSignal.any may be collected as garbage, and then never fires.
 */
export function limited(signal: AbortSignal, ms: number): AbortSignal {
  const late = new AbortController();
  const timeOut = new DOMException('it took too long', 'TimeoutError');
  setTimeout(() => late.abort(timeOut), ms).unref();
  return AbortSignal.any([signal, late.signal]);
}
