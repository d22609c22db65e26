// Ctrl-C and its relatives. The first one asks the run to end in order, the second ends everything at once.
import { setMaxListeners } from 'node:events';
import { sendIfThere } from './process.ts';

/** The run was asked to end. Exit code 130. */
export class Interrupted extends Error {
  constructor() {
    super('interrupted');
  }
}

export interface Interrupt {
  /** Aborts with an Interrupted as its reason at the first signal. */
  signal: AbortSignal;
  /** Names a process group that the second signal is to kill; call what it returns once the group is gone. */
  guard(groupId: number): () => void;
}

const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/** A second signal this soon is the same Ctrl-C: the terminal sends it to npm and to us, and npm passes it on. */
const sameWishMs = 500;

const finishing = new Set<string>();

/** Meanwhile a second signal ends nothing, since half of this work would leave a mess. @param what is at work */
export function toItsEnd<T>(what: string, work: Promise<T>): Promise<T> {
  finishing.add(what);
  return work.finally(() => finishing.delete(what));
}

/**
 * Does the work with the signals taken over. The first one prints the line `ending` and aborts. The second one, half a second later or
 * more, kills all guarded groups and exits with 130; the kernel then sends TERM to other children (InfluxDB).
 * @throws what the work throws, or Interrupted after a signal
 */
export async function underSignals<T>(
  ending: string,
  work: (interrupt: Interrupt) => Promise<T>,
): Promise<T> {
  const controller = new AbortController();
  const { signal } = controller;
  // All servers of a group listen to it while they start.
  setMaxListeners(0, signal);
  const groups = new Set<number>();
  let firstAtMs = 0;

  function handle(): void {
    if (!signal.aborted) {
      firstAtMs = performance.now();
      console.error(`${process.stderr.isTTY ? '\n' : ''}${ending}`);
      controller.abort(new Interrupted());
      return;
    }
    if (performance.now() - firstAtMs < sameWishMs) return;
    if (finishing.size > 0)
      return console.error(`${[...finishing].join(', ')} has to finish first`);
    for (const group of groups) sendIfThere(-group, 'SIGKILL');
    process.exit(130);
  }

  function guard(groupId: number): () => void {
    groups.add(groupId);
    return () => groups.delete(groupId);
  }

  for (const name of signals) process.on(name, handle);
  try {
    return await work({ signal, guard });
  } catch (error) {
    signal.throwIfAborted();
    throw error;
  } finally {
    for (const name of signals) process.off(name, handle);
  }
}
