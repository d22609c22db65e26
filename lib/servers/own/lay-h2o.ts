// Lays a knob's lines over a person's h2o config.
import { UserError } from '../../errors.ts';
import type { LaidLines } from '../../scenario/model.ts';
import { pairsIn, type MapTree, type Pair, type Tree } from './yaml-tree.ts';
import { parseYaml } from '../yaml-source.ts';
import { laidOrigin, type Facts, type Setting } from './changes.ts';
import { ours, placeOf } from './origin.ts';

/** Returns the config with the keys. Throws UserError for an unknown context. */
export function layH2o(config: MapTree, laid: readonly LaidLines[]): MapTree {
  return laid.reduce(
    (tree, { context, lines }) =>
      pairsOf(lines).reduce((one, pair) => layPair(one, context, pair), tree),
    config,
  );
}

/** The keys of a knob's lines. A value is a text, or a mapping of them. */
function pairsOf(lines: string): Pair[] {
  const tree = plainTree(parseYaml('knob', lines, 'failsafe').toJS());
  return tree.kind === 'map' ? tree.pairs : [];
}

function plainTree(value: unknown): Tree {
  if (typeof value !== 'object' || value === null)
    return { kind: 'text', text: String(value), origin: ours };
  return {
    kind: 'map',
    origin: ours,
    pairs: Object.entries(value).map(([key, inner]) => ({
      key,
      origin: ours,
      value: plainTree(inner),
    })),
  };
}

function layPair(config: MapTree, context: string, pair: Pair): MapTree {
  // A value that is there already stays where it is.
  const instead = (map: MapTree, puts: boolean): MapTree => {
    const last = map.pairs.findLast(({ key }) => key === pair.key);
    if (last === undefined)
      return puts && !takesOut(pair)
        ? { ...map, pairs: [...map.pairs, { ...pair, origin: laidOrigin }] }
        : map;
    const others = map.pairs.filter((one) => one === last || one.key !== pair.key);
    if (takesOut(pair)) return { ...map, pairs: others.filter((one) => one !== last) };
    return {
      ...map,
      pairs: others.map((one) =>
        one !== last || sameValue(one.value, pair.value)
          ? one
          : { ...one, value: { ...pair.value, origin: one.value.origin } },
      ),
    };
  };
  switch (context) {
    case 'top':
      return instead(
        {
          ...config,
          pairs: config.pairs.map((one) =>
            one.key === 'hosts'
              ? { ...one, value: throughout(one.value, (map) => instead(map, false)) }
              : one,
          ),
        },
        true,
      );
    case 'ssl':
      return throughout(config, (map) => ({
        ...map,
        pairs: map.pairs.map((one) =>
          one.key === 'ssl' && one.value.kind === 'map'
            ? { ...one, value: instead(one.value, true) }
            : one,
        ),
      })) as MapTree;
    default:
      throw new UserError(
        `h2o configs have no context "${context}" that keys can be laid over: it is top or ssl`,
      );
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
  if (tree.kind === 'list')
    return { ...tree, items: tree.items.map((item) => throughout(item, change)) };
  return change({
    ...tree,
    pairs: tree.pairs.map((pair) => ({ ...pair, value: throughout(pair.value, change) })),
  });
}

/** The facts of a config. */
export function h2oFacts(config: MapTree): Facts {
  const keys = new Set(pairsIn(config).map(({ key }) => key));
  const logs = keys.has('access-log');
  return {
    proxied: [
      'proxy.reverse.url',
      'fastcgi.connect',
      'fastcgi.spawn',
      'mruby.handler',
      'mruby.handler-file',
    ].some((key) => keys.has(key)),
    logs,
    logLine: logs,
  };
}

/** Mappings in which knobs set keys, beside each host and path. */
const holders = ['hosts', 'paths', 'listen', 'ssl'];

/** The keys of a config with their values. @param block the heading for keys of this tree's own; `holder`: the key of the tree */
export function h2oSettings(tree: Tree, block: string, holder = ''): Setting[] {
  if (tree.kind === 'text') return [];
  if (tree.kind === 'list') return tree.items.flatMap((item) => h2oSettings(item, block));
  return tree.pairs.flatMap((pair): Setting[] => {
    const { key, value } = pair;
    if (
      value.kind !== 'text' &&
      (holders.includes(key) || holder === 'hosts' || holder === 'paths')
    )
      return h2oSettings(value, `${key}: at ${placeOf(pair)}`, key);
    return [{ block, name: key, text: `${key}: ${words(value)}`, place: placeOf(pair) }];
  });
}
