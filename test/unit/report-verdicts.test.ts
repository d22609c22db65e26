// Verdicts as sentences and cells. Each sentence is checked once.
import { describe, expect, test } from 'vitest';
import type { MeasuredVariant } from '../../lib/analysis/verdict.ts';
import { tableParts, variantTable } from '../../lib/report/run-tables.ts';
import { verdictLines } from '../../lib/report/sentences.ts';
import { verdictCell } from '../../lib/report/verdict-words.ts';
import type { Comparison, Metric, Result, Verdict } from '../../lib/result/result.ts';
import { type Figures, h2Result, shippedScenario } from '../fixtures/h2-result.ts';
import {
  findingLines,
  askedBy,
  compared,
  openFileCache,
  renumbered,
  result,
  rounds,
  workers,
} from '../fixtures/result.ts';
import { answers, nginxWith } from '../fixtures/phase.ts';
import { columnOf } from '../fixtures/table.ts';

const even = [-0.01, 0.004, 0.011, -0.002, 0.006, -0.009];
const uneven = [0.005, -0.014, 0.003, 0.012, -0.006, 0];
const about = (rps: number, offs = even): Figures => ({ rps: offs.map((off) => rps * (1 + off)) });

const both = askedBy(
  await shippedScenario('nginx-open-file-cache'),
  result([workers, openFileCache]),
);
const sentence = (changes: Partial<Comparison>, more: Partial<Result> = {}) =>
  verdictLines(compared(both, changes, more), [])[0] ?? '';
const inconclusive = {
  ratio: 1.01,
  ci95: [0.98, 1.04],
  verdict: 'inconclusive',
  roundsNeeded: 24,
} as const satisfies Partial<Comparison>;

test.each<[Partial<Comparison>, string]>([
  [
    { verdict: 'same', ratio: 1.001, ci95: [0.9985, 1.0034] },
    'open_file_cache is as fast as without here, within 1 %: +0.1 % (95 % interval −0.1 % to +0.3 %)',
  ],
  [
    { ...inconclusive, cpu: null },
    'Not decided whether open_file_cache is faster: +1 % (95 % interval −2 % to +4 %); about 24 rounds would probably decide',
  ],
])('the sentence has the knob, the effect and the article: %j', (changes, text) => {
  expect(sentence(changes)).toBe(`${text}; the article saw +12 %.`);
});

test.each<[Metric, number, [number, number], Comparison['verdict'], string]>([
  ['rps', 6.02, [5.804, 6.25], 'faster', 'faster here: 6.02 times; 5.8 to 6.25 times'],
  ['cpu', 0.22, [0.14, 0.34], 'faster', 'cheaper here: uses 22 % of the CPU; 14 % to 34 %'],
])(
  'shows percent up to double, then factors; shares of CPU time: %s %f',
  (metric, ratio, ci95, verdict, text) => {
    const shown = sentence({ metric, ratio, ci95, verdict, publishedRatio: null });
    expect(shown).toBe(`open_file_cache is ${text.replace('; ', ' (95 % interval ')}).`);
  },
);

test('the sentence names the variants if more than the knob differs', () => {
  const ours = { ...openFileCache, name: 'ours' };
  const h2o = { ...nginxWith('base'), name: 'h2o', version: '2.2.5' };
  const sentenceOn = (...variants: MeasuredVariant[]) =>
    verdictLines({ ...result([workers, ...variants]), knob: 'open_file_cache' }, []).join();
  expect(sentenceOn(openFileCache, ours)).toMatch(
    /^open-file-cache is faster than workers here.*,ours is faster than workers here/,
  );
  expect(sentenceOn({ ...ours, server: h2o })).toMatch(/^ours is faster than workers here/);
});

