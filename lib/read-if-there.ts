// Files and folders that may not be there (any more), as with processes that end while they are looked at, or may not be read.
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';

/** What a look at the file system gives; undefined where it throws. */
export function ifThere<T>(look: () => T): T | undefined {
  try {
    return look();
  } catch {
    return undefined;
  }
}

export function readIfThere(file: string, encoding: BufferEncoding = 'latin1'): string | undefined {
  return ifThere(() => readFileSync(file, encoding));
}

/** The same in UTF-8, '' where it is not there. */
export function textOf(file: string): string {
  return readIfThere(file, 'utf8') ?? '';
}

/** The names in a folder; none where it is not there. */
export function namesIn(folder: string): string[] {
  return ifThere(() => readdirSync(folder)) ?? [];
}

/** Where a link leads; '' where it is not there. */
export function linkOf(file: string): string {
  return ifThere(() => readlinkSync(file)) ?? '';
}
