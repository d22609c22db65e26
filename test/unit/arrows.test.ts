// The dependency map of lib. To allow a new import between folders, change this map and docs/architecture.md.
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { projectRoot } from '../../lib/setup/paths.ts';

/** Any folder may import the files directly in lib; those files import only each other. */
const mayUse: Readonly<Record<string, string>> = {
  setup: 'machine',
  result: 'scenario',
  scenario: 'setup',
  machine: 'analysis result scenario setup',
  analysis: 'result scenario',
  servers: 'analysis machine result scenario setup',
  report: 'analysis machine result scenario servers',
  k6: 'analysis influx report result scenario',
  runner: 'analysis k6 machine report result scenario servers setup',
  cli: 'analysis k6 machine report result runner scenario servers setup',
};

/** "runner", "features/knobs"; '' for a file directly in lib. */
function folderOf(file: string): string {
  const [, folder = '', feature = '', ...rest] = file.split('/');
  if (feature === '') return '';
  return folder === 'features' && rest.length > 0 ? `features/${feature}` : folder;
}

const inLib = readdirSync(join(projectRoot, 'lib'), { recursive: true, encoding: 'utf8' });
const files = inLib
  .filter((file) => file.endsWith('.ts') && !file.endsWith('.test.ts'))
  .map((file) => `lib/${file}`);

/** The files of lib that each of them imports, at once or when it needs them. */
const imported = new Map(
  files.map((file) => {
    const text = readFileSync(join(projectRoot, file), 'utf8');
    const paths = [
      ...text.matchAll(/^(?:import|export|\}) .*?from '(\.[^']+)';$/gm),
      ...text.matchAll(/\bimport\('(\.[^']+)'\)/g),
    ].map(([, path = '']) => join(dirname(file), path));
    return [file, paths.filter((path) => path.startsWith('lib/'))];
  }),
);

function arrowsOf(from: readonly string[]): Record<string, string> {
  const used = new Map<string, Set<string>>();
  for (const file of from) {
    const folder = folderOf(file);
    for (const other of (imported.get(file) ?? []).map(folderOf)) {
      if (other === folder || other === '') continue;
      used.set(folder, (used.get(folder) ?? new Set()).add(other));
    }
  }
  return Object.fromEntries(
    [...used].map(([folder, others]) => [folder, [...others].sort().join(' ')]),
  );
}

const isOfFeature = (file: string) => file.startsWith('lib/features/');

test('each folder of lib imports only from the folders on its list', () => {
  const core = files.filter((file) => !isOfFeature(file) && file !== 'lib/cli/main.ts');
  expect(arrowsOf(core)).toEqual(mayUse);
});

test('the core names the features in lib/cli/main.ts alone, and no feature names another', () => {
  const entries = readdirSync(join(projectRoot, 'lib/features')).map(
    (name) => `lib/features/${name}/feature.ts`,
  );
  const named = imported.get('lib/cli/main.ts')?.filter(isOfFeature);
  expect(named?.toSorted()).toEqual(entries.sort());
  for (const [file, paths] of imported) {
    if (file === 'lib/cli/main.ts') continue;
    const others = paths.filter((path) => isOfFeature(path) && folderOf(path) !== folderOf(file));
    expect(others, file).toEqual([]);
  }
});

/** Files that import each other in a circle, with one of them first and last; undefined if there are none. */
function circleIn(graph: ReadonlyMap<string, readonly string[]>): string[] | undefined {
  const done = new Set<string>();
  const way: string[] = [];
  const circleFrom = (file: string): string[] | undefined => {
    if (done.has(file)) return undefined;
    if (way.includes(file)) return [...way.slice(way.indexOf(file)), file];
    way.push(file);
    for (const next of graph.get(file) ?? []) {
      const circle = circleFrom(next);
      if (circle !== undefined) return circle;
    }
    way.pop();
    done.add(file);
    return undefined;
  };
  for (const file of graph.keys()) {
    const circle = circleFrom(file);
    if (circle !== undefined) return circle;
  }
  return undefined;
}

// oxlint does not count import().
test('no files of lib import each other in a circle, at once or when needed', () => {
  const graph = new Map([
    ['a', ['b']],
    ['b', ['c', 'd']],
    ['d', ['b']],
  ]);
  expect(circleIn(graph)).toEqual(['b', 'd', 'b']);
  expect(circleIn(imported)).toBeUndefined();
});

test('lib/analysis returns figures and facts: lib/report makes the words', () => {
  const analysis = files.filter((file) => folderOf(file) === 'analysis');
  expect(analysis.filter((file) => imported.get(file)?.includes('lib/format.ts'))).toEqual([]);
  const commentOrError = /\/\*[^]*?\*\/|(?<!:)\/\/.*|throw new [^;]*;/g;
  const strings = analysis.flatMap((file) => {
    const code = readFileSync(join(projectRoot, file), 'utf8').replaceAll(commentOrError, '');
    return code.match(/'[^'\n]*'|"[^"\n]*"|`[^`]*`/g) ?? [];
  });
  expect(strings.filter((text) => /[a-z]{2,} [a-z]{2,}/.test(text))).toEqual([]);
});
