// Reads nginx.conf with its includes, merges and prints it.
import { lstat, readdir, realpath } from 'node:fs/promises';
import path from 'node:path';
import { UserError } from '../errors.ts';
import { atLeast } from '../setup/machine.ts';
import { type ConfigLayer, mostMegabytes } from './config-layers.ts';
import { type Inclusion, fromLine, readText } from './own/files.ts';
import type { Build } from './server.ts';

/** A directive with its place of origin. `block` is there when it has braces. */
export interface Directive {
  /** Without quotes. */
  name: string;
  /** As written, quotes included. */
  args: readonly string[];
  block?: Directive[];
  /** The text of a block that is code (Lua). */
  code?: string;
  /** Comment lines about it, `#` included. */
  comments: readonly string[];
  origin: string;
  /** Of its first word, in its origin. */
  line: number;
}

/**
 * Lays the layers over each other, the first is the base. A directive takes the place of all earlier ones of its name in
 * the same block; blocks of the same name and arguments become one.
 */
export function composeConfig(layers: readonly (readonly Directive[])[]): Directive[] {
  return layers.reduce<Directive[]>(merge, []);
}

/** The composed file's text. A line that is not the base's names its file. */
export function printConfig(directives: readonly Directive[], base: string, depth = 0): string {
  const indent = '    '.repeat(depth);
  return directives
    .map((directive) => {
      const comments = directive.comments.map((comment) => `${indent}${comment}\n`).join('');
      const words = asWritten(directive);
      const origin = directive.origin === base ? '' : `  # ${directive.origin}`;
      if (directive.code !== undefined)
        return `${comments}${indent}${words} {${directive.code}}${origin}\n`;
      if (directive.block === undefined) return `${comments}${indent}${words};${origin}\n`;
      return `${comments}${indent}${words} {${origin}\n${printConfig(directive.block, base, depth + 1)}${indent}}\n`;
    })
    .join('');
}

/** Its words up to the ";" or "{". */
export function asWritten({ name, args }: Pick<Directive, 'name' | 'args'>): string {
  return [asWord(name), ...args].join(' ');
}

/** All directives of that name, in any block. */
export function findDirectives(directives: readonly Directive[], name: string): Directive[] {
  return directives.flatMap((directive) => [
    ...(directive.name === name ? [directive] : []),
    ...findDirectives(directive.block ?? [], name),
  ]);
}

/** A word in quotes, as nginx's grammar has it. */
export function quoted(text: string): string {
  return `"${text.replace(/["\\]/g, '\\$&')}"`;
}

