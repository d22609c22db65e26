// How long a server takes to start: from its exec to its first good answer.
import { setTimeout as delay } from 'node:timers/promises';
import { readIfThere } from '../files.ts';
import type { Child } from '../process.ts';

const lookMs = 1;

/**
 * Resolves to the instant of performance.now() at which a process became its command, in the middle between two looks a millisecond apart,
 * or more on a busy machine; undefined if it ended before. @param commandWords the number of words of the command with its arguments
 */
export async function commandBegan(
  { pid, line, hasExited }: Pick<Child, 'pid' | 'line' | 'hasExited'>,
  commandWords: number,
  proc = '/proc',
): Promise<number | undefined> {
  let beforeMs = performance.now();
  while (!hasExited()) {
    const now = readIfThere(`${proc}/${pid}/cmdline`, 'utf8');
    const nowMs = performance.now();
    // Within exec it is empty.
    if (now && !isBefore(now.split('\0').slice(0, -1), line, commandWords))
      return (beforeMs + nowMs) / 2;
    beforeMs = nowMs;
    await delay(lookMs);
  }
  return undefined;
}

/** Whether a command line is that of a program which becomes the command: the last of all words, and more than the command's. */
function isBefore(now: readonly string[], all: readonly string[], commandWords: number): boolean {
  const last = all.slice(-now.length);
  return now.length > commandWords && now.every((word, index) => word === last[index]);
}

const longestRetryMs = 20;

/** How long to wait before a starting server is asked again: a hundredth of the time so far, which is then as exact. */
export function retryAfter(elapsedMs: number): number {
  return Math.min(longestRetryMs, Math.max(1, elapsedMs / 100));
}
