// The first signal ends the work in order, the second at once.
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

/** Protects work from a second signal: a part of it would be a mess. @param what names it */
export function toItsEnd<T>(what: string, work: Promise<T>): Promise<T> {
  finishing.add(what);
  return work.finally(() => finishing.delete(what));
}

/**
 * Takes signals until `release`. The first prints `ending` and aborts `signal` with an Interrupted; another, after half a second, kills
 * the children and exits with 130.
 */
export function takeSignals(ending: string) {
  const controller = new AbortController();
  const { signal } = controller;
  // Each server of a group listens to it while it starts.
  setMaxListeners(0, signal);
  let isSameWish = true;

  function handle() {
    if (!signal.aborted) {
      // A signal from a busy time is handled before an immediate.
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

/** Works between takeSignals and release. Throws Interrupted after a signal, or what the work throws. */
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
 * Aborts with the given signal, or with a TimeoutError after this time. AbortSignal.timeout within AbortSignal.any may be collected in
 * Node 20, and then never comes.
 */
export function limited(signal: AbortSignal, ms: number): AbortSignal {
  const late = new AbortController();
  const timeOut = new DOMException('it took too long', 'TimeoutError');
  setTimeout(() => late.abort(timeOut), ms).unref();
  return AbortSignal.any([signal, late.signal]);
}
