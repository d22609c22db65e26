// h2o's YAML: a user's config with !file includes, as a tree with origins.
import path from 'node:path';
import {
  isAlias,
  isMap,
  isScalar,
  isSeq,
  Lexer,
  LineCounter,
  parseDocument,
  type Document,
  type Node,
  type YAMLMap,
} from 'yaml';
import { addressIn, UserError, withShortQuotes, wordIn } from '../../errors.ts';
import { ours, readIncluded, realPathOf, type Layer } from '../config-files.ts';

/** More than a config has. A million takes the parser a second. */
const mostLetters = 4e6;
/** More than a config has. */
const mostNested = 100;
/** More than a config has. Aliases of aliases multiply. */
const mostValues = 1e6;

/** @throws UserError before the parser, which calls itself for each level, runs out of stack */
function requireShallow(file: string, text: string): void {
  let [line, indent, values, depth] = [1, 0, 0, 0];
  let isIndent = true;
  for (const token of new Lexer().lex(text)) {
    if ('[{'.includes(token)) depth++;
    if (']}'.includes(token)) depth--;
    // The lexer puts a sign of its own, 0x02, before a document.
    isIndent = /^\r?\n$/.test(token) || (isIndent && /^(?: *|[-?:\x02\uFEFF])$/.test(token));
    if (token.endsWith('\n')) indent = values = 0;
    else if (isIndent) indent += token.length;
    else if (token === ':' && depth < 1) values++;
    if (depth > mostNested || values > mostNested || indent > 2 * mostNested)
      throw new UserError(`h2o config ${file}:${line}: is nested more than ${mostNested} deep`);
    line += token.split('\n').length - 1;
  }
}

function parse({ file, text }: Layer, lineCounter: LineCounter): Document.Parsed {
  requireShallow(file, text);
  const document = documentOf(file, text, lineCounter);
  const [error] = document.errors;
  if (error !== undefined) {
    const line = lineCounter.linePos(error.pos[0]).line || 1;
    // Unquoted, the file's text is at the end.
    const problem = withShortQuotes(error.message).replace(/(?<=\w: )\S.*/, addressIn);
    throw new UserError(`h2o config ${file}:${line}: ${problem}`);
  }
  return document;
}

function documentOf(file: string, text: string, lineCounter: LineCounter): Document.Parsed {
  const { stackTraceLimit } = Error;
  try {
    // The parser's Error for each fault has a stack, which takes seconds.
    Error.stackTraceLimit = 0;
    return parseDocument(text, {
      schema: 'failsafe',
      uniqueKeys: false,
      logLevel: 'silent',
      // They quote lines, which may be long.
      prettyErrors: false,
      lineCounter,
    });
  } catch (error) {
    // The parser does not end where a quote ends in mid-line.
    if (error instanceof RangeError)
      throw new UserError(`h2o config ${file}: cannot be read as YAML: look at its quotes`);
    throw error;
  } finally {
    Error.stackTraceLimit = stackTraceLimit;
  }
}

/** All scalars are text, as for h2o. `origin` as of Layer. */
export type Tree = { origin: string } & (
  | { kind: 'text'; text: string; tag?: string }
  | { kind: 'list'; items: Tree[] }
  | { kind: 'map'; pairs: YamlPair[] }
);

/** h2o takes all of a key. `origin`: the key's. */
export interface YamlPair {
  key: string;
  origin: string;
  value: Tree;
}

export type MapTree = Extract<Tree, { kind: 'map' }>;

/** Names in !file begin at its folder. @throws UserError with file and line */
export async function readYaml(config: Layer): Promise<MapTree> {
  const { file } = config;
  const reading = { folder: path.dirname(file), size: { letters: 0, values: 0, deepest: 0 } };
  const tree = await new FileReader(config, [await realPathOf(file)], reading).read(0);
  if (tree.kind === 'map') return tree;
  if (tree.kind === 'text' && tree.text === '') return treeOf({}) as MapTree;
  throw new UserError(`h2o config ${file}:1: is not a YAML mapping, as h2o's configs are`);
}

/** Shared by a config's files. */
interface Reading {
  folder: string;
  /** So far: characters, values, and the deepest level. */
  size: { letters: number; values: number; deepest: number };
}