test('the sentence says how to get a verdict, and that of CPU per request', () => {
  expect(sentence({ ...inconclusive, roundsNeeded: null })).toContain(
    '; no reasonable number of rounds would decide;',
  );
  const cpu = (ratio: number, verdict: Verdict) => ({
    cpu: { ratio, ci95: [ratio * 0.99, ratio * 1.01] as [number, number], verdict },
  });
  expect(sentence({ ...inconclusive, ...cpu(0.74, 'faster') })).toMatch(
    /^open_file_cache is faster at its limit, by CPU per request: open-file-cache uses 74 % of the CPU \(95 % interval 73 % to 75 %\)\. Requests\/s alone do not decide it: \+1 % .* about 24 rounds .*; the article saw \+12 %\.$/,
  );
  const ended = compared(both, { ...inconclusive, ...cpu(1.03, 'slower') }, { state: 'partial' });
  expect(verdictLines(ended, [])[0]).toContain('No verdict is final');
  expect(verdictLines(ended, [])[1]).toMatch(
    /^open_file_cache is slower at its limit, .* 103 % of the CPU \(.*\), not final\. Requests\/s alone /,
  );
  expect(sentence({ ...inconclusive, ...cpu(1.001, 'same') })).toMatch(
    /^Not decided whether .* CPU per request is the same, within 1 %: .* 100\.1 % of the CPU \(.*\)\.$/,
  );
  expect(sentence({ verdict: 'none', why: 'workers stopped', ...cpu(2, 'slower') })).toMatch(
    /^No verdict on open_file_cache: workers stopped.* Requests\/s are not clear, but CPU per request is: .* 2 times the CPU/,
  );
  // CPU per request without a share of α, even if it looks clear; and CPU per request as the main metric.
  for (const changes of [cpu(2, 'none'), { ...cpu(2, 'inconclusive'), metric: 'cpu' }] as const)
    expect(sentence({ ...inconclusive, ...changes })).toMatch(/^Not decided .* saw \+12 %\.$/);
});

test('the sentence gives p50 beside a p99 without verdict', () => {
  const p50 = { ratio: 1.5, ci95: [1.4, 1.6] as [number, number], verdict: 'slower' as const };
  const why = 'p99 needs 1,000 responses';
  const none = { metric: 'p99', ratio: 0, ci95: [0, 0], verdict: 'none', why } as const;
  const changes = { latency: { p50, p90: null, p99: null }, publishedRatio: null };
  const partial = compared(both, { ...none, ...changes } as never, { state: 'partial' });
  expect(verdictLines(partial, [])[1]).toMatch(
    /responses; p50 \+50 % \(95 % interval \+40 % to \+60 %\), slower, not final\.$/,
  );
  expect(verdictCell(partial.comparisons[0] as Comparison, partial).text).toBe(
    '– p99 needs 1,000 responses, p50 +50 % [40, 60] slower, not final',
  );
});

test('comparisons with the same reason share a sentence, and so do notes', () => {
  const why = 'p99 needs 1,000 responses';
  const none: Partial<Comparison> = { verdict: 'none', why, cpu: null, publishedRatio: null };
  const three = result([workers, openFileCache, { ...openFileCache, name: 'third' }]);
  const of = (last: Partial<Comparison>) => ({
    ...three,
    comparisons: three.comparisons.map((comparison, index) => ({
      ...comparison,
      ...none,
      ...(index && last),
    })),
  });
  expect(verdictLines(of({}), [])).toEqual([
    `No verdict on open-file-cache against workers (measured +33 %) and third against workers (measured +33 %): ${why}.`,
  ]);
  expect(verdictLines(of({ why: 'b was stopped' }), [])).toHaveLength(2);
});

const below = (of: Result) => tableParts(of, [])[0]?.below ?? [];

test('below the table are the rounds of undecided rows and outliers', () => {
  expect(below(compared(both, { outliers: [] }))).toEqual([]);
  const roundRatios = [1.4, 1.44, 1.8, 1.42, 1.41, 1.43];
  const line =
    'open-file-cache, rounds (! is an outlier): +40 %, +44 %, +80 %!, +42 %, +41 %, +43 %';
  expect(below(compared(both, { roundRatios, outliers: [3] }))).toEqual([line]);
  // A repeated round shifts the round numbers.
  const variants = both.variants.map((variant) => renumbered(variant, (round) => round + 1));
  expect(below(compared(both, { roundRatios, outliers: [4] }, { variants }))).toEqual([line]);
  const undecided = { ...inconclusive, ratio: 1.33, roundRatios: [0.99, 1.004], outliers: [] };
  expect(below(compared(both, undecided))).toEqual(['open-file-cache, rounds: −1 %, +0.4 %']);
});

test('below the table is why requests/s and CPU disagree', () => {
  const [comparison] = both.comparisons as [Comparison];
  const quiet = { ...comparison, outliers: [], disagreement: 'of this' };
  const lines = below({ ...both, comparisons: [quiet, { ...quiet, baseline: 'another' }] });
  expect(lines[0]).toMatch(
    /: requests\/s \(\+33 %\) and CPU .*\(−26 %\) disagree, since of this\.$/,
  );
  expect(lines[1]).toMatch(/^open-file-cache against another: /);
});

const limitOf = (of: Result) => findingLines(of).find((line) => line.includes('the generator at '));

