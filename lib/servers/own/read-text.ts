import { readFile } from 'node:fs/promises';
import { UserError } from '../../errors.ts';

const why: Record<string, string> = {
  ENOENT: 'is not there', EISDIR: 'is a folder, not a file', EACCES: 'is closed to this user', ELOOP: 'is a link to itself', ENOTDIR: 'is not there',
};

/**
 * The text of a config or of what it includes.
 * @param from FILE:LINE that names it; absent for the config itself
 * @throws UserError when it cannot be read or is not text
 */
export async function readText(file: string, from?: string): Promise<string> {
  const begin = from === undefined ? `the config ${file}` : `${from}: includes ${file}, which`;
  const bytes = await readFile(file).catch((error: NodeJS.ErrnoException) => {
    throw new UserError(`${begin} ${why[error.code ?? ''] ?? `cannot be read: ${error.message}`}`);
  });
  if (bytes.includes(0)) throw new UserError(`${begin} is not text`);
  return bytes.toString('utf8');
}
