// Lays a knob's lines over a person's h2o config.
import { isDeepStrictEqual } from 'node:util';
import { UserError } from '../../errors.ts';
import type { LaidLines } from '../../scenario/model.ts';
import { pairsIn, type MapTree, type Pair, type Tree } from './yaml-tree.ts';
import { parseYaml } from '../yaml-source.ts';
import { atEnd, endOfLine, laidOrigin, type Edit, type Facts } from './edits.ts';
import { ours } from './origin.ts';
import { textThen } from './read-text.ts';

/** Returns the config with the keys. Throws UserError for a context that there is not. */
export function layH2o(config: MapTree, laid: readonly LaidLines[]): MapTree {
  return laid.reduce((tree, { context, lines }) => pairsOf(lines).reduce((one, pair) => layPair(one, context, pair), tree), config);
}

/** The keys of a knob's lines. A value is a text, or a mapping of them. */
function pairsOf(lines: string): Pair[] {
  const tree = plainTree(parseYaml('knob', lines, 'failsafe').toJS());
  return tree.kind === 'map' ? tree.pairs : [];
}

function plainTree(value: unknown): Tree {
  if (typeof value !== 'object' || value === null) return { kind: 'text', text: String(value), origin: ours };
  return { kind: 'map', origin: ours, pairs: Object.entries(value).map(([key, inner]) => ({ key, origin: ours, value: plainTree(inner) })) };
}

function layPair(config: MapTree, context: string, pair: Pair): MapTree {
  // A value that is there already stays where it is.
  const instead = (map: MapTree, puts: boolean): MapTree => {
    const last = map.pairs.findLast(({ key }) => key === pair.key);
    if (last === undefined) return puts && !takesOut(pair) ? { ...map, pairs: [...map.pairs, { ...pair, origin: laidOrigin }] } : map;
    const others = map.pairs.filter((one) => one === last || one.key !== pair.key);
    if (takesOut(pair)) return { ...map, pairs: others.filter((one) => one !== last) };
    return { ...map, pairs: others.map((one) => (one !== last || sameValue(one.value, pair.value) ? one : { ...one, value: { ...pair.value, origin: one.value.origin } })) };
  };
  switch (context) {
    case 'top': return instead({ ...config, pairs: config.pairs.map((one) => (one.key === 'hosts' ? { ...one, value: throughout(one.value, (map) => instead(map, false)) } : one)) }, true);
    case 'ssl': return throughout(config, (map) => ({ ...map, pairs: map.pairs.map((one) => (one.key === 'ssl' && one.value.kind === 'map' ? { ...one, value: instead(one.value, true) } : one)) })) as MapTree;
    default: throw new UserError(`h2o configs have no context "${context}" that keys can be laid over: it is top or ssl`);
  }
}

/** "~" */
function takesOut({ value }: Pair): boolean {
  return value.kind === 'text' && value.text === '~';
}

function sameValue(a: Tree, b: Tree): boolean {
  return words(a).toLowerCase() === words(b).toLowerCase();
}

/** A value on one line. */
function words(tree: Tree): string {
  if (tree.kind === 'text') return tree.text;
  if (tree.kind === 'list') return `[${tree.items.map(words).join(', ')}]`;
  return `{${tree.pairs.map(({ key, value }) => `${key}: ${words(value)}`).join(', ')}}`;
}

function throughout(tree: Tree, change: (map: MapTree) => MapTree): Tree {
  if (tree.kind === 'text') return tree;
  if (tree.kind === 'list') return { ...tree, items: tree.items.map((item) => throughout(item, change)) };
  return change({ ...tree, pairs: tree.pairs.map((pair) => ({ ...pair, value: throughout(pair.value, change) })) });
}

/** What knobs have to know of a config. */
export function h2oFacts(config: MapTree): Facts {
  const keys = new Set(pairsIn(config).map(({ key }) => key));
  const logs = keys.has('access-log');
  return { proxied: ['proxy.reverse.url', 'fastcgi.connect', 'fastcgi.spawn', 'mruby.handler', 'mruby.handler-file'].some((key) => keys.has(key)), logs, logLine: logs };
}

/** How the files that `before` was read from become `after`. Not where YAML asks for more than these lines: sameMeaning tells. */
export function h2oEdits(before: MapTree, after: MapTree, file: string): Edit[] {
  const added = after.pairs.filter(({ origin }) => origin === laidOrigin).map(({ key, value }) => atEnd(file, textThen(file), `${key}: ${words(value)}`));
  const edits = [...editsIn(before, { ...after, pairs: after.pairs.filter(({ origin }) => origin !== laidOrigin) }), ...added];
  // What an alias stands for is there once.
  return edits.filter((edit, index) => edits.findIndex((one) => isDeepStrictEqual(one, edit)) === index);
}

function editsIn(before: Tree, after: Tree): Edit[] {
  if (before.kind === 'list' && after.kind === 'list') return before.items.flatMap((item, index) => editsIn(item, after.items[index] ?? item));
  if (before.kind !== 'map' || after.kind !== 'map') return [];
  const changed = before.pairs.flatMap((was): Edit[] => {
    const now = after.pairs.find(({ key, origin }) => key === was.key && origin === was.origin);
    const { file, text, line, begin, end } = placeOf(was);
    if (now === undefined) {
      const rest = text.slice(end, endOfLine(text, end));
      return [{ file, line, begin, end: /^\s*#/.test(rest) ? end + rest.length : end, becomes: '' }];
    }
    if (now.value.kind !== 'text' && now.value.kind === was.value.kind) return editsIn(was.value, now.value);
    const key = text.slice(begin, text.indexOf(':', begin + was.key.length) + 1);
    return sameValue(now.value, was.value) ? [] : [{ file, line, begin, end, becomes: `${key} ${words(now.value)}` }];
  });
  const [first] = before.pairs;
  const added = first === undefined ? [] : after.pairs.filter(({ origin }) => origin === laidOrigin).map((pair) => editBefore(first, pair));
  // What is put in comes first: of several at one place the last is made first.
  return [...added, ...changed];
}

/** Puts a key in front of the first one of its mapping: on a line of its own, but between braces. */
function editBefore(first: Pair, { key, value }: Pair): Edit {
  const { file, text, line, begin } = placeOf(first);
  const before = text.slice(text.lastIndexOf('\n', begin - 1) + 1, begin);
  return { file, line, begin, end: begin, becomes: `${key}: ${words(value)}${/[{,]\s*$/.test(before) ? ', ' : `\n${' '.repeat(before.length)}`}` };
}

/** Where a pair stands, and the text of its file. */
function placeOf({ origin, at: [begin, end] = [0, 0] }: Pair): { file: string; text: string; line: number; begin: number; end: number } {
  const [, file = '', line = '1'] = /^from (.*):(\d+)$/.exec(origin) ?? [];
  const text = textThen(file);
  return { file, text, line: Number(line), begin, end: begin + text.slice(begin, end).trimEnd().length };
}
