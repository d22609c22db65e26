const interrupts = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/**
 * Does `work` with a signal that fires when the process is told to end, so that the work can clean up first. After an
 * interrupt the work is expected to reject; then, if nobody else in the process listens for that signal, it takes its
 * usual effect.
 */
export async function untilInterrupted<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const controller = new AbortController();
  let received: NodeJS.Signals | undefined;
  const onInterrupt = (name: NodeJS.Signals): void => {
    received = name;
    controller.abort(new Error(`interrupted by ${name}`));
  };
  for (const name of interrupts) process.on(name, onInterrupt);
  try {
    return await work(controller.signal);
  } finally {
    for (const name of interrupts) process.off(name, onInterrupt);
    if (received !== undefined && process.listenerCount(received) === 0) process.kill(process.pid, received);
  }
}
