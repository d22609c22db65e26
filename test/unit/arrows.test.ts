// The dependency map of lib. To allow a new import between folders, change this map and docs/architecture.md.
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { projectRoot } from '../../lib/setup/paths.ts';

/** Any folder may import the files directly in lib; those files import only each other. */
const mayUse: Readonly<Record<string, string>> = {
  setup: 'machine',
  result: 'scenario',
  scenario: 'setup traffic',
  traffic: 'analysis scenario setup',
  machine: 'analysis result scenario setup',
  analysis: 'result scenario',
  servers: 'analysis machine result scenario setup',
  network: 'machine result scenario servers setup',
  store: 'analysis machine result scenario servers setup',
  report: 'analysis machine result scenario servers store',
  k6: 'analysis report result scenario store',
  hosts: 'k6 machine result scenario servers setup store',
  runner: 'analysis hosts k6 machine network report result scenario servers store',
  knobs: 'analysis machine report result runner scenario servers setup',
  calibrate: 'analysis machine report result runner scenario servers setup store',
  kubernetes: 'analysis k6 result runner scenario servers setup store',
  grafana: 'machine servers setup store',
  cli: 'analysis calibrate grafana hosts k6 knobs kubernetes machine network report result runner scenario servers setup store traffic',
};

function folderOf(file: string): string {
  const parts = file.split('/');
  return parts.length > 2 ? (parts[1] as string) : '';
}

/** The other folders of lib that each folder imports from. */
function arrowsOf(files: readonly string[]): Record<string, string> {
  const used = new Map<string, Set<string>>();
  for (const file of files) {
    const from = folderOf(file);
    const text = readFileSync(join(projectRoot, file), 'utf8');
    for (const [, path = ''] of text.matchAll(/^(?:import|export|\}) .*?from '(\.[^']+)';$/gm)) {
      const to = join(dirname(file), path);
      const folder = folderOf(to);
      if (!to.startsWith('lib/') || folder === from || folder === '') continue;
      used.set(from, (used.get(from) ?? new Set()).add(folder));
    }
  }
  return Object.fromEntries([...used].map(([from, to]) => [from, [...to].sort().join(' ')]));
}

test('each folder of lib imports only from the folders on its list', () => {
  const inLib = readdirSync(join(projectRoot, 'lib'), { recursive: true, encoding: 'utf8' });
  const files = inLib.filter((file) => file.endsWith('.ts')).map((file) => `lib/${file}`);
  const { '': ofIndex, ...arrows } = arrowsOf(files);
  expect(ofIndex).toBe('k6 result scenario');
  expect(arrows).toEqual(mayUse);
});
