// A person's nginx config with all that it includes, as one.
import { realpath } from 'node:fs/promises';
import path from 'node:path';
import { UserError } from '../../errors.ts';
import { bareWord, parseConfig, type Directive } from '../nginx-config.ts';
import { glob, isGlob } from './glob.ts';
import { fromLine } from './origin.ts';
import { readText, type Inclusion } from './read-text.ts';

/**
 * Reads it with its includes in their places. The origin of each directive says file and line. Throws UserError for what
 * cannot be read, and for files that include themselves.
 * @param text of the file, when it has been read already
 */
export async function readNginxConfig(file: string, text: string): Promise<Directive[]> {
  return withIncludes(parseConfig({ origin: file, text }), file, path.dirname(file), [await realpath(file)]);
}

/** @param folder of the config itself: names in included files are relative to it too */
async function withIncludes(directives: readonly Directive[], file: string, folder: string, open: readonly string[]): Promise<Directive[]> {
  const parts = await Promise.all(directives.map(async (directive): Promise<Directive[]> => {
    const { name, args: [pattern], block, line } = directive;
    if (name === 'include' && block === undefined && pattern !== undefined) return included({ from: `${file}:${line}`, name: bareWord(pattern), folder }, open);
    const here = { ...directive, origin: fromLine(file, line) };
    return [block === undefined ? here : { ...here, block: await withIncludes(block, file, folder, open) }];
  }));
  return parts.flat();
}

/** By pattern: like what is in the files, their list stays as it was at first. */
const lists = new Map<string, readonly string[]>();

async function included(by: Inclusion, open: readonly string[]): Promise<Directive[]> {
  const { folder } = by;
  const pattern = path.resolve(folder, by.name);
  const files = lists.get(pattern) ?? (isGlob(pattern) ? await glob(pattern) : [pattern]);
  lists.set(pattern, files);
  const parts = await Promise.all(files.map(async (file) => {
    const text = await readText(file, by);
    const real = await realpath(file);
    if (open.includes(real)) throw new UserError(`${by.from}: includes ${file}, which includes this file again`);
    return withIncludes(parseConfig({ origin: file, text }), file, folder, [...open, real]);
  }));
  return parts.flat();
}
