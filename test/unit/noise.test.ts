import { expect, test } from 'vitest';
import { noiseOf } from '../../lib/analysis/limit.ts';
import { summarise } from '../fixtures/summary.ts';
import type { MeasuredVariant, RunFacts } from '../../lib/analysis/verdict.ts';
import { present } from '../../lib/present.ts';
import { limitLines } from '../../lib/report/sentences.ts';
import type { Noise, Phase } from '../../lib/result/result.ts';
import { measured } from '../fixtures/comparison.ts';
import { phase } from '../fixtures/phase.ts';
import { facts, result } from '../fixtures/result.ts';

const quiet: Noise = {
  serverStealShare: 0,
  generatorStealShare: 0,
  serverOthersShare: 0.01,
  generatorOthersShare: 0.01,
  loadAverage: 2,
  serverMhz: [2400, 2400],
};

function variant(
  name: string,
  noises: readonly (Partial<Noise> | null)[],
  changes: Partial<MeasuredVariant> = {},
  requests: readonly number[] = [],
  ofPhase: Partial<Phase> = {},
) {
  const phases = noises.map((noise, index) =>
    phase({
      ...ofPhase,
      requests: requests[index] ?? 100_000,
      noise: noise === null ? null : { ...quiet, ...noise },
    }),
  );
  const against = name === 'workers' ? {} : { against: 'workers' };
  return measured(name, phases, { ...against, ...changes });
}

const texts = (variants: readonly MeasuredVariant[], run: Partial<RunFacts> = {}) =>
  summarise({ ...facts, ...run }, variants).warnings;
const four = (noise: Partial<Noise> | null): (typeof noise)[] => Array(4).fill(noise);

const fourOf = (changes: Partial<Phase>) =>
  measured('workers', Array(4).fill(phase({ requests: 1000, ...changes })));

test('the noise of a round is computed over all phases', () => {
  const phases = [
    { seconds: 3, serverStealShare: 0.1, serverOthersShare: 0.21, generatorOthersShare: 0.41 },
    { seconds: 1, serverStealShare: 0.5, generatorStealShare: 0.4, loadAverage: 3 },
  ].map(({ seconds, ...noise }, index) => {
    const serverMhz: [number, number] = index === 0 ? [800, 3000] : [3100, 2900];
    return phase({ requests: 1, seconds, noise: { ...quiet, ...noise, serverMhz } });
  });
  expect(noiseOf({ round: 1, phases })).toEqual({
    serverStealShare: expect.closeTo(0.2, 12),
    generatorStealShare: expect.closeTo(0.1, 12),
    serverOthersShare: expect.closeTo(0.16, 12),
    generatorOthersShare: expect.closeTo(0.31, 12),
    loadAverage: 3,
    mhz: { lowest: 2900, highest: 3100 },
  });
});

test('little or no noise is not reported', () => {
  const little = { serverStealShare: 0.019, generatorStealShare: 0.019, serverOthersShare: 0.049 };
  const cache = variant('cache', four({ serverMhz: [2300, 2300] }));
  expect(texts([variant('workers', four(little)), cache])).toEqual([]);
  for (const none of [four(null), []])
    expect(texts([variant('workers', none), variant('cache', none)])).toEqual([]);
});