/** Reads each file once. */
class FileReader {
  readonly #layer: Layer;
  /** They include each other, from the config on. */
  readonly #open: readonly string[];
  readonly #reading: Reading;
  readonly #lines = new LineCounter();
  /** The last of a name counts. */
  readonly #anchors = new Map<string, { tree: Tree; values: number; height: number }>();

  constructor(layer: Layer, open: readonly string[], reading: Reading) {
    this.#layer = layer;
    this.#open = open;
    this.#reading = reading;
  }

  /** @param depth levels above */
  read(depth: number): Promise<Tree> {
    const { size } = this.#reading;
    size.letters += this.#layer.text.length;
    if (size.letters > mostLetters)
      this.#fail(
        1,
        `the config has more than ${mostLetters / 1e6} MB with its includes: take a smaller one`,
      );
    return this.#convert(parse(this.#layer, this.#lines).contents, 1, depth);
  }

  /** @param above the parent's line, for an empty node @param depth levels above */
  async #convert(node: Node | null, above: number, depth: number): Promise<Tree> {
    const { size } = this.#reading;
    const before = { ...size };
    size.values++;
    size.deepest = depth;
    const tree = await this.#converted(node, above, depth);
    if (node !== null && 'anchor' in node && node.anchor !== undefined)
      this.#anchors.set(node.anchor, {
        tree,
        values: size.values - before.values,
        height: size.deepest - depth,
      });
    size.deepest = Math.max(size.deepest, before.deepest);
    return tree;
  }

  async #converted(node: Node | null, above: number, depth: number): Promise<Tree> {
    if (node === null) return { kind: 'text', text: '', origin: this.#originOf(above) };
    const isEmpty = node.range?.[0] === node.range?.[1];
    const line = isEmpty ? above : this.#lineOf(node);
    const origin = this.#originOf(line);
    if (isAlias(node)) {
      const meant = this.#anchors.get(node.source);
      if (meant === undefined)
        this.#fail(line, `*${wordIn(node.source)} stands for nothing above it`);
      this.#requireSize(line, depth, meant);
      return meant.tree;
    }
    this.#requireSize(line, depth, { values: 0, height: 0 });
    if (isMap(node))
      return { kind: 'map', pairs: await this.#yamlPairs(node, line, depth), origin };
    if (isSeq(node)) {
      const items: Tree[] = [];
      for (const item of node.items as Node[])
        items.push(await this.#convert(item, line, depth + 1));
      return { kind: 'list', items, origin };
    }
    const text = isScalar(node) ? String(node.value ?? '') : '';
    if (text.includes('\uFFFD')) this.#fail(line, 'is not UTF-8 text');
    if (node.tag === '!file') return this.#included(line, text, depth);
    const tree: Tree = { kind: 'text', text, origin };
    if (node.tag?.startsWith('!')) tree.tag = node.tag;
    return tree;
  }

  async #yamlPairs(node: YAMLMap, line: number, depth: number): Promise<YamlPair[]> {
    const pairs: YamlPair[] = [];
    for (const { key, value } of node.items as { key: Node; value: Node | null }[]) {
      if (!isScalar(key)) this.#fail(line, 'a key has to be a word');
      const keyLine = this.#lineOf(key);
      const tree = await this.#convert(value, keyLine, depth + 1);
      pairs.push({ key: String(key.value), origin: this.#originOf(keyLine), value: tree });
    }
    return merged(pairs);
  }

  /** @param meant an alias's addition */
  #requireSize(line: number, depth: number, meant: { values: number; height: number }): void {
    const { size } = this.#reading;
    size.values += meant.values;
    size.deepest = depth + meant.height;
    if (size.deepest > mostNested) this.#fail(line, `is nested more than ${mostNested} deep`);
    if (size.values > mostValues)
      this.#fail(line, `has more than ${mostValues} values, with those of aliases`);
  }

  async #included(line: number, name: string, depth: number): Promise<Tree> {
    const other = path.resolve(this.#reading.folder, name);
    const from = `${this.#layer.file}:${line}`;
    const { text, open } = await readIncluded(other, { from, name }, this.#open);
    return new FileReader({ file: other, text }, open, this.#reading).read(depth + 1);
  }

  #lineOf(node: Node): number {
    return this.#lines.linePos(node.range?.[0] ?? 0).line;
  }

  #originOf(line: number): string {
    return this.#layer.origin ?? `${this.#layer.file}:${line}`;
  }

  #fail(line: number, problem: string): never {
    throw new UserError(`h2o config ${this.#layer.file}:${line}: ${problem}`);
  }
}

