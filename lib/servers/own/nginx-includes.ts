// A person's nginx config with all that it includes, as one.
import { lstat, readdir, realpath } from 'node:fs/promises';
import path from 'node:path';
import { UserError } from '../../errors.ts';
import { mostMegabytes } from '../config-layers.ts';
import {
  bareWord,
  mostDirectives,
  mostNested,
  parseConfig,
  type Directive,
} from '../nginx-config.ts';
import { fromLine } from './origin.ts';
import { readText, type Inclusion } from './read-text.ts';

/** Includes that include each other double with every file. */
const mostFiles = 10_000;

/** By pattern: the list of files stays as it was at first, as their texts do. */
const lists = new Map<string, readonly string[]>();

/**
 * Reads a config with its includes in their places. The origin of each directive says file and line. Throws UserError for files that
 * cannot be read or include themselves.
 * @param origin of the config's own lines, instead of that
 */
export async function readNginxConfig(
  file: string,
  text: string,
  origin?: string,
): Promise<Directive[]> {
  // Names in included files are relative to it too.
  const folder = path.dirname(file);
  const total = { files: 0, directives: 0, bytes: 0 };
  return withIncludes(parseConfig({ origin: file, text }), file, [await realpath(file)], 0);

  /** @param open files that include each other, from the config to that of the directives; `depth`: blocks in each other over all of them */
  async function withIncludes(
    directives: readonly Directive[],
    from: string,
    open: readonly string[],
    depth: number,
  ): Promise<Directive[]> {
    if (depth > mostNested)
      throw new UserError(
        `nginx config ${open[0]}: is nested more than ${mostNested} deep with its includes, and bakeoff reads no deeper ones`,
      );
    total.directives += directives.length;
    const parts = await Promise.all(
      directives.map(async (directive): Promise<Directive[]> => {
        const {
          name,
          args: [pattern],
          block,
          line,
        } = directive;
        if (name === 'include' && block === undefined && pattern !== undefined)
          return included(
            { from: `${from}:${line}`, name: bareWord(pattern), folder },
            open,
            depth,
          );
        const here = {
          ...directive,
          origin: (open.length === 1 ? origin : undefined) ?? fromLine(from, line),
        };
        return [
          block === undefined
            ? here
            : { ...here, block: await withIncludes(block, from, open, depth + 1) },
        ];
      }),
    );
    return parts.flat();
  }

  async function included(
    by: Inclusion,
    open: readonly string[],
    depth: number,
  ): Promise<Directive[]> {
    const pattern = path.resolve(folder, by.name);
    const files = lists.get(pattern) ?? (isGlob(pattern) ? await glob(pattern) : [pattern]);
    lists.set(pattern, files);
    const parts = await Promise.all(
      files.map(async (other) => {
        const inside = await readText(other, by);
        total.files++;
        total.bytes += inside.length;
        if (
          total.files > mostFiles ||
          total.directives > mostDirectives ||
          total.bytes > mostMegabytes * 1e6
        ) {
          throw new UserError(
            `${by.from}: includes come to more than ${mostFiles} files, ${mostDirectives} directives or ${mostMegabytes} MB, and bakeoff reads no longer ones`,
          );
        }
        const real = await realpath(other);
        if (open.includes(real))
          throw new UserError(`${by.from}: includes ${other}, which includes this file again`);
        return withIncludes(
          parseConfig({ origin: other, text: inside }),
          other,
          [...open, real],
          depth,
        );
      }),
    );
    return parts.flat();
  }
}

function isGlob(pattern: string): boolean {
  return /[*?[]/.test(pattern);
}

/** The paths that match an absolute pattern, as of glob(3) without flags: sorted, hidden names only where the pattern has the dot. */
export async function glob(pattern: string): Promise<string[]> {
  const [, ...segments] = pattern.split('/');
  let found = ['/'];
  for (const segment of segments.filter((one) => one !== '')) {
    if (!isGlob(segment)) {
      found = found.map((folder) => path.join(folder, segment));
      continue;
    }
    const matches = segmentPattern(segment);
    const lists = await Promise.all(
      found.map(async (folder) =>
        (await readdir(folder).catch(() => []))
          .filter((name) => matches.test(name))
          .map((name) => path.join(folder, name)),
      ),
    );
    found = lists.flat();
  }
  const there = await Promise.all(
    found.map((file) =>
      lstat(file).then(
        () => [file],
        () => [],
      ),
    ),
  );
  return there.flat().sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
}

function segmentPattern(segment: string): RegExp {
  const source = segment.replace(
    /\[(?<not>[!^]?)(?<set>\]?[^\]]*)\]|\\?(?<one>.)/gs,
    (all, not, set, one: string | undefined) => {
      if (set !== undefined)
        return `[${not ? '^' : ''}${(set as string).replace(/[\\\]^]/g, '\\$&')}]`;
      if (all === '*') return '.*';
      if (all === '?') return '.';
      return (one as string).replace(/[.*+?^${}()|[\]\\/-]/g, '\\$&');
    },
  );
  return new RegExp(`^${segment.startsWith('.') ? '' : '(?!\\.)'}${source}$`, 's');
}
