// h2o's YAML: parsed within bounds, and a user's config with its !file includes as a tree with the origin of each part.
import { realpath } from 'node:fs/promises';
import path from 'node:path';
import {
  type Alias,
  CST,
  type Document,
  Lexer,
  LineCounter,
  type Node,
  Parser,
  isAlias,
  isMap,
  isScalar,
  isSeq,
  parseDocument,
  visit,
} from 'yaml';
import { UserError } from '../../errors.ts';
import { type Inclusion, fromLine, readText } from './files.ts';

/** Some fifty times as long as a config; the parser takes seconds for it at worst. */
const mostBytes = 256_000;
const mostNested = 100;

/**
 * Throws UserError with file and line when it is too long, nested too deeply, or not YAML.
 * @param schema as parseDocument's: failsafe leaves all scalars text
 */
export function parseYaml(
  file: string,
  text: string,
  schema: 'core' | 'failsafe',
  lineCounter = new LineCounter(),
): Document.Parsed {
  if (text.length > mostBytes)
    throw new UserError(
      `h2o config ${file} has more than ${mostBytes / 1000} kB, and bakeoff reads no longer ones`,
    );
  if (isTooDeep(text))
    throw new UserError(
      `h2o config ${file} is nested more than ${mostNested} deep, and bakeoff reads no deeper ones`,
    );
  const document = parseDocument(text, {
    schema,
    uniqueKeys: schema === 'core',
    logLevel: 'silent',
    lineCounter,
  });
  const [error] = document.errors;
  if (error !== undefined) {
    throw new UserError(
      `h2o config ${file}:${error.linePos?.[0].line ?? 1}: ${error.message.split('\n')[0]?.replace(/ at line \d+, column \d+:?$/, '')}`,
    );
  }
  return document;
}

/** parseDocument calls itself for each level, which Node may break off instead of throwing. */
function isTooDeep(text: string): boolean {
  const parser = new Parser();
  let unended = 0;
  for (const word of new Lexer().lex(text)) {
    Array.from(parser.next(word));
    // Brackets that indentation ends, though it may not.
    if (word === CST.FLOW_END) unended++;
    if (unended + parser.stack.filter((token) => 'items' in token).length > mostNested + 1)
      return true;
  }
  return false;
}

/** As h2o reads it: all scalars are text. `origin` as fromLine gives it, or `ours`. */
export type Tree = { origin: string } & (
  | { kind: 'text'; text: string; tag?: string }
  | { kind: 'list'; items: Tree[] }
  | { kind: 'map'; pairs: Pair[] }
);

/** A mapping may have a key several times: h2o takes them one after another. `origin`: the key's. */
export interface Pair {
  key: string;
  origin: string;
  value: Tree;
}

export type MapTree = Extract<Tree, { kind: 'map' }>;
export type Text = Extract<Tree, { kind: 'text' }>;

/** Of a config with all aliases and !file replaced: aliases of aliases double with each. */
const mostMegabytes = 4;
/** Counted for each value beside its text, and for each file. */
const lineBytes = 40;
const fileBytes = 4000;

/** Reads the tree. Names in !file are relative to the config's folder. Throws UserError with file and line. */
export async function readYaml(file: string, text: string): Promise<MapTree> {
  const folder = path.dirname(file);
  let bytes = 0;
  const tree = await treeOf(file, text, [await realpath(file)]);
  if (tree.kind !== 'map')
    throw new UserError(`h2o config ${file}:1: is not a YAML mapping, as h2o's configs are`);
  return tree;

  /** @param from FILE:LINE of a value */
  function expand(more: number, from: string): void {
    bytes += more;
    if (bytes > mostMegabytes * 1e6)
      throw new UserError(
        `h2o config ${from}: its aliases and includes come to more than ${mostMegabytes} MB, and bakeoff reads no longer ones`,
      );
  }

  async function included(by: Inclusion, open: readonly string[]): Promise<Tree> {
    expand(fileBytes, by.from);
    const other = path.resolve(folder, by.name);
    const inside = await readText(other, by);
    const real = await realpath(other);
    if (open.includes(real))
      throw new UserError(`${by.from}: includes ${other}, which includes this file again`);
    return treeOf(other, inside, [...open, real]);
  }

  /** @param open files that include each other, from the config to this one */
  async function treeOf(file: string, text: string, open: readonly string[]): Promise<Tree> {
    const lines = new LineCounter();
    const document = parseYaml(file, text, 'failsafe', lines);
    const meanings = meaningsOf(document);
    const lineOf = (node: Node): number => lines.linePos(node.range?.[0] ?? 0).line;
    return document.contents === null
      ? { kind: 'text', text: '', origin: fromLine(file, 1) }
      : convert(document.contents, 1);

    /** @param above the line of the node's parent, for an empty node */
    async function convert(node: Node, above: number): Promise<Tree> {
      const line = node.range?.[0] === node.range?.[1] ? above : lineOf(node);
      const origin = fromLine(file, line);
      expand(lineBytes + (isScalar(node) ? String(node.value ?? '').length : 0), `${file}:${line}`);
      if (isAlias(node)) {
        const meant = meanings.get(node);
        if (meant === undefined)
          throw new UserError(
            `h2o config ${file}:${line}: *${node.source} stands for nothing above it`,
          );
        // Its anchor ends behind it.
        if ((meant.range?.[1] ?? 0) > (node.range?.[0] ?? 0))
          throw new UserError(
            `h2o config ${file}:${line}: *${node.source} stands inside of what it stands for`,
          );
        return convert(meant, line);
      }
      if (isMap(node)) {
        const pairs: Pair[] = [];
        for (const { key, value } of node.items as { key: Node; value: Node | null }[]) {
          if (!isScalar(key))
            throw new UserError(`h2o config ${file}:${lineOf(key)}: a key has to be a word`);
          const keyOrigin = fromLine(file, lineOf(key));
          const tree: Tree =
            value === null
              ? { kind: 'text', text: '', origin: keyOrigin }
              : await convert(value, lineOf(key));
          pairs.push({ key: String(key.value), origin: keyOrigin, value: tree });
        }
        return { kind: 'map', pairs: merged(pairs), origin };
      }
      if (isSeq(node)) {
        const items: Tree[] = [];
        for (const item of node.items as Node[]) items.push(await convert(item, line));
        return { kind: 'list', items, origin };
      }
      const value = isScalar(node) ? String(node.value ?? '') : '';
      if (value.includes('\uFFFD'))
        throw new UserError(`h2o config ${file}:${line}: is not UTF-8 text`);
      if (node.tag === '!file')
        return included({ from: `${file}:${line}`, name: value, folder }, open);
      return {
        kind: 'text',
        text: value,
        origin,
        ...(node.tag?.startsWith('!') ? { tag: node.tag } : {}),
      };
    }
  }
}

