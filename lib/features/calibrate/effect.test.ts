// The effect of a line beside other generators: its table by known figures, and what is kept of its runs.
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { sharedFolder } from '../../../test/fixtures/new-folder.ts';
import { cellText } from '../../report/table.ts';
import { readLayers } from '../../servers/config-files.ts';
import { composeConfig, printConfig, readNginxConfig } from '../../servers/nginx-config.ts';
import { configsOf, effectNames, effectTable, type EffectRun } from './effect.ts';
import { readKept } from './kept.ts';

/** A request takes 20 µs, and so many times as much with the line as each generator sees it. */
const run = (number: number, wrk: number, bakeoff: number, ownCore: number): EffectRun => ({
  number,
  cpuMicros: {
    wrk: { without: 20, with: 20 * wrk },
    bakeoff: { without: 20, with: 20 * bakeoff },
    'bakeoff, own core': { without: 25, with: 25 * ownCore },
  },
});

const rowsOf = (runs: readonly EffectRun[]) =>
  effectTable(runs, ['wrk']).rows.map((row) => row.map(cellText));

test('a pair has effects without intervals, and those of bakeoff are divided by those of others', () => {
  expect(rowsOf([run(1, 0.8, 0.8, 0.84)])).toEqual([
    ['wrk', '20.0', '16.0', '4.0', '−20 %', ''],
    ['bakeoff', '20.0', '16.0', '4.0', '−20 %', '±0 %'],
    ['bakeoff, own core', '25.0', '21.0', '4.0', '−16 %', '+5 %'],
  ]);
});

test('means over pairs are geometric, and intervals are those of Student on logarithms', () => {
  // ln(1.44) and 0 have the mean ln(1.2) and the standard error ln(1.2), and t(0.975, 1) is 12.706.
  const [, bakeoff] = rowsOf([run(1, 1, 1.44, 1), run(2, 1, 1, 1)]);
  const far = Math.log(1.2) * 12.706;
  const [low, high] = [-far, far].map((by) => 100 * (1.2 * Math.exp(by) - 1));
  expect(bakeoff?.at(-1)).toBe(`+20 % [${low?.toFixed(0).replace('-', '−')}, ${high?.toFixed(0)}]`);
});

test('a pair that drifts as a whole has no part in the ratio of effects', () => {
  // Both generators see the same in each pair, which differ.
  const [, bakeoff] = rowsOf([run(1, 1.3, 1.3, 1), run(2, 1.1, 1.1, 1), run(3, 1.2, 1.2, 1)]);
  expect(bakeoff?.at(-1)).toBe('±0.0 % [0.0, 0.0]');
});

test.each(effectNames)('both configs differ in the directives of %s', async (name) => {
  const configs = configsOf(name);
  const [without, withIt, layer] = await Promise.all(
    [configs.without, configs.with, [name]].map(directivesOf),
  );
  const added = [...(withIt ?? [])].filter((line) => !without?.has(line));
  expect(added).not.toEqual([]);
  expect([...(layer ?? [])]).toEqual(expect.arrayContaining(added));
});

/** The composed config's directives, each on a line. */
async function directivesOf(layers: readonly string[]): Promise<Set<string>> {
  const files = await readLayers('nginx', layers);
  const read = await Promise.all(files.map((layer) => readNginxConfig(layer)));
  return new Set(printConfig(composeConfig(read)).split('\n'));
}

const folder = sharedFolder();
const fresh = { seed: 1, seal: 'a', runs: [] };

test('a file of runs is gone on with only if that is asked for, and by the same flags', () => {
  const path = join(folder, 'kept.json');
  expect(readKept(path, fresh, false)).toBe(fresh);
  const kept = { ...fresh, runs: [{ number: 1 }] };
  writeFileSync(path, JSON.stringify(kept));
  expect(readKept(path, fresh, true)).toEqual(kept);
  expect(() => readKept(path, fresh, false)).toThrow('go on with --resume');
  chmodSync(path, 0o666);
  expect(() => readKept(path, fresh, true)).toThrow(`every user may write to ${path}: `);
  chmodSync(path, 0o644);
  const other = { ...fresh, seal: 'b' };
  expect(() => readKept(path, other, true)).toThrow('has the runs of other flags');
});

test('a file that cannot be read, or is no JSON, is named', () => {
  const path = join(folder, 'bad.json');
  writeFileSync(path, '{');
  expect(() => readKept(path, fresh, true)).toThrow(`${path} is not JSON`);
  mkdirSync(join(folder, 'folder.json'));
  expect(() => readKept(join(folder, 'folder.json'), fresh, true)).toThrow('cannot read');
});
