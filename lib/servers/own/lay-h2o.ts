// Lays a knob's lines over a person's h2o config.
import { readFileSync } from 'node:fs';
import { UserError } from '../../errors.ts';
import type { LaidLines } from '../../scenario/model.ts';
import type { MapTree, Pair, Tree } from './yaml-tree.ts';
import { parseYaml } from '../yaml-source.ts';
import { atEnd, laidOrigin, spanOfLine, type Edit, type Facts } from './edits.ts';

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
  if (typeof value !== 'object' || value === null) return { kind: 'text', text: String(value), from: '' };
  return { kind: 'map', from: '', pairs: Object.entries(value).map(([key, inner]) => ({ key, from: '', value: plainTree(inner) })) };
}

function layPair(config: MapTree, context: string, pair: Pair): MapTree {
  // A value that is there already stays where it is.
  const instead = (map: MapTree, puts: boolean): MapTree => {
    const last = map.pairs.findLast(({ key }) => key === pair.key);
    if (last === undefined) return puts && !takesOut(pair) ? { ...map, pairs: [...map.pairs, { ...pair, from: laidOrigin }] } : map;
    const others = map.pairs.filter((one) => one === last || one.key !== pair.key);
    if (takesOut(pair)) return { ...map, pairs: others.filter((one) => one !== last) };
    return { ...map, pairs: others.map((one) => (one !== last || sameValue(one.value, pair.value) ? one : { ...one, value: { ...pair.value, from: one.value.from } })) };
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
  const keys = new Set<string>();
  throughout(config, (map) => {
    for (const { key } of map.pairs) keys.add(key);
    return map;
  });
  const logs = keys.has('access-log');
  return { proxied: ['proxy.reverse.url', 'fastcgi.connect', 'fastcgi.spawn', 'mruby.handler', 'mruby.handler-file'].some((key) => keys.has(key)), logs, logLine: logs };
}

/** How the files that `before` was read from become `after`. */
export function h2oEdits(before: MapTree, after: MapTree, file: string): Edit[] {
  const added = after.pairs.filter(({ from }) => from === laidOrigin).map(({ key, value }) => atEnd(file, readFileSync(file, 'utf8'), `${key}: ${words(value)}`));
  return [...editsIn(before, { ...after, pairs: after.pairs.filter(({ from }) => from !== laidOrigin) }), ...added];
}

function editsIn(before: Tree, after: Tree): Edit[] {
  if (before.kind === 'list' && after.kind === 'list') return before.items.flatMap((item, index) => editsIn(item, after.items[index] ?? item));
  if (before.kind !== 'map' || after.kind !== 'map') return [];
  const changed = before.pairs.flatMap((was): Edit[] => {
    const now = after.pairs.find(({ key, from }) => key === was.key && from === was.from);
    if (now === undefined) return [lineEdit(was, () => '')];
    if (now.value.kind !== 'text' && now.value.kind === was.value.kind) return editsIn(was.value, now.value);
    return sameValue(now.value, was.value) ? [] : [lineEdit(was, (line) => line.replace(/(:\s*).*$/, (_, colon: string) => `${colon}${words(now.value)}`))];
  });
  const [first] = before.pairs;
  const added = after.pairs.filter(({ from }) => from === laidOrigin);
  return [...changed, ...first === undefined ? [] : added.map(({ key, value }) => lineEdit(first, (line) => `${/^\s*(?:- )?/.exec(line)?.[0].replace('-', ' ')}${key}: ${words(value)}\n${line}`))];
}

/** @param change of the line on which the key stands */
function lineEdit({ from }: Pair, change: (line: string) => string): Edit {
  const [, file = '', line = '1'] = /^from (.*):(\d+)$/.exec(from) ?? [];
  const text = readFileSync(file, 'utf8');
  const { begin, end } = spanOfLine(text, Number(line));
  return { file, line: Number(line), begin, end, becomes: change(text.slice(begin, end)) };
}