test.each([
  [15.9, 7, 'nginx was the limit: nginx at 96 %, the generator at 70 % of its available CPU.'],
  [11, 9.7, 'The generator was the limit: nginx at 66 %, the generator at 97 %'],
  [16, 9.8, 'Both sides were at their limit: nginx at 97 %, the generator at 98 %'],
  [11, 7, 'Neither was the limit: nginx at 66 %, the generator at 70 %'],
])(
  'the bottleneck is the side that used its CPU time: %f µs, %f s',
  (cpuMicros, generatorCpuSeconds, text) => {
    const counts = [604_000, 604_300, 604_120, 603_900];
    const its = rounds(counts, cpuMicros, 1, 2, 3, generatorCpuSeconds);
    const limited = result([{ ...workers, rounds: its }]);
    expect(limitOf(limited)).toContain(text);
    const warns = limited.warnings.join().includes('the generator was at its limit');
    expect(warns).toBe(text.startsWith('The generator'));
  },
);

test('the limit counts usable cores only, and none that are shared', () => {
  const server = { ...nginxWith(), workers: 4 };
  const four = { ...workers, name: 'four', against: 'workers', server };
  const of = result([workers, four], {}, { serverCores: 8, generatorCores: 4 });
  expect(limitOf(of)).toMatch(/^Use of the cores: nginx at 24 to 96 %, the generator at 66 % /);
  const node = { ...four, server: { ...server, name: 'node' } };
  expect(limitOf(result([workers, node, { ...node, name: 'five' }]))).toContain(
    ': workers at 96 %, four at 96 %, five at 96 %, the generator at ',
  );
  const environment = { ...of.environment, serverCpus: [0], generatorCpus: [0] };
  expect(limitOf({ ...of, environment })).toBeUndefined();
});

const sending = (...gbits: number[]): Result => ({
  ...both,
  variants: both.variants.map((variant, index) => {
    const receivedBytesPerSecond = (gbits[index] ?? 0) * 125e6;
    const traffic = { ...variant.traffic, receivedBytesPerSecond } as typeof variant.traffic;
    return { ...variant, rps: { ...variant.rps, median: 60_000 } as typeof variant.rps, traffic };
  }),
});

test('a link slower than the servers is reported with its most requests/s', () => {
  const linksOf = (of: Result) => findingLines(of).filter((line) => /Gbit/.test(line));
  expect(linksOf(sending(0.9, 0.99))).toEqual([]);
  expect(linksOf(sending(2.1, 2))).toEqual([
    'A link of 1 Gbit/s would allow at most 28,571 requests/s of workers and 30,000 requests/s of open-file-cache.',
  ]);
  expect(linksOf(sending(2, 2))).toEqual([
    'A link of 1 Gbit/s would allow at most 30,000 requests/s of workers and open-file-cache.',
  ]);
  expect(linksOf(sending(19, 20))).toHaveLength(1);
});

test.each<[string, number[], string[]]>([
  ['as many bytes', [2, 2.1], []],
  ['more bytes', [0.5, 4.1], ['open-file-cache sends 8.2 times the bytes', 'at most 14,634']],
  ['more bytes of the baseline', [4, 2], ['workers sends 2 times the bytes', 'at most 15,000']],
])('the verdict says that bytes are free on loopback: %s', (_, gbits, [begin, end]) => {
  const of = sending(...gbits);
  const lines = begin ? [`${begin}: free on loopback; on 1 Gbit/s ${end} requests/s.`] : [];
  expect(verdictLines(of, []).filter((line) => /bytes/.test(line))).toEqual(lines);
  // Once: the line on links is for the others.
  const links = findingLines(of).filter((line) => /A link of 1 Gbit/.test(line));
  for (const line of lines) expect(links.join()).not.toContain(line.split(' ')[0]);
  const generatorHosts = [{ name: 'web1' }] as never;
  const apart = { ...of, environment: { ...of.environment, generatorHosts } };
  expect(verdictLines(apart, []).filter((line) => /bytes/.test(line))).toEqual([]);
});

test('bytes are not compared with those of refused requests', () => {
  const of = sending(0.5, 4.1);
  const [first, second] = of.variants;
  const variants = [{ ...first, successRatio: 0.5 }, second] as Result['variants'];
  expect(verdictLines({ ...of, variants }, []).filter((line) => /bytes/.test(line))).toEqual([]);
});

test('a verdict applies to this machine since its last boot', () => {
  expect(findingLines(both)).toContain(
    'Verdicts hold for this machine in this boot (since 2026-11-19 07:00 UTC).',
  );
  for (const changes of [inconclusive, { verdict: 'none' } as const])
    expect(findingLines(compared(both, { ...changes, cpu: null })).join()).not.toContain(
      'Verdicts hold',
    );
});

const aa = (again: Figures): Promise<Result> =>
  h2Result('aa', { a: { rps: about(100_000).rps.slice(0, again.rps.length) }, again });