/** What each alias stands for: the last node above it with its anchor. */
function meaningsOf(document: Document): ReadonlyMap<Alias, Node> {
  const anchored = new Map<string, Node>();
  const meanings = new Map<Alias, Node>();
  visit(document, {
    Node(_, node) {
      const meant = isAlias(node) ? anchored.get(node.source) : undefined;
      if (isAlias(node) && meant !== undefined) meanings.set(node, meant);
      if (!isAlias(node) && node.anchor !== undefined) anchored.set(node.anchor, node);
    },
  });
  return meanings;
}

/** With the pairs of merge keys (<<), unless their keys are there already. */
function merged(pairs: readonly Pair[]): Pair[] {
  const own = new Set(pairs.map(({ key }) => key));
  return pairs.flatMap((pair) => {
    if (pair.key !== '<<') return [pair];
    const brought = (pair.value.kind === 'list' ? pair.value.items : [pair.value]).flatMap((one) =>
      one.kind === 'map' ? one.pairs : [],
    );
    return brought.filter(({ key }) => {
      const fresh = !own.has(key);
      own.add(key);
      return fresh;
    });
  });
}

/** All pairs, at any depth. */
export function pairsIn(tree: Tree): Pair[] {
  if (tree.kind === 'text') return [];
  return tree.kind === 'list'
    ? tree.items.flatMap(pairsIn)
    : tree.pairs.flatMap((pair) => [pair, ...pairsIn(pair.value)]);
}

/** Whether both mean the same to h2o. The order of different keys does not matter. */
export function sameMeaning(a: Tree, b: Tree): boolean {
  if (a.kind === 'text' && b.kind === 'text') return a.text === b.text && a.tag === b.tag;
  if (a.kind === 'list' && b.kind === 'list')
    return (
      a.items.length === b.items.length &&
      a.items.every((item, index) => sameMeaning(item, b.items[index] as Tree))
    );
  if (a.kind !== 'map' || b.kind !== 'map' || a.pairs.length !== b.pairs.length) return false;
  const [ours, others] = [a, b].map(({ pairs }) =>
    [...pairs].sort((one, other) => (one.key < other.key ? -1 : Number(one.key > other.key))),
  ) as [Pair[], Pair[]];
  return ours.every(
    ({ key, value }, index) =>
      key === others[index]?.key && sameMeaning(value, others[index].value),
  );
}

/** YAML, one value a line, with its origin as a comment. */
export function printYaml(tree: Exclude<Tree, Text>, indent = ''): string {
  const parts =
    tree.kind === 'list'
      ? tree.items.map((value) => ({ begin: '-', origin: value.origin, value }))
      : tree.pairs.map(({ key, origin, value }) => ({
          begin: `${plain.test(key) ? key : JSON.stringify(key)}:`,
          origin,
          value,
        }));
  return parts
    .map(({ begin, origin, value }) => {
      if (value.kind === 'text') return `${indent}${begin} ${wordOf(value)}  # ${value.origin}\n`;
      const inside = printYaml(value, `${indent}  `);
      const none = value.kind === 'list' ? ' []' : ' {}';
      return `${indent}${begin}${inside === '' ? none : ''}  # ${origin}\n${inside}`;
    })
    .join('');
}

const plain = /^[\w/][\w./@+-]*$/;

/** JSON strings are YAML's, and h2o takes quoted text as plain text. */
function wordOf({ text, tag }: Text): string {
  return `${tag === undefined ? '' : `${tag} `}${plain.test(text) ? text : JSON.stringify(text)}`;
}