test('steal time is reported', () => {
  const undecided = [100_000, 140_000, 80_000, 120_000];
  const steal = { serverStealShare: 0.12 };
  const both = [
    variant('workers', [{}, { serverStealShare: 0.02 }, {}, steal]),
    variant('cache', [{}, {}, {}, steal], {}, undecided),
  ];
  expect(texts(both).join()).toMatch(/^.* 12 % of the server's core in rounds 2 and 4: run again/);
  const ofGenerator = [variant('workers', four({ generatorStealShare: 0.031 }))];
  expect(texts(ofGenerator, { generatorCores: 2 }).join()).toMatch(
    /^.* up to 3\.1 % of the generator's cores in every round: run/,
  );
  const [line] = texts([variant('workers', [steal, steal, steal, steal, {}])]);
  expect(line).toContain('in 4 of 5 rounds');
});

test("other processes on the server's core are reported", () => {
  const variants = [variant('workers', [{}, { serverOthersShare: 0.08 }, {}, {}])];
  expect(texts(variants)).toEqual([
    expect.stringMatching(/^others used up to 8\.0 % of the server's core in round 2: end what /),
  ]);
  expect(texts(variants, { sharedCores: true })).toEqual([]);
});

test("other processes on the generator's core are reported", () => {
  const line = expect.stringMatching(
    /^others used up to 50 % of the generator's core in every round, .* understated/,
  );
  const used = four({ generatorOthersShare: 0.5 });
  const pair = (cpuSeconds: readonly (number | null)[], run: Partial<RunFacts> = {}) => {
    const sides = cpuSeconds.map((serverCpuSeconds, index) => {
      const requests = Array<number>(4).fill(100_000 + 20_000 * index);
      const cpu = { serverCpuSeconds, generatorCpuSeconds: 3 };
      return variant(['workers', 'cache'][index] as string, used, {}, requests, cpu);
    });
    return texts(sides, run);
  };
  expect(pair([7, 6])).toEqual([line]);
  expect(pair([7, 6])[0]).toContain(', when workers and cache had time left: ');
  expect(pair([7, 9.6])[0]).toContain(', when workers had time left: ');
  expect(pair([null, null])).toEqual([line]);
  const load = { ...variant('workers', []).load, rate: 1000 };
  const cpu = { serverCpuSeconds: 7, generatorCpuSeconds: 3 };
  const open = variant('workers', used, { load }, [], cpu);
  expect(texts([open])).toContainEqual(
    expect.stringMatching(/, when workers had time left: latency is overstated: end/),
  );
  // A busy server lost nothing, because the generator never kept it waiting.
  expect(pair([9.6, 9.7])).toEqual([]);
  expect(pair([9.1, 9.2])).toEqual([]);
  // On shared cores both sides lose the same CPU time.
  expect(pair([7, 6], { sharedCores: true })).toEqual([]);
});

test('a server at its limit had time left only in the named rounds', () => {
  const disturbed = { ...quiet, generatorOthersShare: 0.5, serverOthersShare: 0 };
  const rounds = [9.9, 9.9, 8, 9.9].map((serverCpuSeconds) =>
    phase({ requests: 1000, serverCpuSeconds, generatorCpuSeconds: 3, noise: disturbed }),
  );
  const of = result([measured('workers', rounds)]);
  expect(limitLines(of)).toEqual([expect.stringMatching(/^nginx was the limit: nginx at 99 %, /)]);
  expect(of.warnings).toEqual([
    expect.stringMatching(
      /^others used up to 50 % of the generator's core in round 3, when workers had time left: /,
    ),
  ]);
});

test('others take from a server what it waited for', () => {
  const noise = { ...quiet, serverOthersShare: 0.45 };
  const limitOf = (waitedShare?: number) => {
    const used = { serverCpuSeconds: 5, generatorCpuSeconds: 3, noise };
    const rounds = Array(4).fill(phase({ requests: 1000, ...used, ...present({ waitedShare }) }));
    return limitLines(result([measured('workers', rounds)])).join();
  };
  const ofGenerator = ', the generator at 30 % of its available CPU.';
  const atLimit = `nginx was the limit: nginx at 91 %${ofGenerator}`;
  expect(limitOf(0.45)).toBe(atLimit);
  // Its tasks waited for each other too.
  expect(limitOf(3)).toBe(atLimit);
  expect(limitOf(undefined)).toBe(atLimit);
  expect(limitOf(0.02)).toBe(`Neither was the limit: nginx at 51 %${ofGenerator}`);
});

test('servers that pause in an undecided pair get longer rounds proposed', () => {
  const texts = (gapsMs: readonly number[], changes: Partial<Phase> = {}) => {
    const of = (name: string, rps: readonly number[], gaps: readonly number[]) =>
      measured(
        name,
        rps.map((requests, round) =>
          phase({ requests, seconds: 1, longestGapMs: gaps[round] as number, ...changes }),
        ),
        {
          load: { protocol: 'http/1.1', threads: 1, durationSeconds: 1 },
          ...(name === 'b' && { against: 'a' }),
        },
      );
    const sides = [
      of('a', [1000, 1000, 850, 1000], [1, 1, 1, 1]),
      of('b', [1000, 850, 1000, 1000], gapsMs),
    ];
    return summarise(facts, sides).warnings.filter((text) => text.includes('paused'));
  };
  expect(texts([156, 140, 150, 20])).toEqual([
    expect.stringMatching(
      /^b paused for about 145\.00 ms at a time, .* round of 1 s .*--duration 10s/,
    ),
  ]);
  expect(texts([156, 140, 20, 20])).toEqual([]);
  const slow = { ...phase({ requests: 1 }).latencyMs, p50: 100 };
  expect(texts([156, 140, 150, 20], { latencyMs: slow })).toEqual([]);
  // Who has no core pauses, too.
  expect(texts([156, 140, 150, 20], { noise: { ...quiet, serverOthersShare: 0.9 } })).toEqual([]);
});

test('the usage of a backend is reported separately', () => {
  const passing = (noise: Partial<Noise>) => {
    const noises = [{}, noise, {}, {}].map((changes) => ({ upstreamShare: 0, ...changes }));
    return texts([variant('workers', noises)]);
  };
  expect(passing({ upstreamShare: 0.83 })).toEqual([
    expect.stringMatching(/^the backend used up to 83 % of the server's core in .*taskset/),
  ]);
  expect(passing({ upstreamShare: 0.04, serverOthersShare: 0.2 })).toEqual([
    expect.stringContaining('end what else runs on this machine, but not the backend, and'),
  ]);
  const beside = four({ upstreamShare: 0.04, generatorOthersShare: 0.5 });
  const cpu = { serverCpuSeconds: 7, generatorCpuSeconds: 3 };
  expect(texts([variant('workers', beside, {}, [], cpu)])).toEqual([
    expect.stringMatching(
      /^others, with the backend if it runs there, used up to 50 % of the generator's core .*machine, but not the backend, and run/,
    ),
  ]);
  expect(passing({ upstreamShare: null, serverOthersShare: 0.83 })).toEqual([
    expect.stringMatching(/^the backend and other programs used up to 83 % of the server's core/),
  ]);
});

test('noise is not reported if sides in turns have all verdicts', () => {
  const disturbed = { serverStealShare: 0.12, serverOthersShare: 0.3 };
  const steal = four(disturbed);
  const pair = (ratios: readonly number[]) => {
    const noises = ratios.map(() => disturbed);
    const requests = ratios.map((ratio) => 100_000 * ratio);
    return texts([variant('workers', noises), variant('cache', noises, {}, requests)]);
  };
  expect(pair([1.2, 1.21, 1.19, 1.2])).toEqual([]);
  const both = [expect.stringMatching(/^steal time: /), expect.stringMatching(/^others used /)];
  expect(pair([1.2, 0.8, 1.1, 1])).toEqual(both);
  // Without verdicts, noise may have affected either side.
  expect(pair([1.2, 1.21, 1.19])).toEqual(both);
  // Sides loaded alone, or one after the other.
  const once = { count: 1, responses: 0, sliceMs: 4000, rampMs: 200, waits: false };
  for (const turns of [null, once]) {
    const cache = variant('cache', steal, {}, [120_000, 121_000, 119_000, 120_000], { turns });
    expect(texts([variant('workers', steal, {}, [], { turns }), cache])).toEqual(both);
  }
});

test('a generator at its limit gives one warning', () => {
  const used = (generatorCpuSeconds: number) =>
    texts([fourOf({ serverCpuSeconds: 7, generatorCpuSeconds })]);
  expect(used(9.5)).toEqual([
    expect.stringMatching(/^workers: the generator was at its limit \(95 % .* threads$/),
  ]);
  expect(used(9)).toHaveLength(1);
});

test('a generator that hardly works is not at its limit, however much others use', () => {
  const noise = { ...quiet, generatorOthersShare: 1 };
  const of = result([fourOf({ serverCpuSeconds: 1, generatorCpuSeconds: 0.01, noise })]);
  expect(of.variants[0]?.generatorShare).toBeLessThan(0.1);
  expect(of.warnings.join()).not.toContain('the generator was at its limit');
});

test('a generator is at its limit if it used all available CPU time', () => {
  const pressed = (noise: Partial<Noise>) => {
    const all = { ...quiet, serverOthersShare: 0, generatorOthersShare: 0, ...noise };
    return texts([fourOf({ serverCpuSeconds: 5, generatorCpuSeconds: 4.6, noise: all })]).join();
  };
  expect(pressed({})).toBe('');
  const limit = 'the generator was at its limit (92 % of its available CPU), ';
  for (const name of ['generatorOthersShare', 'generatorStealShare'])
    expect(pressed({ [name]: 0.5 })).toContain(limit);
  expect(pressed({ generatorOthersShare: 0.5, serverOthersShare: 0.45 })).not.toContain(limit);
});