test.each([
  [
    about(100_500, uneven),
    /^again and a are equal, and no difference is found: \+0\.5 % \(95 % interval −\d.* % to \+\d.* %\)\.$/,
  ],
  [
    about(104_000),
    /^again is called faster than a, although they are .*: \+4 % .*one of 20 runs; /,
  ],
  [{ rps: [1000] }, /^No verdict on again against a: needs 4 rounds \(measured /],
])('a config against itself is never called faster (%#)', async (again, text) => {
  expect(verdictLines(await aa(again), [])[0]).toMatch(text);
});

test('a config against itself states the noise floor of its metric', async () => {
  const quiet = await aa(about(100_500, uneven));
  const floor = (100 * ((quiet.noiseFloor?.ratio ?? 0) - 1)).toFixed(1);
  expect(verdictLines(quiet, []).join()).toContain(
    `Noise floor: 10 rounds on this machine detect a difference of ±${floor} % about half`,
  );
  expect(verdictLines(compared(quiet, { metric: 'p99' }), []).join()).toContain(
    ` a difference in p99 of ±${floor} %`,
  );
});

const figures = {
  'h2o-initial': about(100_000),
  'h2o-tuned': about(101_000),
  'nginx-initial': about(57_000),
  'nginx-workers': about(57_500),
  'nginx-open-file-cache': about(92_000),
  'nginx-accept-mutex-delay': about(92_300, uneven),
  'nginx-tcp-nopush': about(105_000),
};
const ladder = await h2Result('h2o-vs-nginx', figures);
test('a long reason for no verdict stands in a sentence, and not in the cell', () => {
  const why = 'open-file-cache waited 40 % of its turns for cores that other programs used';
  const long = compared(both, { verdict: 'none', why });
  expect(verdictCell(long.comparisons[0] as Comparison, long).text).toMatch(/^\S+ % no verdict$/);
  expect(verdictLines(long, []).join()).toContain(why);
});

test('a ladder shows the steps; undecided ones share a sentence', () => {
  const cells = columnOf(variantTable(ladder), 'against the row before');
  expect(cells?.map((text) => text.replace(/^.*\] /, ''))).toEqual([
    '',
    '+1 % needs 2 server cores',
    'slower (against h2o-initial)',
    '+0.9 % needs 2 server cores',
    'faster',
    'inconclusive',
    'faster',
  ]);
  expect(verdictLines(ladder, []).map((line) => line.split(/ here| \(/)[0])).toEqual([
    'Not decided: nginx-accept-mutex-delay against nginx-open-file-cache',
    'nginx-initial is slower than h2o-initial',
    'nginx-tcp-nopush is faster than h2o-tuned',
    'nginx-tcp-nopush is faster than nginx-workers',
  ]);
});

describe('requests/s by streams', async () => {
  const figures: Record<string, Figures> = {
    'nginx-http1': about(61_230),
    'streams-100': about(154_450),
    'streams-50': about(150_000),
    'streams-20': about(140_000),
    'streams-10': about(110_000),
    'streams-5': about(95_000),
    'streams-2': about(72_000),
    'streams-1': about(60_000),
  };
  const sweepOf = (changes: Record<string, Figures>): Promise<Result> =>
    h2Result('h2-stream-sweep', { ...figures, ...changes });
  const refused = answers({ '5xx': 100_000 });
  const failing = (rps: number): Figures => ({ ...about(rps), phases: [{ responses: refused }] });

  test.each([
    [
      {},
      /nginx-http1: 2\.52 times with 100 streams per connection \(the article saw 2\.83 times\), −2 % with 1 stream; faster from 2 streams on\.$/,
    ],
    [{ 'nginx-http1': about(20_000) }, /; faster from 1 stream on\.$/],
    [
      { 'streams-100': failing(900_000), 'streams-1': failing(60_000) },
      /: 2\.45 times with 50 streams per connection, \+18 % with 2 streams\.$/,
    ],
  ])('give one sentence on streams with a verdict (%#)', async (changes, text) => {
    const line = verdictLines(await sweepOf(changes), []).find((candidate) =>
      candidate.includes('over HTTP/2'),
    );
    expect(line).toMatch(text);
  });

  test('need more than two stream counts, and responses over HTTP/1.1', async () => {
    const line = { 'nginx-http1': about(61_230) };
    const ends = { 'streams-100': about(154_450), 'streams-1': about(60_000) };
    for (const none of [
      { ...line, ...ends },
      { ...ends, 'streams-2': about(72_000) },
      { ...figures, 'nginx-http1': failing(1) },
    ])
      expect(verdictLines(await h2Result('h2-stream-sweep', none), []).join()).not.toContain(
        'over HTTP/2',
      );
  });
});
