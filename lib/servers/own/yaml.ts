// h2o's YAML: reads a user's config with its !file includes as a tree, in which each part has its origin.
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

/** Far more characters than a config has. The parser takes a second for each million. */
const mostLetters = 4e6;
/** Far more levels than a config has. */
const mostNested = 100;
/** Far more values than a config has. Aliases of aliases multiply them. */
const mostValues = 1e6;

/**
 * Throws UserError for a text that is nested much too deep, before the parser, which calls itself for each level, runs out of stack.
 */
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
    // A message without quotes may end with text of the file.
    const problem = withShortQuotes(error.message).replace(/(?<=\w: )\S.*/, addressIn);
    throw new UserError(`h2o config ${file}:${line}: ${problem}`);
  }
  return document;
}

function documentOf(file: string, text: string, lineCounter: LineCounter): Document.Parsed {
  const { stackTraceLimit } = Error;
  try {
    // The parser makes an Error for each fault. If there are many, their stacks take seconds.
    Error.stackTraceLimit = 0;
    return parseDocument(text, {
      schema: 'failsafe',
      uniqueKeys: false,
      logLevel: 'silent',
      // Pretty errors quote their line, which may be all of the text.
      prettyErrors: false,
      lineCounter,
    });
  } catch (error) {
    // If a quote ends in the middle of a line, the parser calls itself without end.
    if (error instanceof RangeError)
      throw new UserError(`h2o config ${file}: cannot be read as YAML: look at its quotes`);
    throw error;
  } finally {
    Error.stackTraceLimit = stackTraceLimit;
  }
}

/** YAML as h2o reads it: all scalars are text. `origin` as in Layer. */
export type Tree = { origin: string } & (
  | { kind: 'text'; text: string; tag?: string }
  | { kind: 'list'; items: Tree[] }
  | { kind: 'map'; pairs: YamlPair[] }
);

/** A key of a mapping and its value. A mapping may have a key several times: h2o uses all of them. `origin`: that of the key. */
export interface YamlPair {
  key: string;
  origin: string;
  value: Tree;
}

export type MapTree = Extract<Tree, { kind: 'map' }>;

/** Reads a config as a tree. Names in !file are relative to the config's folder. Throws UserError with file and line. */
export async function readYaml(config: Layer): Promise<MapTree> {
  const { file } = config;
  const reading = { folder: path.dirname(file), size: { letters: 0, values: 0, deepest: 0 } };
  const tree = await new FileReader(config, [await realPathOf(file)], reading).read(0);
  if (tree.kind === 'map') return tree;
  if (tree.kind === 'text' && tree.text === '') return mapOf({});
  throw new UserError(`h2o config ${file}:1: is not a YAML mapping, as h2o's configs are`);
}

/** State that the files of a config share while they are read. */
interface Reading {
  folder: string;
  /** The number of characters and values read so far, and the deepest level of the values being read. */
  size: { letters: number; values: number; deepest: number };
}

/** Reads one file of a config, once. */
class FileReader {
  readonly #layer: Layer;
  /** The files that include each other, from the config to this file. */
  readonly #open: readonly string[];
  readonly #reading: Reading;
  readonly #lines = new LineCounter();
  /** The values with an anchor that were read so far. If a name occurs again, the last one counts. */
  readonly #anchors = new Map<string, { tree: Tree; values: number; height: number }>();

  constructor(layer: Layer, open: readonly string[], reading: Reading) {
    this.#layer = layer;
    this.#open = open;
    this.#reading = reading;
  }

  /** @param depth levels above the file */
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

  /**
   * @param above the line of the node's parent, for an empty node
   * @param depth levels above the node
   */
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

  /** @param meant what an alias adds to the size */
  #requireSize(line: number, depth: number, meant: { values: number; height: number }): void {
    const { size } = this.#reading;
    size.values += meant.values;
    size.deepest = depth + meant.height;
    if (size.deepest > mostNested) this.#fail(line, `is nested more than ${mostNested} deep`);
    if (size.values > mostValues)
      this.#fail(line, `has more than ${mostValues} values, aliases included`);
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
  return mapOf(value);
}

export function mapOf(value: object): MapTree {
  const pairs = Object.entries(value).map(([key, inner]) => yamlPair(key, inner));
  return { kind: 'map', origin: ours, pairs };
}

export function yamlPair(key: string, value: unknown): YamlPair {
  return { key, origin: ours, value: treeOf(value) };
}

/** Returns the first value of a key, in upper or lower case, as h2o does. */
export function get(tree: Tree | undefined, wanted: string): Tree | undefined {
  return yamlPairs(tree).find(({ key }) => key.toLowerCase() === wanted)?.value;
}

export function itemsOf(tree: Tree): Tree[] {
  return tree.kind === 'list' ? tree.items : [tree];
}

/** Returns the pairs of a mapping, and none for any other value. */
export function yamlPairs(tree: Tree | undefined): YamlPair[] {
  return tree?.kind === 'map' ? tree.pairs : [];
}

/** Returns the values of `listen` in the config or in a host. */
export function listensIn(tree: Tree): Tree[] {
  return yamlPairs(tree).flatMap(({ key, value }) => (key === 'listen' ? itemsOf(value) : []));
}

/** Adds the pairs of merge keys (<<), unless their keys are there already. */
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

/** Changes the items of a list, or the values of a mapping. `key` is '' in a list. */
export function mapInside(tree: Tree, change: (value: Tree, key: string) => Tree): Tree {
  if (tree.kind === 'text') return tree;
  if (tree.kind === 'list') return { ...tree, items: tree.items.map((item) => change(item, '')) };
  const pairs = tree.pairs.map((pair) => ({ ...pair, value: change(pair.value, pair.key) }));
  return { ...tree, pairs };
}

export function pairsIn(tree: Tree): YamlPair[] {
  if (tree.kind === 'text') return [];
  if (tree.kind === 'list') return tree.items.flatMap(pairsIn);
  return tree.pairs.flatMap((pair) => [pair, ...pairsIn(pair.value)]);
}

export function oneLine(tree: Tree): string {
  if (tree.kind === 'text') return tree.text;
  if (tree.kind === 'list') return `[${tree.items.map(oneLine).join(', ')}]`;
  return `{${tree.pairs.map(({ key, value }) => `${key}: ${oneLine(value)}`).join(', ')}}`;
}

/** Prints YAML with each value on its own line, and its origin as a comment. */
export function printYaml(tree: Exclude<Tree, { kind: 'text' }>, indent = ''): string {
  const beginOf = (key: string) => {
    const text = scalar(key);
    return text.length > mostOfKey ? `? ${text}\n${indent}:` : `${text}:`;
  };
  const parts =
    tree.kind === 'list'
      ? tree.items.map((value) => ({ begin: '-', origin: value.origin, value }))
      : tree.pairs.map(({ key, origin, value }) => ({ begin: beginOf(key), origin, value }));
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

/** YAML wants a question mark before longer keys (YAML 1.2.2, 7.4.2: 1024 characters). */
const mostOfKey = 1000;

/** A JSON string is a YAML scalar, and h2o takes quoted text as plain text. */
function scalar(text: string): string {
  return /^[\w/][\w./@+-]*$/.test(text) ? text : JSON.stringify(text);
}