export function treeOf(value: unknown): Tree {
  if (typeof value !== 'object' || value === null)
    return { kind: 'text', text: String(value), origin: ours };
  const pairs = Object.entries(value).map(([key, inner]) => yamlPair(key, inner));
  return { kind: 'map', origin: ours, pairs };
}

export function yamlPair(key: string, value: unknown): YamlPair {
  return { key, origin: ours, value: treeOf(value) };
}

/** The first value of a key, in any case, as h2o. */
export function get(tree: Tree | undefined, wanted: string): Tree | undefined {
  return yamlPairs(tree).find(({ key }) => key.toLowerCase() === wanted)?.value;
}

export function itemsOf(tree: Tree): Tree[] {
  return tree.kind === 'list' ? tree.items : [tree];
}

/** None if it is no mapping. */
export function yamlPairs(tree: Tree | undefined): YamlPair[] {
  return tree?.kind === 'map' ? tree.pairs : [];
}

/** Looks at the config, or at a host. */
export function listensIn(tree: Tree): Tree[] {
  return yamlPairs(tree).flatMap(({ key, value }) => (key === 'listen' ? itemsOf(value) : []));
}

/** Adds merge keys (<<), unless their keys are there. */
function merged(pairs: readonly YamlPair[]): YamlPair[] {
  const keys = new Set(pairs.map(({ key }) => key));
  return pairs.flatMap((pair) => {
    if (pair.key !== '<<') return [pair];
    return itemsOf(pair.value)
      .flatMap(yamlPairs)
      .filter(({ key }) => {
        const fresh = !keys.has(key);
        keys.add(key);
        return fresh;
      });
  });
}

/** Items of a list, values of a mapping. `key`: '' in a list. */
export function mapInside(tree: Tree, change: (value: Tree, key: string) => Tree): Tree {
  if (tree.kind === 'text') return tree;
  if (tree.kind === 'list') return { ...tree, items: tree.items.map((item) => change(item, '')) };
  const pairs = tree.pairs.map((pair) => ({ ...pair, value: change(pair.value, pair.key) }));
  return { ...tree, pairs };
}

export function pairsIn(tree: Tree): YamlPair[] {
  if (tree.kind === 'text') return [];
  return tree.kind === 'list'
    ? tree.items.flatMap(pairsIn)
    : tree.pairs.flatMap((pair) => [pair, ...pairsIn(pair.value)]);
}

export function oneLine(tree: Tree): string {
  if (tree.kind === 'text') return tree.text;
  if (tree.kind === 'list') return `[${tree.items.map(oneLine).join(', ')}]`;
  return `{${tree.pairs.map(({ key, value }) => `${key}: ${oneLine(value)}`).join(', ')}}`;
}

/** A value a line, with its origin as a comment. */
export function printYaml(tree: Exclude<Tree, { kind: 'text' }>, indent = ''): string {
  const parts =
    tree.kind === 'list'
      ? tree.items.map((value) => ({ begin: '-', origin: value.origin, value }))
      : tree.pairs.map(({ key, origin, value }) => ({ begin: `${scalar(key)}:`, origin, value }));
  return parts
    .map(({ begin, origin, value }) => {
      if (value.kind === 'text') {
        const tag = value.tag === undefined ? '' : `${value.tag} `;
        return `${indent}${begin} ${tag}${scalar(value.text)}  # ${value.origin}\n`;
      }
      const inside = printYaml(value, `${indent}  `);
      const none = value.kind === 'list' ? ' []' : ' {}';
      return `${indent}${begin}${inside === '' ? none : ''}  # ${origin}\n${inside}`;
    })
    .join('');
}

/** JSON's strings are YAML's, and h2o takes quoted text as plain. */
function scalar(text: string): string {
  return /^[\w/][\w./@+-]*$/.test(text) ? text : JSON.stringify(text);
}
