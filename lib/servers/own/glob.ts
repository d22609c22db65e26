import { lstat, readdir } from 'node:fs/promises';
import path from 'node:path';

export function isGlob(pattern: string): boolean {
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
