import { printable } from './errors.ts';
import { open, stat, truncate, writeFile } from 'node:fs/promises';

const tailBytes = 64 * 1024;

/** How the Go runtime begins when a program crashes; stacks and registers follow. */
const crash =
  /^(panic: |fatal error: |unexpected fault address |SIG[A-Z]+: |runtime: (out of memory|failed|cannot|mmap))/;

/** Of what a program said, the line that names the cause: where it is Go's and crashed the crash's first, else the last. undefined when it said nothing. */
export function causeLine(lines: readonly string[]): string | undefined {
  return lines.find((line) => crash.test(line)) ?? lines.at(-1);
}

/** The lines at the end of a log (of its last 64 KiB), empty ones left out, beginning at byte `from`. None when it cannot be read. */
export async function lastLines(file: string, from = 0): Promise<string[]> {
  const tail = await tailOf(file, from).catch(() => '');
  return tail
    .toString()
    .split('\n')
    .map(printable)
    .map((line) => line.trim())
    .filter((line) => line !== '');
}

async function tailOf(file: string, from: number): Promise<Buffer> {
  const handle = await open(file);
  try {
    const { size } = await handle.stat();
    const { buffer, bytesRead } = await handle.read(
      Buffer.alloc(tailBytes),
      0,
      tailBytes,
      Math.max(from, size - tailBytes),
    );
    return buffer.subarray(0, bytesRead);
  } finally {
    await handle.close();
  }
}

/** A program that says something of each request would fill the disk. */
const mostLogBytes = 4e6;
const boundEveryMs = 100;

/** Empties a program's log whenever it gets too long. Returns a function for when the program has ended: the last 64 KiB stay. */
export function boundLog(file: string): () => Promise<void> {
  let isOver = false;
  let looked = Promise.resolve();
  const timer = setInterval(() => {
    looked = stat(file)
      .then(({ size }) => (size > mostLogBytes && !isOver ? truncate(file) : undefined))
      .catch(() => undefined);
  }, boundEveryMs);
  timer.unref();
  return async () => {
    clearInterval(timer);
    isOver = true;
    await looked;
    await writeFile(file, await tailOf(file, 0));
  };
}
