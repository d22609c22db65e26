import { printable } from './errors.ts';
import { open, stat, truncate, writeFile, type FileHandle } from 'node:fs/promises';

const tailBytes = 64 * 1024;

/** How the Go runtime begins when a program crashes; stacks and registers follow. */
const crash = /^(panic: |fatal error: |unexpected fault address |SIG[A-Z]+: |runtime: (out of memory|failed|cannot|mmap))/;

/** Of what a program said, the line that names the cause: where it is Go's and crashed the crash's first, else the last. undefined when it said nothing. */
export function causeLine(lines: readonly string[]): string | undefined {
  return lines.find((line) => crash.test(line)) ?? lines.at(-1);
}

/** The lines at the end of a log (of its last 64 KiB), empty ones left out, beginning at byte `from`. None when it cannot be read. */
export async function lastLines(file: string, from = 0): Promise<string[]> {
  const handle = await open(file).catch(() => undefined);
  if (handle === undefined) return [];
  try {
    return (await tailOf(handle, from)).toString().split('\n').map(printable).map((line) => line.trim()).filter((line) => line !== '');
  } catch {
    return [];
  } finally {
    await handle.close();
  }
}

async function tailOf(handle: FileHandle, from: number): Promise<Buffer> {
  const { size } = await handle.stat();
  const { buffer, bytesRead } = await handle.read(Buffer.alloc(tailBytes), 0, tailBytes, Math.max(from, size - tailBytes));
  return buffer.subarray(0, bytesRead);
}

/** A program that says something of each request would fill the disk. */
const mostLogBytes = 4e6;
const boundEveryMs = 100;

/**
 * Sees to it that a log that a program appends to stays short: once it is too long it begins anew, since what matters is said last.
 * @returns to be called when the program has ended: of what there is, the last 64 KiB stay
 */
export function boundLog(file: string): () => Promise<void> {
  let isOver = false;
  let looked = Promise.resolve();
  const timer = setInterval(() => {
    looked = stat(file).then(({ size }) => (size > mostLogBytes && !isOver ? truncate(file) : undefined)).catch(() => undefined);
  }, boundEveryMs);
  timer.unref();
  return async () => {
    clearInterval(timer);
    isOver = true;
    await looked;
    const handle = await open(file);
    const tail = await tailOf(handle, 0).finally(() => handle.close());
    await writeFile(file, tail);
  };
}
