// Ctrl-C and its relatives. The first one asks the run to end in order, the second ends everything at once.

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
  /** Gives the signals back. */
  release(): void;
}

const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/**
 * Signals this soon after the first are the same wish: the terminal sends Ctrl-C to npm and to us, and npm passes on its own.
 */
const sameWishMs = 500;

/**
 * Takes over the signals. At the second one (half a second after the first or later) all guarded groups get KILL and this process exits with 130; other children
 * (InfluxDB) get TERM from the kernel then, which is how they were started.
 * @param onFirst tells the person that the run is ending
 */
export function takeSignals(onFirst: () => void): Interrupt {
  const controller = new AbortController();
  const groups = new Set<number>();

  let firstAtMs = 0;

  function handle(): void {
    if (!controller.signal.aborted) {
      firstAtMs = performance.now();
      onFirst();
      controller.abort(new Interrupted());
      return;
    }
    if (performance.now() - firstAtMs < sameWishMs) return;
    for (const group of groups) {
      try {
        process.kill(-group, 'SIGKILL');
      } catch {
        // It is gone by now.
      }
    }
    process.exit(130);
  }

  for (const name of signals) process.on(name, handle);
  return {
    signal: controller.signal,
    guard(groupId) {
      groups.add(groupId);
      return () => groups.delete(groupId);
    },
    release() {
      for (const name of signals) process.off(name, handle);
    },
  };
}
