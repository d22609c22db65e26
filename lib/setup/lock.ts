import { closeSync } from 'node:fs';
import { lockFile } from '../lock-file.ts';

/** Does `work` while no other process that asks for the same file does its own. `signal` ends the wait for it. */
export async function withLock<T>(file: string, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
  let descriptor: number | null = null;
  while (descriptor === null) {
    signal.throwIfAborted();
    descriptor = await lockFile(file, 1);
  }
  try {
    return await work();
  } finally {
    closeSync(descriptor);
  }
}