/** The same, in quotes only where it needs them. */
export function asWord(text: string): string {
  return /^(?![#"'])[^\s{};]*[^\s{};\\]$/.test(text) && bareWord(text) === text
    ? text
    : quoted(text);
}

/** The value of a word: without quotes, escapes undone. */
export function bareWord(word: string): string {
  const inner = /^(["'])(.*)\1$/s.exec(word)?.[2] ?? word;
  return inner.replace(
    /\\(["'\\trn])/g,
    (_, escaped: string) => ({ t: '\t', r: '\r', n: '\n' })[escaped] ?? escaped,
  );
}

/** Arguments that have nginx log to its standard error from its start: the build's own log may be closed to the server's user. */
export function logArgs({ version }: Build): string[] {
  return atLeast(version, '1.19.5') ? ['-e', 'stderr'] : [];
}

/** The modules of a build that keep temporary files: each has a directive NAME_temp_path. */
export function tempModules({ answer }: Build): string[] {
  return [
    'client_body',
    ...['proxy', 'fastcgi', 'uwsgi', 'scgi'].filter(
      (module) => !answer.includes(`--without-http_${module}_module`),
    ),
  ];
}

function merge(base: readonly Directive[], layer: readonly Directive[]): Directive[] {
  const merged = base.flatMap((earlier) => {
    const later = layer.filter((one) => takesPlace(one, earlier));
    if (later.length === 0) return [earlier];
    const isFirst = base.find((one) => takesPlace(one, earlier)) === earlier;
    if (earlier.block === undefined) return isFirst ? later : [];
    return isFirst
      ? [
          {
            ...earlier,
            block: later.reduce((inner, { block = [] }) => merge(inner, block), earlier.block),
          },
        ]
      : [earlier];
  });
  const fresh = layer.filter((one) => !base.some((earlier) => takesPlace(one, earlier)));
  // New directives stand after the last one without a block, new blocks at the end.
  merged.splice(merged.findLastIndex(isSimple) + 1, 0, ...fresh.filter(isSimple));
  return [...merged, ...fresh.filter((one) => !isSimple(one))];
}

function isSimple(directive: Directive): boolean {
  return directive.block === undefined;
}

/** Whether a directive replaces an earlier one, or a block goes into it: it has the same arguments. */
function takesPlace(later: Directive, earlier: Directive): boolean {
  return (
    later.name === earlier.name &&
    isSimple(later) === isSimple(earlier) &&
    (isSimple(later) || later.args.join(' ') === earlier.args.join(' '))
  );
}

/**
 * One token of nginx's grammar: a comment, one of `{ } ;`, or a word (quoted, or bare with `${name}` in it; a bare one may
 * have `}` in it, which does not end it). Only these four are blanks: a no-break space is a part of a word.
 */
const tokenPattern =
  /#[^\n]*|[{};]|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|(?:\\.|\$\{[^}]*\}|[^ \t\r\n{};"'\\])(?:\\.|\$\{[^}]*\}|[^ \t\r\n{;\\])*|[^ \t\r\n]/gs;

/** Comments and strings of Lua, and braces. */
const luaPattern =
  /--\[(=*)\[.*?(?:\]\1\]|$)|--[^\n]*|\[(=*)\[.*?(?:\]\2\]|$)|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|[{}]/gs;

/** The place of the brace that closes a Lua block whose text begins at `start`; -1 where none does. */
function endOfLua(text: string, start: number): number {
  let depth = 1;
  for (const { 0: part, index } of text.slice(start).matchAll(luaPattern)) {
    if (part === '{') depth++;
    if (part === '}' && --depth === 0) return start + index;
  }
  return -1;
}

/** Far more than configs have: a stranger's may be made to be read for ever. */
export const mostNested = 100;
export const mostDirectives = 1_000_000;

/** The directives of one text. Throws UserError with file and line for unbalanced braces or quotes, and for a text beyond these bounds. */
export function parseConfig({ origin, text }: ConfigLayer): Directive[] {
  const top: Directive[] = [];
  const open: Directive[][] = [top];
  let words: string[] = [];
  let comments: string[] = [];
  let last: Directive | undefined;
  let line = 1;
  let begin = 1;
  let scanned = 0;
  let count = 0;
  const fail = (problem: string): never => {
    throw new UserError(`nginx config ${origin}:${line}: ${problem}`);
  };
  const tokens = new RegExp(tokenPattern);
  const next = (): RegExpExecArray | null => {
    try {
      return tokens.exec(text);
    } catch {
      // Its stack is used up.
      return fail('the next word is too long to be read');
    }
  };
  for (let found = next(); found !== null; found = next()) {
    const { 0: token, index } = found;
    const breaks = text.slice(scanned, index).split('\n').length - 1;
    line += breaks;
    scanned = index + token.length;
    if (token.startsWith('#')) {
      if (last !== undefined && words.length === 0 && breaks === 0) {
        last.comments = [...last.comments, token.trimEnd()]; // At the end of the line of what it is about.
        continue;
      }
      // Comments above a blank line are about the file or the block.
      if (breaks > 1) comments = [];
      comments.push(token.trimEnd());
    } else if (token === ';' || token === '{') {
      const [first = fail(`"${token}" without a directive`), ...args] = words;
      const name = bareWord(first);
      const directive: Directive = { name, args, comments, origin, line: begin };
      open.at(-1)?.push(directive);
      if (++count > mostDirectives)
        fail(`has more than ${mostDirectives} directives, and bakeoff reads no longer ones`);
      last = directive;
      if (token === '{' && name.endsWith('_by_lua_block')) {
        const end = endOfLua(text, scanned);
        if (end < 0) fail('"{" without its "}"');
        directive.code = text.slice(scanned, end);
        line += directive.code.split('\n').length - 1;
        scanned = tokens.lastIndex = end + 1;
      } else if (token === '{') {
        open.push((directive.block = []));
        if (open.length > mostNested + 1)
          fail(`is nested more than ${mostNested} deep, and bakeoff reads no deeper ones`);
      }
      words = [];
      comments = [];
    } else if (token === '}') {
      if (words.length > 0) fail(`"${words.join(' ')}" does not end with ";"`);
      if (open.length === 1) fail('"}" without its "{"');
      open.pop();
      comments = [];
    } else if (token === '"' || token === "'") {
      fail(`${token} without its end`);
    } else {
      if (words.length === 0) begin = line;
      line += token.split('\n').length - 1;
      if (token.includes('\uFFFD')) fail('is not UTF-8 text');
      words.push(token);
    }
  }
  if (words.length > 0) fail(`"${words.join(' ')}" does not end with ";"`);
  if (open.length > 1) fail('"{" without its "}"');
  return top;
}

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
