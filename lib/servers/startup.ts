// How long a server takes to start: from its exec to its first good answer.
import { setTimeout as delay } from 'node:timers/promises';
import { readIfThere } from '../files.ts';

const lookMs = 1;

/**
 * Resolves to the instant of performance.now() at which a process became its command, in the middle between two looks a millisecond apart,
 * or more on a busy machine; undefined if it ended before. @param words the command and its arguments. Programs that go before it have bare names, an interpreter (`#!`) has a path
 */
export async function commandBegan(
  pid: number,
  words: readonly string[],
  hasEnded: () => boolean,
  proc = '/proc',
): Promise<number | undefined> {
  let beforeMs = performance.now();
  while (!hasEnded()) {
    const line = readIfThere(`${proc}/${pid}/cmdline`);
    const nowMs = performance.now();
    // Within exec it is empty.
    if (line && !isBefore(line.split('\0').slice(0, -1), words)) return (beforeMs + nowMs) / 2;
    beforeMs = nowMs;
    await delay(lookMs);
  }
  return undefined;
}

/** Whether a command line is that of a program which becomes the command. */
function isBefore(line: readonly string[], words: readonly string[]): boolean {
  const rest = line.slice(-words.length);
  return (
    line.length > words.length &&
    line[0]?.includes('/') === false &&
    rest.every((word, index) => word === words[index])
  );
}

const longestRetryMs = 20;

/** How long to wait before a starting server is asked again: a hundredth of the time so far, which is then as exact. */
export function retryAfter(elapsedMs: number): number {
  return Math.min(longestRetryMs, Math.max(1, elapsedMs / 100));
}
