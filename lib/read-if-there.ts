// Files and folders that may be gone.
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';

/** undefined when it is not there (any more), as with processes that end while they are looked at, or may not be read. */
export function readIfThere(file: string, encoding: BufferEncoding = 'latin1'): string | undefined {
  try {
    return readFileSync(file, encoding);
  } catch {
    return undefined;
  }
}

/** The same in UTF-8, '' where it is not there. */
export function textOf(file: string): string {
  return readIfThere(file, 'utf8') ?? '';
}

/** The names in a folder; none where it is not there (any more), or not to be seen. */
export function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

/** Where a link leads; '' where it is not there (any more), or not to be seen. */
export function linkOf(file: string): string {
  try {
    return readlinkSync(file);
  } catch {
    return '';
  }
}
