// The effect of a line beside other generators: its table by known figures, and what is kept of its runs.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { sharedFolder } from '../../../test/fixtures/new-folder.ts';
import { textOf } from '../../report/table.ts';
import { readLayers } from '../../servers/config-files.ts';
import { composeConfig, printConfig, readNginxConfig } from '../../servers/nginx-config.ts';
import { configsOf, effectNames, effectTables, type EffectRun } from './effect.ts';
import { readKept } from './kept.ts';
import { loadgenWith, type GeneratorLoad } from './peers.ts';
import { wakeUpCostOf, wakeUpsOf } from './wake-ups.ts';

/** wrk sees `byWrk`, bakeoff `sleeping` and `spinning` times as much requests/s with the line; the server's core is always busy. */
const run = (number: number, byWrk: number, sleeping: number, spinning: number): EffectRun => ({
  number,
  legs: {
    wrk: legsOf(10_000, byWrk),
    'bakeoff, sleeping': legsOf(20_000, sleeping),
    'bakeoff, spinning': legsOf(40_000, spinning),
  },
});

const legsOf = (rps: number, times: number) => ({
  without: { rps, cpuMicros: 1e6 / rps, wakeUps: 1e3 / rps },
  with: { rps: rps * times, cpuMicros: 1e6 / rps / times, wakeUps: 1e3 / rps / times },
});

const rowsOf = (runs: readonly EffectRun[], table = 0) =>
  effectTables(runs, ['wrk'])[table]?.rows.map((row) => row.map(textOf)) ?? [];

test('a pair has effects without intervals, and those of bakeoff are divided by those of others', () => {
  expect(rowsOf([run(1, 1.2, 1.2, 1.5)])).toEqual([
    ['wrk', '10,000', '12,000', '+20 %', ''],
    ['bakeoff, sleeping', '20,000', '24,000', '+20 %', '±0 %'],
    ['bakeoff, spinning', '40,000', '60,000', '+50 %', '+25 %'],
  ]);
  expect(rowsOf([run(1, 1.25, 1.25, 2)], 1)).toEqual([
    ['wrk', '100', '80.0', '−20 %', ''],
    ['bakeoff, sleeping', '50.0', '40.0', '−20 %', '±0 %'],
    ['bakeoff, spinning', '25.0', '12.5', '−50 %', '−38 %'],
  ]);
});

test('what wake-ups cost and what the line saves are found, and what they make of each generator', () => {
  // A request takes 20 µs, with the line 15 µs, and a wake-up 10 µs.
  const seen = (without: number, withLine: number) => ({
    without: { rps: 50_000, cpuMicros: 20 + 10 * without, wakeUps: without },
    with: { rps: 50_000, cpuMicros: 15 + 10 * withLine, wakeUps: withLine },
  });
  const pair = (more: number) => ({
    number: 1,
    legs: {
      wrk: seen(0.5 + more, 0.3 - more),
      'bakeoff, sleeping': seen(0.2 - more, 0.1 + more),
      'bakeoff, spinning': seen(0, 0),
    },
  });
  expect(rowsOf([pair(0.1), pair(-0.1)], 2)).toEqual([
    ['wrk', '125 %', '90 %', '0.500', '0.300', '25.0', '18.0', '−28 %'],
    ['bakeoff, sleeping', '110 %', '80 %', '0.200', '0.100', '22.0', '16.0', '−27 %'],
    ['bakeoff, spinning', '100 %', '75 %', '0.000', '0.000', '20.0', '15.0', '−25 %'],
  ]);
});

test('generators that are woken alike tell nothing of what it costs', () => {
  const alike = { cpuMicros: { without: 20, with: 15 }, wakeUps: { without: 0, with: 0 } };
  expect(wakeUpCostOf([alike, alike])).toBeUndefined();
});

