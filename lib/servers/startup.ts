// Times a server's start, from its exec to its first good answer.
import { setTimeout as delay } from 'node:timers/promises';
import { readIfThere } from '../files.ts';
import type { Child } from '../process.ts';

const lookMs = 1;

/** When a process became its command (performance.now()), between two looks a millisecond or more apart; undefined if it ended. @param commandWords number of words */
export async function commandBegan(
  { pid, line, hasExited }: Pick<Child, 'pid' | 'line' | 'hasExited'>,
  commandWords: number,
  proc = '/proc',
): Promise<number | undefined> {
  let beforeMs = performance.now();
  while (!hasExited()) {
    const now = readIfThere(`${proc}/${pid}/cmdline`, 'utf8');
    const nowMs = performance.now();
    // Empty within exec.
    if (now && !isBefore(now.split('\0').slice(0, -1), line, commandWords))
      return (beforeMs + nowMs) / 2;
    beforeMs = nowMs;
    await delay(lookMs);
  }
  return undefined;
}

/** A program which becomes the command: the last of all words, and more. */
function isBefore(now: readonly string[], all: readonly string[], commandWords: number): boolean {
  const last = all.slice(-now.length);
  return now.length > commandWords && now.every((word, index) => word === last[index]);
}

const longestRetryMs = 20;

/** A hundredth of the time so far, which is then as exact. */
export function retryAfter(elapsedMs: number): number {
  return Math.min(longestRetryMs, Math.max(1, elapsedMs / 100));
}
