// Two runs at a time would measure each other, wherever their samples go.
import { closeSync } from 'node:fs';
import { join } from 'node:path';
import { UserError } from '../errors.ts';
import { holder, lockFile, writeHolder } from '../lock-file.ts';
import { makeFolder } from '../make-folder.ts';
import { bakeoffFolder } from '../setup/paths.ts';

/**
 * Returns once this process is the only one of this bakeoff that measures; call what it returns when it is done. A process
 * that is killed is done too. Throws a UserError that names the other process, or when there can be no lock.
 */
export async function oneRunAtATime(): Promise<() => void> {
  const file = join(bakeoffFolder, 'run.lock');
  const lock = await takeLock(file);
  if (lock === null) {
    throw new UserError(`another run of bakeoff${holder(file)} is measuring, and both would be slower: wait until it is done, or end it`);
  }
  writeHolder(lock, process.pid);
  return () => closeSync(lock);
}

async function takeLock(file: string): Promise<number | null> {
  try {
    makeFolder(bakeoffFolder);
    return await lockFile(file);
  } catch (error) {
    if (error instanceof UserError) throw error;
    throw new UserError(`cannot write to ${bakeoffFolder}: ${(error as Error).message}; name another folder in BAKEOFF_HOME`);
  }
}
