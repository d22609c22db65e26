import { readFile, stat } from 'node:fs/promises';
import { UserError } from '../../errors.ts';
import { requirePlainPath } from '../../open-file.ts';
import { mostMegabytes } from '../config-layers.ts';
import { isIn, isOpenToAll } from '../scratch.ts';

const why: Record<string, string> = {
  ENOENT: 'is not there',
  EISDIR: 'is a folder: name a file in it',
  EACCES: 'is closed to this user',
  ELOOP: 'is a link to itself',
  ENOTDIR: 'is not there',
};

/** By file. All rounds of a run measure the configs as they were at its start. */
const known = new Map<string, string>();

/**
 * The text of a config or of a file that it includes, as it was when it was read for the first time.
 * @param by absent for the config itself
 * @throws UserError when it cannot be read or is not text
 */
export async function readText(file: string, by?: Inclusion): Promise<string> {
  const text = known.get(file) ?? (await readNow(file, by));
  known.set(file, text);
  return text;
}

/** An include. `folder`: the config's; `from`: FILE:LINE; `name`: the included file as it is written there. */
export interface Inclusion {
  folder: string;
  from: string;
  name: string;
}

async function readNow(file: string, by: Inclusion | undefined): Promise<string> {
  requirePlainPath(file, by === undefined ? 'cannot use the config' : `${by.from}: includes`);
  const begin = by === undefined ? `the config ${file}` : `${by.from}: includes ${file}, which`;
  try {
    const found = await stat(file);
    // A pipe could be read once, or never.
    if (!found.isFile() && !found.isDirectory() && file !== '/dev/null')
      throw new UserError(`${begin} is a pipe or device: save it to a file`);
    requireReadable(file, by);
    if (found.size > mostMegabytes * 1e6)
      throw new UserError(
        `${begin} has more than ${mostMegabytes} MB, and bakeoff reads no longer ones`,
      );
    const bytes = await readFile(file);
    if (bytes.includes(0)) throw new UserError(`${begin} is not text`);
    return bytes.toString('utf8');
  } catch (error) {
    if (error instanceof UserError) throw error;
    const { code = '', message } = error as NodeJS.ErrnoException;
    const hint =
      code === 'ENOENT' && by !== undefined && !by.name.startsWith('/')
        ? ': what it names begins at its own folder, so keep a copy beside the original'
        : '';
    throw new UserError(`${begin} ${why[code] ?? `cannot be read: ${message}`}${hint}`);
  }
}

/** Throws UserError for an included file that only root may read and that is not beside or below the config: h2o could serve it. */
function requireReadable(file: string, by: Inclusion | undefined): void {
  if (by === undefined || process.geteuid?.() !== 0 || isOpenToAll(file) || isIn(by.folder, file))
    return;
  throw new UserError(
    `${by.from}: includes ${file}, which is closed to others, and not beside the config: put a copy beside it, or open it to others`,
  );
}
