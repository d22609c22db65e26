import { rename, rm, writeFile } from 'node:fs/promises';

/**
 * Writes a file whole or not at all: under another name first, then renamed.
 * @param mode as of chmod; absent: as the umask has it
 */
export async function writeWhole(file: string, text: string, mode = 0o666): Promise<void> {
  await written(file, text, mode, (unfinished) => rename(unfinished, file));
}

/** Makes sure that writeWhole could write it, and leaves everything as it was. Throws what the file system says. */
export async function checkWhole(file: string): Promise<void> {
  await written(file, 'probe', 0o600, rm);
}

async function written(file: string, text: string, mode: number, then: (unfinished: string) => Promise<void>): Promise<void> {
  const unfinished = `${file}.unfinished`;
  try {
    await rm(unfinished, { force: true });
    await writeFile(unfinished, text, { mode, flag: 'wx' });
    await then(unfinished);
  } catch (error) {
    await rm(unfinished, { force: true }).catch(() => {});
    throw error;
  }
}
