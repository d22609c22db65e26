// Reads, merges and prints nginx.conf with its includes.
import { lstatSync } from 'node:fs';
import path from 'node:path';
import { addressIn, UserError, wordIn } from '../errors.ts';
import { ifThere } from '../files.ts';
import { atLeast } from '../setup/machine.ts';
import {
  mostConfigBytes,
  namesToInclude,
  readIncluded,
  realPathOf,
  type Inclusion,
  type Layer,
} from './config-files.ts';
import type { Build } from './server.ts';

export interface Directive {
  /** The name without quotes. */
  name: string;
  /** Arguments as written, with quotes. */
  args: readonly string[];
  block?: Directive[];
  /** The text of a block of Lua code. */
  code?: string;
  origin: string;
}

/**
 * Lays layers over the first one. A directive replaces earlier ones of its name in its block. Blocks of the same name and arguments are
 * merged.
 */
export function composeConfig(layers: readonly (readonly Directive[])[]): Directive[] {
  return layers.reduce<Directive[]>(merge, []);
}

function merge(base: readonly Directive[], layer: readonly Directive[]): Directive[] {
  const merged: Directive[] = [];
  const taken = new Set<Directive>();
  for (const earlier of base) {
    const same = layer.filter((later) => takesPlace(later, earlier));
    const fresh = same.filter((later) => !taken.has(later));
    for (const later of fresh) taken.add(later);
    if (earlier.block !== undefined) {
      const block = fresh.reduce((inner, later) => merge(inner, later.block ?? []), earlier.block);
      merged.push({ ...earlier, block });
    } else if (same.length === 0) merged.push(earlier);
    else merged.push(...fresh);
  }
  // New directives follow the last one without a block.
  const added = layer.filter((directive) => !taken.has(directive));
  merged.splice(merged.findLastIndex(isSimple) + 1, 0, ...added.filter(isSimple));
  return [...merged, ...added.filter((directive) => !isSimple(directive))];
}

function isSimple({ block }: Directive): boolean {
  return block === undefined;
}

function takesPlace(later: Directive, earlier: Directive): boolean {
  return (
    later.name === earlier.name &&
    isSimple(later) === isSimple(earlier) &&
    (isSimple(later) || later.args.join(' ') === earlier.args.join(' '))
  );
}

/** Returns the text of a config, each line with its origin as a comment. */
export function printConfig(directives: readonly Directive[], indent = ''): string {
  return directives
    .map((directive) => {
      const { block, code } = directive;
      const [written, origin] = [indent + asWritten(directive), `  # ${directive.origin}\n`];
      if (code !== undefined) return `${written} {${code}}${origin}`;
      if (block === undefined) return `${written};${origin}`;
      return `${written} {${origin}${printConfig(block, `${indent}    `)}${indent}}\n`;
    })
    .join('');
}

/** A directive as the config has it, up to its ";" or "{". */
export function asWritten({ name, args }: Directive): string {
  return [asWord(name), ...args].join(' ');
}

/** Finds directives by name in any block. */
export function findDirectives(directives: readonly Directive[], name: string): Directive[] {
  return directives.flatMap((directive) => {
    const inside = findDirectives(directive.block ?? [], name);
    return directive.name === name ? [directive, ...inside] : inside;
  });
}

export function quoted(text: string): string {
  return `"${text.replace(/["\\]/g, '\\$&')}"`;
}

