// A person's nginx config with all that it includes, as one.
import { lstat, readdir, realpath } from 'node:fs/promises';
import path from 'node:path';
import { UserError } from '../../errors.ts';
import { bareWord, mostDirectives, mostNested, parseConfig, type Directive } from '../nginx-config.ts';
import { fromLine } from './origin.ts';
import { mostMegabytes, readText, type Inclusion } from './read-text.ts';

/**
 * Reads it with its includes in their places. The origin of each directive says file and line. Throws UserError for what
 * cannot be read, and for files that include themselves.
 * @param text of the file, when it has been read already
 * @param origin of its own lines, instead of that
 */
export async function readNginxConfig(file: string, text: string, origin?: string): Promise<Directive[]> {
  const total = { files: 0, directives: 0, bytes: 0 };
  return withIncludes(parseConfig({ origin: file, text }), file, path.dirname(file), { files: [await realpath(file)], depth: 0, total, origin });
}

/**
 * Files that include each other, from the config on, blocks in each other over all of them, what all that was included comes to,
 * and the origin of the config's own lines.
 */
interface Open { files: readonly string[]; depth: number; total: { files: number; directives: number; bytes: number }; origin: string | undefined }

/** What includes that include each other may come to: they double with every file. */
const mostFiles = 10_000;

/** @param folder of the config itself: names in included files are relative to it too */
async function withIncludes(directives: readonly Directive[], file: string, folder: string, open: Open): Promise<Directive[]> {
  if (open.depth > mostNested) throw new UserError(`nginx config ${open.files[0]}: is nested more than ${mostNested} deep with its includes, and bakeoff reads no deeper ones`);
  open.total.directives += directives.length;
  const parts = await Promise.all(directives.map(async (directive): Promise<Directive[]> => {
    const { name, args: [pattern], block, line } = directive;
    if (name === 'include' && block === undefined && pattern !== undefined) return included({ from: `${file}:${line}`, name: bareWord(pattern), folder }, open);
    const here = { ...directive, origin: open.origin ?? fromLine(file, line) };
    return [block === undefined ? here : { ...here, block: await withIncludes(block, file, folder, { ...open, depth: open.depth + 1 }) }];
  }));
  return parts.flat();
}

/** By pattern: like what is in the files, their list stays as it was at first. */
const lists = new Map<string, readonly string[]>();

async function included(by: Inclusion, open: Open): Promise<Directive[]> {
  const { folder } = by;
  const pattern = path.resolve(folder, by.name);
  const files = lists.get(pattern) ?? (isGlob(pattern) ? await glob(pattern) : [pattern]);
  lists.set(pattern, files);
  const parts = await Promise.all(files.map(async (file) => {
    const text = await readText(file, by);
    const { total } = open;
    total.files++;
    total.bytes += text.length;
    if (total.files > mostFiles || total.directives > mostDirectives || total.bytes > mostMegabytes * 1e6) {
      throw new UserError(`${by.from}: includes come to more than ${mostFiles} files, ${mostDirectives} directives or ${mostMegabytes} MB, and bakeoff reads no longer ones`);
    }
    const real = await realpath(file);
    if (open.files.includes(real)) throw new UserError(`${by.from}: includes ${file}, which includes this file again`);
    return withIncludes(parseConfig({ origin: file, text }), file, folder, { ...open, files: [...open.files, real], origin: undefined });
  }));
  return parts.flat();
}

function isGlob(pattern: string): boolean {
  return /[*?[]/.test(pattern);
}

/**
 * The paths that an absolute pattern with `*`, `?` and `[…]` matches, as glob(3) with no flags finds them: sorted, hidden
 * names only where the pattern says the dot. Folders that cannot be read match nothing.
 */
export async function glob(pattern: string): Promise<string[]> {
  const [, ...segments] = pattern.split('/');
  let found = ['/'];
  for (const segment of segments.filter((one) => one !== '')) {
    if (!isGlob(segment)) {
      found = found.map((folder) => path.join(folder, segment));
      continue;
    }
    const matches = segmentPattern(segment);
    const lists = await Promise.all(found.map(async (folder) =>
      (await readdir(folder).catch(() => [])).filter((name) => matches.test(name)).map((name) => path.join(folder, name))));
    found = lists.flat();
  }
  const there = await Promise.all(found.map((file) => lstat(file).then(() => [file], () => [])));
  return there.flat().sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
}

function segmentPattern(segment: string): RegExp {
  const source = segment.replace(/\[(?<not>[!^]?)(?<set>\]?[^\]]*)\]|\\?(?<one>.)/gs, (all, not, set, one: string | undefined) => {
    if (set !== undefined) return `[${not ? '^' : ''}${(set as string).replace(/[\\\]^]/g, '\\$&')}]`;
    if (all === '*') return '.*';
    if (all === '?') return '.';
    return (one as string).replace(/[.*+?^${}()|[\]\\/-]/g, '\\$&');
  });
  return new RegExp(`^${segment.startsWith('.') ? '' : '(?!\\.)'}${source}$`, 's');
}
