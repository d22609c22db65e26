import { once } from 'node:events';
import { startChild } from '../process.ts';

/**
 * Does `work` while no other process that asks for the same file does its own. The lock is flock(2)'s, held by a child:
 * it ends with this process however that ends, so there are no stale locks. The file is never written; it may be a folder.
 */
export async function withLock<T>(file: string, signal: AbortSignal | undefined, work: () => Promise<T>): Promise<T> {
  const holder = await startChild({ command: 'flock', args: [file, 'cat'], stdio: ['pipe', 'pipe', 'ignore'] });
  const giveUp = (): void => { void holder.stop(); };
  signal?.addEventListener('abort', giveUp);
  try {
    // cat starts once the lock is held, and only then does this come back.
    holder.process.stdin?.on('error', () => {}).write('held\n');
    await Promise.race([once(holder.process.stdout as NodeJS.ReadableStream, 'data'), holder.exited]);
    signal?.throwIfAborted();
    if (holder.hasExited()) throw new Error(`cannot lock ${file}`);
    return await work();
  } finally {
    signal?.removeEventListener('abort', giveUp);
    holder.process.stdin?.end();
    await holder.exited;
  }
}
