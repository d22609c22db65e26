// Locks that the kernel releases when their last holder ends, so that no stale lock is left.
import {
  closeSync,
  constants,
  fstatSync,
  ftruncateSync,
  openSync,
  readFileSync,
  writeFileSync,
} from 'node:fs';
import { once } from 'node:events';
import { UserError } from './errors.ts';
import { startChild } from './process.ts';

const conflict = 75;

/** Opens a lock's file, made if missing. Refuses a link (its target would be written to) and a pipe (it would block). */
function open(file: string): number {
  const { O_WRONLY, O_APPEND, O_CREAT, O_NOFOLLOW, O_NONBLOCK } = constants;
  let descriptor: number;
  try {
    descriptor = openSync(file, O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK, 0o666);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ELOOP' || code === 'ENXIO' || code === 'EISDIR') throw notALock(file);
    throw error;
  }
  if (fstatSync(descriptor).isFile()) return descriptor;
  closeSync(descriptor);
  throw notALock(file);
}

function notALock(file: string): UserError {
  return new UserError(
    `${file} must be a regular file (it is used as a lock): remove the link or folder there`,
  );
}

/**
 * Takes an exclusive flock(2) on a file, made if missing. flock(1) takes it on our descriptor and ends.
 * @returns the descriptor, or null if another process keeps the lock for `waitSeconds`. The lock lasts until the descriptor is closed,
 * here and in each child that inherits it
 */
export async function lockFile(file: string, waitSeconds = 0): Promise<number | null> {
  const descriptor = open(file);
  let isLocked = false;
  try {
    const child = await startChild({
      command: 'flock',
      args: `--exclusive --conflict-exit-code ${conflict} --timeout ${waitSeconds} 3`.split(' '),
      stdio: ['ignore', 'ignore', 'pipe', descriptor],
    });
    let complaint = '';
    child.process.stderr?.on('data', (text: Buffer) => void (complaint += text.toString()));
    const [code] = (await once(child.process, 'close')) as [number | null];
    if (code !== 0 && code !== conflict)
      throw new UserError(
        `cannot lock ${file}: ${complaint.trim().split('\n')[0] || `flock ended with ${code}`}`,
      );
    isLocked = code === 0;
    return isLocked ? descriptor : null;
  } finally {
    if (!isLocked) closeSync(descriptor);
  }
}

export async function withLock<T>(
  file: string,
  signal: AbortSignal,
  work: () => Promise<T>,
): Promise<T> {
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

export function writeHolder(lock: number, pid: number): void {
  ftruncateSync(lock);
  writeFileSync(lock, `${pid}\n`);
}

/** Names the process that has the lock, e.g. " (process 123)", for messages: the content may be older than the lock. */
export function holder(file: string): string {
  const pid = readFileSync(file, 'utf8').trim();
  return /^\d+$/.test(pid) ? ` (process ${pid})` : '';
}
