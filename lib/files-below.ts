import { readdir } from 'node:fs/promises';
import { join, relative } from 'node:path';

/** The paths of all files in a folder and those in it, from that folder on, sorted. No links. Throws the file system's error. */
export async function filesBelow(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  return entries.filter((entry) => entry.isFile()).map((entry) => relative(folder, join(entry.parentPath, entry.name))).sort();
}