/** A word, in quotes only if it needs them. */
export function asWord(text: string): string {
  if (/^(?![#"'])[^\s{};]*[^\s{};\\]$/.test(text) && bareWord(text) === text) return text;
  return quoted(text);
}

/** The value of a word: without quotes, and with escapes undone. */
export function bareWord(word: string): string {
  const inner = /^(["'])(.*)\1$/s.exec(word)?.[2] ?? word;
  return inner.replace(
    /\\(["'\\trn])/g,
    (_, escaped: string) => ({ t: '\t', r: '\r', n: '\n' })[escaped] ?? escaped,
  );
}

/** Arguments that log to standard error from the start, because the server's user may not write the log that nginx was built with. */
export function logArgs({ version }: Build): string[] {
  return atLeast(version, '1.19.5') ? ['-e', 'stderr'] : [];
}

/** The modules of a build that have a directive NAME_temp_path. */
export function tempModules({ answer }: Build): string[] {
  return ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].filter(
    (module) => !answer.includes(`--without-http_${module}_module`),
  );
}

/**
 * Comments, `{`, `}`, `;`, and words. A bare word may contain `${`, `}` and a no-break space. All loops in the pattern are bounded, or
 * repeat single letters: other loops would need memory for each letter.
 */
const tokenPattern =
  /#[^\n]*|[{};]|"[^"\\]*(?:\\.[^"\\]*){0,4096}"|'[^'\\]*(?:\\.[^'\\]*){0,4096}'|(?:\\.|\$\{|[^ \t\r\n{};"'\\])[^ \t\r\n{;\\$]*(?:(?:\\.|\$\{|\$)[^ \t\r\n{;\\$]*){0,4096}|[^ \t\r\n]/gs;

/** Same limit as nginx (NGX_CONF_BUFFER). */
const longestWord = 4096;
/** Far more levels than a config has. */
const mostNested = 100;

/** Braces of Lua code, and the beginnings of its comments and texts. */
const luaPattern = /--\[=*\[|--|\[=*\[|["'{}]/g;

function endOfLua(text: string, start: number): number {
  const parts = new RegExp(luaPattern);
  parts.lastIndex = start;
  let depth = 1;
  for (let match = parts.exec(text); match !== null; match = parts.exec(text)) {
    const { 0: part, index } = match;
    if (part === '{') depth++;
    else if (part !== '}') parts.lastIndex = endOfLuaText(text, part, parts.lastIndex);
    else if (--depth === 0) return index;
  }
  return -1;
}

/** Returns the end of a comment or string of Lua; the end of the text if it is not closed. @param begin the sign that begins it */
function endOfLuaText(text: string, begin: string, start: number): number {
  const long = /\[(=*)\[$/.exec(begin)?.[1];
  if (long === undefined && begin !== '--') return endOfLuaString(text, begin, start);
  const end = long === undefined ? '\n' : `]${long}]`;
  const index = text.indexOf(end, start);
  return index === -1 ? text.length : index + end.length;
}

function endOfLuaString(text: string, quote: string, start: number): number {
  const ends = /\\.|["'\n]/gs;
  ends.lastIndex = start;
  for (let match = ends.exec(text); match !== null; match = ends.exec(text))
    if (match[0] === quote || match[0] === '\n') return ends.lastIndex;
  return text.length;
}

/** Returns the directives of a text; includes stay as they are. Throws UserError with file and line for unbalanced braces or quotes. */
export function parseConfig({ file, text, origin }: Layer): Directive[] {
  const top: Directive[] = [];
  const open: Directive[][] = [top];
  let words: string[] = [];
  let line = 1;
  let begin = 1;
  let scanned = 0;
  const fail = (problem: string) => {
    throw new UserError(`nginx config ${file}:${line}: ${problem}`);
  };
  const requireEnded = ([first]: readonly string[]) => {
    if (first !== undefined) fail(`"${wordIn(first)}" and its words do not end with ";"`);
  };
  const tokens = new RegExp(tokenPattern);
  for (let match = tokens.exec(text); match !== null; match = tokens.exec(text)) {
    const { 0: token, index } = match;
    line += text.slice(scanned, index).split('\n').length - 1;
    scanned = index + token.length;
    if (token.startsWith('#')) continue;
    if (token.length > longestWord) fail(`has a word of more than ${longestWord} letters`);
    if (token === ';' || token === '{') {
      const [first = fail(`"${token}" without a directive`), ...args] = words;
      const name = bareWord(first);
      const directive: Directive = { name, args, origin: origin ?? `${file}:${begin}` };
      open.at(-1)?.push(directive);
      if (token === '{' && name.endsWith('_by_lua_block')) {
        const end = endOfLua(text, scanned);
        if (end < 0) fail('"{" without its "}"');
        directive.code = text.slice(scanned, end);
        line += directive.code.split('\n').length - 1;
        scanned = tokens.lastIndex = end + 1;
      } else if (token === '{') {
        if (open.length > mostNested) fail(`is nested more than ${mostNested} deep`);
        open.push((directive.block = []));
      }
      words = [];
    } else if (token === '}') {
      requireEnded(words);
      if (open.length === 1) fail('"}" without its "{"');
      open.pop();
    } else if (token === '"' || token === "'") {
      fail(`${token} without its end`);
    } else {
      if (words.length === 0) begin = line;
      line += token.split('\n').length - 1;
      if (token.includes('\uFFFD')) fail('is not UTF-8 text');
      words.push(token);
    }
  }
  requireEnded(words);
  if (open.length > 1) fail('"{" without its "}"');
  return top;
}

/** The files that match an include's pattern, as first found. */
const lists = new Map<string, readonly string[]>();

/**
 * Reads a config with its includes in their places. Throws UserError for files that cannot be read or that include themselves.
 * @param folder the base of relative names, also in included files
 */
export async function readNginxConfig(
  layer: Layer,
  folder = path.dirname(layer.file),
): Promise<Directive[]> {
  let letters = layer.text.length;
  return withIncludes(parseConfig(layer), [await realPathOf(layer.file)]);

  async function withIncludes(directives: readonly Directive[], open: readonly string[]) {
    const all: Directive[] = [];
    for (const directive of directives) {
      const { name, args, block, origin } = directive;
      if (block !== undefined) all.push({ ...directive, block: await withIncludes(block, open) });
      else if (name !== 'include' || args[0] === undefined) all.push(directive);
      else for (const line of await included(origin, bareWord(args[0]), open)) all.push(line);
    }
    return all;
  }

  async function included(from: string, name: string, open: readonly string[]) {
    const pattern = path.resolve(folder, name);
    const files =
      lists.get(pattern) ?? (isGlob(pattern) ? glob(pattern, { from, name }) : [pattern]);
    lists.set(pattern, files);
    const all: Directive[] = [];
    for (const file of files) {
      const inside = await readIncluded(file, { from, name }, open);
      letters += inside.text.length;
      // A file may be included many times.
      if (letters > mostConfigBytes)
        throw new UserError(
          `${from}: the config has more than ${mostConfigBytes / 1e6} MB with its includes: take a smaller one`,
        );
      const inner = await withIncludes(parseConfig({ file, text: inside.text }), inside.open);
      for (const directive of inner) all.push(directive);
    }
    return all;
  }
}

function isGlob(pattern: string): boolean {
  return /[*?[]/.test(pattern);
}

/** A link to a folder around it multiplies the paths. */
const mostFound = 10_000;

/** Returns the sorted paths that match an absolute pattern. Hidden names match only if the pattern has the dot. */
function glob(pattern: string, by: Inclusion): string[] {
  let paths = ['/'];
  for (const segment of pattern.split('/').filter((part) => part !== '')) {
    const matches = globPattern(segment);
    paths = paths.flatMap((folder) => {
      const names = isGlob(segment)
        ? namesToInclude(folder, by).filter((name) => matches.test(name))
        : [segment];
      return names.map((name) => path.join(folder, name));
    });
    if (paths.length > mostFound)
      throw new UserError(
        `${by.from}: includes ${addressIn(by.name)}, which has more than ${mostFound} paths to look at: name fewer`,
      );
  }
  return paths.filter((file) => ifThere(() => lstatSync(file)) !== undefined).sort();
}

/** Returns a pattern for names that match a part of a path's pattern, as in glob(7). */
export function globPattern(segment: string): RegExp {
  // The patterns between the stars.
  const parts = [''];
  for (const [sign] of segment.matchAll(/\[!?\]?[^\]]*\]|\*+|[^]/g))
    if (sign.startsWith('*')) parts.push('');
    else parts.push(parts.pop() + letterPattern(sign));
  const [first = '', ...others] = parts;
  const last = others.pop();
  // Each part matches at its first possible place and does not move again (as in an atomic group): a later place is never better.
  const inner = others.map((part, at) => `(?=(?<part${at}>.*?${part}))\\k<part${at}>`);
  const end = last === undefined ? '' : `${inner.join('')}.*${last}`;
  try {
    return new RegExp(`^${segment.startsWith('.') ? '' : '(?!\\.)'}${first}${end}$`, 's');
  } catch {
    // A reversed range, such as [z-a].
    return /(?!)/;
  }
}

/** @param sign a letter, `?`, or letters in brackets */
function letterPattern(sign: string): string {
  if (sign === '?') return '.';
  const [, not, letters] = /^\[(!?)([^]+)\]$/.exec(sign) ?? [];
  if (letters === undefined) return sign.replace(/[\\^$.*+?()[\]{}|]/, '\\$&');
  return `[${not && '^'}${letters.replace(/[\\\]^[]/g, '\\$&')}]`;
}
