// The logs of programs: their last lines, the line that names a cause, and a limit on their length.
import type { Stats } from 'node:fs';
import { open, stat, truncate, writeFile } from 'node:fs/promises';
import { printable } from './errors.ts';
import { shownCommand } from './secrets.ts';

const tailBytes = 64 * 1024;

/** Matches the beginning of a crash report by the Go runtime; stacks and registers follow. */
const crash =
  /^(panic: |fatal error: |unexpected fault address |SIG[A-Z]+: |runtime: (out of memory|failed|cannot|mmap))/;

/** The line that names the cause: the first of a crash in Go, else the last. */
export function causeLine(lines: readonly string[]): string | undefined {
  return lines.find((line) => crash.test(line)) ?? lines.at(-1);
}

/** Returns the non-empty lines in the last 64 KiB of a log, from byte `from` on, without credentials; none if the log cannot be read. */
export async function lastLines(file: string, from = 0): Promise<string[]> {
  const tail = await tailOf(file, from).catch(() => '');
  const lines = printable(tail.toString()).split('\n');
  return lines.map((line) => shownCommand(line.trim())).filter((line) => line !== '');
}

async function tailOf(file: string, from: number): Promise<Buffer> {
  const handle = await open(file);
  try {
    const { size } = await handle.stat();
    const place = Math.max(from, size - tailBytes);
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(tailBytes), 0, tailBytes, place);
    return buffer.subarray(0, bytesRead);
  } finally {
    await handle.close();
  }
}

/** A program that logs each request would fill the disk. */
const mostLogBytes = 4e6;
const boundEveryMs = 100;

/** The bytes that a file takes, with space that was reserved behind its end (fallocate). */
const spaceOf = ({ size, blocks }: Stats): number => Math.max(size, 512 * blocks);

/**
 * Empties a log whenever it takes more than `mostBytes`. Call the returned function at the program's end: with `shortens`, it cuts the log
 * to its last 64 KiB.
 */
export function boundLog(
  file: string,
  mostBytes = mostLogBytes,
): (end: { shortens: boolean }) => Promise<void> {
  let isOver = false;
  let looked = Promise.resolve();
  const timer = setInterval(() => {
    looked = stat(file)
      .then((stats) => (spaceOf(stats) > mostBytes && !isOver ? truncate(file) : undefined))
      .catch(() => undefined);
  }, boundEveryMs);
  timer.unref();
  return async ({ shortens }) => {
    clearInterval(timer);
    isOver = true;
    await looked;
    if (shortens) await writeFile(file, await tailOf(file, 0));
    // Space that was reserved since.
    else await truncate(file, (await stat(file)).size);
  };
}
