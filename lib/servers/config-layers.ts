// The files of a composed config.
import { readFile, readdir } from 'node:fs/promises';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { UserError, unknownWord } from '../errors.ts';
import { readBytes, requirePlainPath } from '../files.ts';
import type { ServerName } from '../scenario/model.ts';

export const shippedConfigs = fileURLToPath(new URL('../../server-configs', import.meta.url));

/** A config's text. `origin`: the name that marks its lines in the composed config. */
export interface ConfigLayer {
  origin: string;
  text: string;
}

/** `file`: its absolute path. */
interface FileLayer extends ConfigLayer {
  file: string;
}

/** The most that a config may have: the longest are lists of addresses. */
export const mostMegabytes = 32;

/**
 * Reads files of `server-configs/<of>/`, named without `.conf`, or at absolute paths. Throws UserError if one cannot be read.
 * @param of sysctl: settings of the kernel
 */
export function readLayers(
  of: ServerName | 'sysctl',
  names: readonly string[],
): Promise<FileLayer[]> {
  return Promise.all(names.map((name) => readLayer(of, name)));
}

async function readLayer(of: string, name: string): Promise<FileLayer> {
  if (path.isAbsolute(name)) {
    requirePlainPath(name, `cannot use the ${of} config`);
    const bytes = await readBytes(name, { megabytes: mostMegabytes }).catch((error: Error) => {
      throw new UserError(`cannot read the ${of} config ${name}: ${error.message}`);
    });
    return { file: name, origin: path.basename(name), text: bytes.toString('utf8') };
  }
  if (name.includes('/'))
    throw new UserError(`${of} config ${name}: a config of your own is named by its absolute path`);
  const folder = path.join(shippedConfigs, of);
  const shipped = (await readdir(folder)).map((file) => path.basename(file, '.conf'));
  if (!shipped.includes(name)) throw unknownWord(`${of} config`, name, shipped);
  const file = path.join(folder, `${name}.conf`);
  return { file, origin: path.basename(file), text: await readFile(file, 'utf8') };
}

/** The first line of a composed config. */
export function composedOf(layers: readonly ConfigLayer[]): string {
  return `# Composed of ${layers.map(({ origin }) => origin).join(', ')} and what depends on the machine.\n`;
}