test.each([
  [
    'of x86',
    `            CPU0       CPU1
 24:          5          6  PCI-MSIX-0000:00:02.0   1-edge      virtio1-req.0
LOC:   49919130   88343422   Local timer interrupts
RES:         10       2000   Rescheduling interrupts
CAL:          7        300   Function call interrupts
ERR:          0
`,
    { 0: 17, 1: 2300 },
  ],
  [
    'of arm64, of which core 1 is offline',
    `           CPU0       CPU2
IPI0:        10       2000       Rescheduling interrupts
IPI1:         7        300       Function call interrupts
IPI2:         9          9       CPU stop interrupts
`,
    { 0: 17, 2: 2300 },
  ],
])('interrupts that wake a core are counted: /proc/interrupts %s', (_, text, counts) => {
  for (const [cpu, count] of Object.entries(counts))
    expect(wakeUpsOf(text, [Number(cpu)])).toBe(count);
  expect(wakeUpsOf(text, Object.keys(counts).map(Number))).toBe(2317);
});

test('this machine counts them', () => {
  const now = wakeUpsOf(readFileSync('/proc/interrupts', 'utf8'), [0]);
  expect(now).toBeGreaterThan(0);
});

test('means over pairs are geometric, and intervals are those of Student on logarithms', () => {
  // ln(1.44) and 0 have the mean ln(1.2) and the standard error ln(1.2), and t(0.975, 1) is 12.706.
  const [, sleeping] = rowsOf([run(1, 1, 1.44, 1), run(2, 1, 1, 1)]);
  const far = Math.log(1.2) * 12.706;
  const [low, high] = [-far, far].map((by) => 100 * (1.2 * Math.exp(by) - 1));
  expect(sleeping?.at(-1)).toBe(
    `+20 % [${low?.toFixed(0).replace('-', '−')}, ${high?.toFixed(0)}]`,
  );
});

test('a pair that drifts as a whole has no part in the ratio of effects', () => {
  // Both generators see the same in each pair, which differ.
  const [, sleeping] = rowsOf([run(1, 1.3, 1.3, 1), run(2, 1.1, 1.1, 1), run(3, 1.2, 1.2, 1)]);
  expect(sleeping?.at(-1)).toBe('±0.0 % [0.0, 0.0]');
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

test('the engine sleeps unless it is to spin', () => {
  const load: GeneratorLoad = {
    protocol: 'http/1.1',
    connections: 50,
    streams: 1,
    keepAlive: true,
    length: { seconds: 1 },
  };
  const sent = (own: { spin?: boolean }) => {
    const { env } = loadgenWith('ours', own).command('http://127.0.0.1:80/', load);
    return (JSON.parse(env?.['LOAD'] as string) as { options: object }).options;
  };
  expect(sent({})).not.toHaveProperty('spin');
  expect(sent({ spin: true })).toEqual({ ...sent({}), spin: true });
});

const folder = sharedFolder();
const fresh = { seed: 1, seal: 'a', runs: [] };

test('a file of runs is gone on with only if that is asked for, and by the same flags', async () => {
  const path = join(folder, 'kept.json');
  expect(await readKept(path, fresh, false)).toBe(fresh);
  const kept = { ...fresh, runs: [{ number: 1 }] };
  writeFileSync(path, JSON.stringify(kept));
  expect(await readKept(path, fresh, true)).toEqual(kept);
  await expect(readKept(path, fresh, false)).rejects.toThrow('go on with --resume');
  const other = { ...fresh, seal: 'b' };
  await expect(readKept(path, other, true)).rejects.toThrow('has the runs of other flags');
});

test('a file that cannot be read, or is no JSON, is named', async () => {
  const path = join(folder, 'bad.json');
  writeFileSync(path, '{');
  await expect(readKept(path, fresh, true)).rejects.toThrow(`${path} is no JSON`);
  mkdirSync(join(folder, 'folder.json'));
  const reading = readKept(join(folder, 'folder.json'), fresh, true);
  await expect(reading).rejects.toThrow('cannot read');
});
