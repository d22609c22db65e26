// What is sent of a person's own folder to another host.
import { readdir, readFile, readlink, stat } from 'node:fs/promises';
import { homedir, tmpdir } from 'node:os';
import path from 'node:path';
import { UserError } from '../errors.ts';
import type { SentFile } from './messages.ts';

/** What is sent of a folder: configs and pages are far less. */
const most = { files: 2000, megabytes: 20 };

/**
 * All that is in a folder. Links stay links: what they point to elsewhere is the other host's.
 * @throws UserError where it is too much, somebody's home, or closed
 */
export async function filesOf(folder: string, host: string): Promise<SentFile[]> {
  const ownFolder = 'put the config and what it needs into a folder of its own';
  if ([homedir(), tmpdir(), '/tmp', '/'].includes(folder)) throw new UserError(`${folder} would be sent to ${host} with all that is in it: ${ownFolder}`);
  const files: SentFile[] = [];
  let bytes = 0;
  for (const folders = ['']; folders.length > 0;) {
    const inner = folders.pop() as string;
    for (const one of await readdir(path.join(folder, inner), { withFileTypes: true }).catch((error: Error) => closed(error))) {
      const [name, file] = [path.join(inner, one.name), path.join(folder, inner, one.name)];
      if (one.isDirectory()) folders.push(name);
      else if (one.isSymbolicLink()) files.push({ path: name, link: await readlink(file) });
      else if (one.isFile()) {
        const { size, mode } = await stat(file);
        bytes += size;
        if (bytes <= most.megabytes * 1e6) files.push({ path: name, mode: mode & 0o777, base64: (await readFile(file).catch((error: Error) => closed(error))).toString('base64') });
      }
      if (files.length + folders.length > most.files || bytes > most.megabytes * 1e6) {
        throw new UserError(`${folder} is sent to ${host} with all that is in it, which is more than ${most.files} files or ${most.megabytes} MB: ${ownFolder}`);
      }
    }
  }
  return files;

  function closed(error: Error): never {
    throw new UserError(`${folder} is sent to ${host} with all that is in it, and cannot be read: ${error.message}`);
  }
}
