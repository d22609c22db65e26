import { realpath, rename, rm, stat, writeFile } from 'node:fs/promises';

/** Writes a file whole or not at all: under another name first, then renamed. @param mode as of chmod; absent: as the umask has it */
export async function writeWhole(file: string, text: string, mode = 0o666): Promise<void> {
  await written(file, text, mode, (unfinished) => rename(unfinished, file));
}

/** Why what stands there is not to be replaced by a file, in words; undefined where there is a file, or nothing. */
export async function whyNoFile(file: string): Promise<string | undefined> {
  const found = await stat(file).catch(() => undefined);
  if (found === undefined || found.isFile()) return undefined;
  return `it is a ${found.isDirectory() ? 'folder: name a file in it' : 'pipe, socket or device: name a file'}`;
}

/** What a name leads to: a link stays one, and what it leads to is written. */
export async function whereItLeads(file: string): Promise<string> {
  return realpath(file).catch(() => file);
}

/** Makes sure that writeWhole could write it, and leaves everything as it was. Throws what the file system says. */
export async function checkWhole(file: string): Promise<void> {
  await written(file, 'probe', 0o600, rm);
}

async function written(
  file: string,
  text: string,
  mode: number,
  then: (unfinished: string) => Promise<void>,
): Promise<void> {
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
