// Several pages of one server, each with its share of the requests: as a file lists them, and as k6 is told of them.
import { UserError } from '../errors.ts';
import { textOfFile } from './load/values.ts';
import type { Page } from './model.ts';
import { defaultPort, pathOrUrl, type UrlParts } from './url.ts';

/** By path, in the order of the list. */
export type PageWeights = NonNullable<Page['weights']>;

/** Of all pages. */
export function pagePaths({ path, weights }: Pick<Page, 'path' | 'weights'>): string[] {
  return weights === undefined ? [path] : Object.keys(weights);
}

export interface PageList {
  /** Its first page, and the address where a line names one. */
  url: Partial<UrlParts> & { path: string };
  /** Absent where there is one page only. */
  weights?: PageWeights;
}

export const mostPages = 100_000;
export const mostWeight = 1_000_000_000;
const mostListBytes = 16 * 1024 ** 2;

/**
 * Reads a list of pages: on each line a path or a URL, and a whole number, its weight, which is 1 when left out.
 * @param flag as the person wrote it, e.g. `--urls`
 * @throws UserError (exit code 2) that names the line
 */
export function readPageList(flag: string, file: string): PageList {
  const list = `${flag} ${file}`;
  const weights = new Map<string, number>();
  let first: { line: number; target: string; parts: UrlParts } | undefined;
  let port: number | undefined;
  for (const [index, line] of textOfFile(flag, file, mostListBytes)
    .replace(/^\uFEFF/, '')
    .split(/\r?\n/)
    .entries()) {
    const [target, weight = '1', more] = line
      .replace(/(^|\s)#.*$/, '')
      .trim()
      .split(/\s+/);
    if (target === undefined || target === '') continue;
    const where = `${list}, line ${index + 1}`;
    if (more !== undefined)
      throw new UserError(`${where}: "${more}" is too much: give a path or URL, and its weight`, 2);
    if (/^\d+$/.test(target) && /^(\/|https?:)/.test(weight))
      throw new UserError(`${where}: the weight comes second: ${weight} ${target}`, 2);
    const number = Number(weight);
    if (!/^\d+$/.test(weight) || number < 1 || number > mostWeight)
      throw new UserError(
        `${where}: the weight "${weight}" has to be a whole number from 1 to ${mostWeight}`,
        2,
      );
    const parts = pathOrUrl(target, where);
    if (parts.scheme !== undefined) {
      first ??= { line: index + 1, target, parts };
      port ??= parts.port;
      if (addressOf(parts) !== addressOf(first.parts)) {
        throw new UserError(
          `${where}: ${target} has another scheme, host or port than ${first.target} (line ${first.line}): all pages have to be one server's`,
          2,
        );
      }
    }
    const sum = number + (weights.get(parts.path) ?? 0);
    if (sum > mostWeight)
      throw new UserError(
        `${where}: ${parts.path} has a weight of more than ${mostWeight} in all: give smaller ones`,
        2,
      );
    weights.set(parts.path, sum);
    if (weights.size > mostPages)
      throw new UserError(`${where}: more than ${mostPages} pages are too many: leave some out`, 2);
  }
  const [path] = weights.keys();
  if (path === undefined)
    throw new UserError(
      `${list} has no page: write one a line, such as /index.html, or /index.html 3 with its weight`,
      2,
    );
  return {
    url: { ...first?.parts, ...(port === undefined ? {} : { port }), path },
    ...(weights.size === 1 ? {} : { weights: Object.fromEntries(weights) }),
  };
}

function addressOf({ scheme, host, port }: UrlParts): string {
  return JSON.stringify([scheme, host, port ?? defaultPort[scheme]]);
}
