// Random numbers, and looks at random times.
import { setTimeout as delay } from 'node:timers/promises';

/** mulberry32 (T. Ettinger): numbers in [0, 1), the same for a seed everywhere. */
export function uniform(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/**
 * Calls `look` at random times until the returned function is called, whose promise resolves after the last call.
 * @param everyMs the average time from one call to the next
 * @param mostUsed the share of a core, 0 to 1, that the calls may use
 */
export function lookAtRandom(
  look: () => void,
  { everyMs, mostUsed }: { everyMs: number; mostUsed: number },
): () => Promise<void> {
  const over = new AbortController();
  const watch = async () => {
    while (!over.signal.aborted) {
      const before = process.cpuUsage();
      look();
      // By the clock, a look that waited for a core would delay the next by seconds.
      const { user, system } = process.cpuUsage(before);
      const leastMs = (user + system) / 1000 / mostUsed;
      const waitMs = Math.max(leastMs, everyMs * (0.5 + Math.random()));
      await delay(waitMs, undefined, { signal: over.signal }).catch(() => undefined);
    }
  };
  const watched = watch();
  return async () => {
    over.abort();
    await watched;
  };
}
