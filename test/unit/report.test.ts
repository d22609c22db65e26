import { describe, expect, test } from 'vitest';
import * as format from '../../lib/format.ts';
import { markdownReport } from '../../lib/report/markdown.ts';
import { createRunProgress } from '../../lib/report/terminal.ts';
import { headingLines, loadText } from '../../lib/report/heading.ts';
import {
  findingLines as lines,
  footnoteLines,
  storedLine,
  warningLines,
} from '../../lib/report/sentences.ts';
import { variantTable } from '../../lib/report/run-tables.ts';
import { terminalTable } from '../../lib/report/table.ts';
import type { MeasuredVariant } from '../../lib/analysis/verdict.ts';
import { findScenario } from '../../lib/scenario/catalogue.ts';
import type { Scenario } from '../../lib/scenario/model.ts';
import type { Metric, Result } from '../../lib/result/result.ts';
import { fitLoad } from '../../lib/scenario/load.ts';
import { ab, wrk } from '../../lib/scenario/load/generators.ts';
import { askedBy, openFileCache, result, rounds, workers } from '../fixtures/result.ts';

const scenario = await findScenario('nginx-open-file-cache');
const plain = { width: Infinity, colour: false };
const both = result([workers, openFileCache]);
const heading = {
  scenario: 'nginx-open-file-cache',
  load: 'wrk -c 100 -t 10 -d 10',
  bodyBytes: [612],
  pages: [1],
  addresses: [],
  protocol: 'http/1.1',
  network: '',
  rounds: 6,
  seconds: 140,
  estimated: true,
  server: 'nginx 1.22.1',
  k6: 'k6 2.2.0',
  serverCpus: [1],
  generatorCpus: [0],
  kernel: 'Linux 6.18',
  cpuModel: 'Xeon',
};
const withRounds = (
  requests: readonly number[],
  changes: Partial<MeasuredVariant> = {},
): MeasuredVariant => ({
  ...openFileCache,
  rounds: rounds(requests, 11.8, 1.2, 1.7, 6.9, 7),
  ...changes,
});
const findingLines = (of: Result, by: Scenario) => lines(askedBy(by, of));
const inWords = (variant: MeasuredVariant) => findingLines(result([workers, variant]), scenario)[0];

describe('the table', () => {
  test('on a wide terminal', () => {
    expect(terminalTable(variantTable(both), plain).join('\n')).toBe(
      [
        '                  published               here',
        'variant          requests/s  ratio  requests/s  against workers            CPU µs/req  CPU ratio           p50 ms  p99 ms  max ms  errors/M  success',
        'workers             624,639             60,411                                   15.9                         1.6     2.1     8.4         0    100 %',
        'open-file-cache     700,324  ×1.12      80,275  ×1.33 [1.31, 1.34] faster        11.8  ×0.74 [0.74, 0.74]     1.2     1.7     206         0    100 %',
      ].join('\n'),
    );
  });

  test('on 80 columns, and on fewer, goes on below', () => {
    const lines = [
      '                  published               here',
      'variant          requests/s  ratio  requests/s  against workers',
      'workers             624,639             60,411',
      'open-file-cache     700,324  ×1.12      80,275  ×1.33 [1.31, 1.34] faster',
      '',
      '                       here',
      'variant          CPU µs/req  CPU ratio           p50 ms  p99 ms  max ms',
      'workers                15.9                         1.6     2.1     8.4',
      'open-file-cache        11.8  ×0.74 [0.74, 0.74]     1.2     1.7     206',
      '',
      '                     here',
      'variant          errors/M  success',
      'workers                 0    100 %',
      'open-file-cache         0    100 %',
    ];
    expect(terminalTable(variantTable(both), { width: 80, colour: false })).toEqual(lines);
    expect(terminalTable(variantTable(both), { width: 20, colour: false })).toEqual(lines);
    expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(80);
  });

  test('colours the verdict only, and moves nothing by it', () => {
    const coloured = terminalTable(variantTable(both), { width: Infinity, colour: true });
    expect(coloured[3]).toContain('[1.31, 1.34] \u001b[32mfaster\u001b[39m ');
    expect(coloured.map((line) => line.replaceAll(/\u001b\[\d+m/g, ''))).toEqual(
      terminalTable(variantTable(both), plain),
    );
  });

  test('says what was only published, and leaves out columns with nothing in them', () => {
    const spdy = {
      ...openFileCache,
      name: 'spdy',
      server: null,
      publishedOnly: 'it is gone',
      rounds: [],
    };
    expect(terminalTable(variantTable(result([workers, spdy])), plain)).toEqual([
      '          published                   here',
      'variant  requests/s  ratio      requests/s  CPU µs/req  p50 ms  p99 ms  max ms  errors/M  success',
      'workers     624,639                 60,411        15.9     1.6     2.1     8.4         0    100 %',
      'spdy        700,324  ×1.12  published only',
    ]);
    expect(footnoteLines(result([workers, spdy]))).toEqual(['spdy is published only: it is gone']);
    const { published: _, ...ours } = workers;
    expect(terminalTable(variantTable(result([{ ...ours, published: null }])), plain)[1]).toMatch(
      /^variant +requests\/s +CPU/,
    );
  });

  test('shows a failure that rounds to none', () => {
    const failing = structuredClone(workers);
    const [first] = failing.rounds[0]?.phases ?? [];
    Object.assign(first?.errors ?? {}, { read: 1, total: 1 });
    Object.assign(first?.responses ?? {}, { '2xx': 603_999 });
    expect(terminalTable(variantTable(result([failing])), plain)[2]).toMatch(/ 99\.99 % .* <1$/);
  });
});

describe('in words', () => {
  test.each([
    [
      [790_000, 815_000, 803_000, 802_500, 799_900, 803_100],
      'open_file_cache is faster here: +33 % (95 % interval +31 % to +34 %); the article saw +12 %.',
    ],
    [
      [500_000, 512_000, 508_000, 509_000, 507_000, 505_000],
      'open_file_cache is slower here: −16 % (95 % interval −17 % to −15 %); the article saw +12 %.',
    ],
    [
      [604_000, 604_300, 604_120, 603_900, 604_200, 604_100],
      'open_file_cache is as fast as without here, within 1 %: ±0 % (95 % interval ±0 % to ±0 %); the article saw +12 %.',
    ],
    [
      [500_000, 700_000, 600_000, 610_000, 640_000, 580_000],
      'Whether open_file_cache is faster cannot be told from this: −0.4 % (95 % interval −11 % to +12 %); no reasonable number of rounds would decide; the article saw +12 %. But CPU per request is clear: open-file-cache uses 74 % of the CPU (95 % interval 74 % to 74 %); --metric cpu compares by that.',
    ],
  ])('%j', (requests, sentence) => {
    expect(inWords(withRounds(requests))).toBe(sentence);
  });

  test('up to double in percent, beyond in times, of CPU the share', () => {
    const by = (metric: Metric, ratio: number, ci95: [number, number]): string =>
      findingLines(
        {
          ...both,
          comparisons: both.comparisons.map((one) => ({
            ...one,
            metric,
            ratio,
            ci95,
            publishedRatio: null,
            verdict: metric !== 'rps' && ratio > 1 ? 'slower' : 'faster',
          })),
        },
        scenario,
      )[0] as string;
    expect(by('rps', 1.99, [1.9, 2.1])).toBe(
      'open_file_cache is faster here: +99 % (95 % interval +90 % to +110 %).',
    );
    expect(by('rps', 6.02, [5.804, 6.25])).toBe(
      'open_file_cache is faster here: 6.02 times (95 % interval 5.8 to 6.25 times).',
    );
    expect(by('p99', 2, [1.95, 1e300])).toBe(
      'open_file_cache is slower here: p99 2 times (95 % interval 1.95 to over 1,000,000 times).',
    );
    expect(by('cpu', 0.22, [0.14, 0.34])).toBe(
      'open_file_cache is cheaper here: uses 22 % of the CPU (95 % interval 14 % to 34 %).',
    );
    expect(by('cpu', 0.988, [0.985, 0.991])).toBe(
      'open_file_cache is cheaper here: uses 98.8 % of the CPU (95 % interval 98.5 % to 99.1 %).',
    );
    expect(by('cpu', 8.13, [7.9, 8.4])).toBe(
      'open_file_cache is dearer here: uses 8.13 times the CPU (95 % interval 7.9 to 8.4 times).',
    );
    const published = {
      ...both,
      comparisons: both.comparisons.map((one) => ({ ...one, publishedRatio: 11.69 })),
    };
    expect(findingLines(published, scenario)[0]).toMatch(/; the article saw 11\.7 times\.$/);
  });

  test('without a verdict says why', () => {
    const two = (variant: MeasuredVariant): MeasuredVariant => ({
      ...variant,
      rounds: variant.rounds.slice(0, 2),
    });
    expect(findingLines(result([two(workers), two(openFileCache)]), scenario)[0]).toBe(
      'No verdict on open_file_cache: needs 4 rounds (measured +33 %); the article saw +12 %.',
    );
    // Of so few rounds the interval may reach into the millions.
    expect(
      terminalTable(variantTable(result([two(workers), two(openFileCache)])), plain)[3],
    ).toMatch(/ ×1\.33 needs 4 rounds /);
  });

  test('of a variant that nobody published, or of several comparisons', () => {
    const ours = withRounds([790_000, 815_000, 803_000, 802_500, 799_900, 803_100], {
      published: null,
      name: 'ours',
    });
    expect(findingLines(result([workers, openFileCache, ours]), scenario).slice(0, 2)).toEqual([
      'open-file-cache is faster than workers here: +33 % (95 % interval +31 % to +34 %); the article saw +12 %.',
      'ours is faster than workers here: +33 % (95 % interval +31 % to +34 %).',
    ]);
  });

  test("of one comparison that is not the article's step: the knob is in neither config", () => {
    const unlimited = withRounds([790_000, 815_000, 803_000, 802_500, 799_900, 803_100], {
      published: null,
      name: 'workers-unlimited',
    });
    expect(inWords(unlimited)).toBe(
      'workers-unlimited is faster than workers here: +33 % (95 % interval +31 % to +34 %).',
    );
    const own = {
      ...scenario,
      variants: [
        ...scenario.variants.slice(0, 2),
        { ...(scenario.variants[2] as (typeof scenario.variants)[number]), onRequest: false },
      ],
    };
    expect(findingLines(both, own)[0]).toMatch(/^open-file-cache is faster than workers here: /);
  });

  test('of one comparison of two servers: no knob is between them', () => {
    const onH2o = {
      ...openFileCache,
      server: { name: 'h2o', version: '2.2.5', workers: 1, config: ['base'], redirections: [] },
    };
    expect(inWords(onH2o)).toBe(
      'open-file-cache is faster than workers here: +33 % (95 % interval +31 % to +34 %); the article saw +12 %.',
    );
  });

  test.each([
    [15.9, 7, 'nginx was the limit: nginx at 96 %, the generator at 70 % of its available CPU.'],
    [
      11,
      9.7,
      'The generator was the limit: nginx at 66 %, the generator at 97 % of its available CPU.',
    ],
    [
      16,
      9.8,
      'Both sides were at their limit: nginx at 97 %, the generator at 98 % of its available CPU.',
    ],
    [11, 7, 'Neither was the limit: nginx at 66 %, the generator at 70 % of its available CPU.'],
  ])('who was the limit: %f µs, %f s', (cpuMicros, generatorCpuSeconds, sentence) => {
    const requests = [604_000, 604_300, 604_120, 603_900];
    const limited = {
      ...workers,
      rounds: rounds(requests, cpuMicros, 1, 2, 3, generatorCpuSeconds),
    };
    const said = result([limited]);
    expect(findingLines(said, scenario)).toEqual([sentence]);
    // The note above the sentence says the same.
    expect(
      said.warnings.some((warning) => warning.includes('the generator was at its limit')),
    ).toBe(sentence.startsWith('The generator was the limit'));
  });

  test('who was the limit, by the cores that workers and threads can use, however many there are', () => {
    const said = result(
      [
        {
          ...workers,
          server: { name: 'nginx', version: '1.22.1', workers: 2, config: [], redirections: [] },
        },
      ],
      {},
      { serverCores: 8, generatorCores: 4 },
    );
    said.environment.serverCpus = [4, 5, 6, 7, 8, 9, 10, 11];
    said.environment.generatorCpus = [0, 1, 2, 3];
    expect(findingLines(said, scenario)).toEqual([
      'Neither was the limit: nginx at 48 %, the generator at 66 % of its available CPU.',
    ]);
    const four = {
      ...workers,
      name: 'four',
      server: { name: 'nginx', version: '1.22.1', workers: 4, config: [], redirections: [] },
      against: 'workers',
    };
    const both = result([workers, four], {}, { serverCores: 8, generatorCores: 4 });
    both.environment.serverCpus = said.environment.serverCpus;
    expect(findingLines(both, scenario)).toContain(
      'Use of the cores: nginx at 24 to 96 %, the generator at 66 % of its available CPU.',
    );
  });

  test('what is stored', () => {
    expect(storedLine(both.integrity)).toBe(
      'Stored 7,034,450 of 7,034,450 requests in InfluxDB, 0 lost',
    );
    expect(storedLine({ requests: 2000, stored: 1990, backfilled: 500, lost: 10 })).toBe(
      'Stored 1,990 of 2,000 requests in InfluxDB, 500 of them written again, 10 lost',
    );
    expect(storedLine(null)).toBe('Not stored in InfluxDB (--store none)');
  });

  test('what a reader has to know: warnings, notes of variants, footnotes', () => {
    const note = 'Beyond the article.';
    const noted = result(
      [{ ...workers, note }, openFileCache, { ...openFileCache, name: 'ours', note }],
      { footnotes: ['A footnote.'] },
      { quick: true },
    );
    const warnings = (of: Result) =>
      warningLines(of).filter((line) => !line.includes('lies apart'));
    expect(warnings(noted)).toEqual([
      'Note: quick run with short rounds: a first look, not a measurement',
    ]);
    expect(footnoteLines(noted)).toEqual(['workers, ours: Beyond the article.', 'A footnote.']);
    expect([...warnings(both), ...footnoteLines(both)]).toEqual([]);
  });

  test.each([
    [wrk('-c 100 -t 10 -d 10'), { generatorCores: 16 }, 'wrk -c 100 -t 10 -d 10'],
    [wrk('-c 100 -t 10 -d 10'), { generatorCores: 1 }, 'wrk -c 100 -t 10 -d 10 (here 1 thread)'],
    [
      wrk('-c 100 -t 10 -d 10'),
      { generatorCores: 1, durationSeconds: 1.5 },
      'wrk -c 100 -t 10 -d 10 (here 1 thread, 1.5 s)',
    ],
    [
      wrk('-c 100 -t 10 -d 10'),
      { generatorCores: 2, quick: true },
      'wrk -c 100 -t 10 -d 10 (here 2 threads, 2 s)',
    ],
    [ab('-c 10 -n 100000'), { generatorCores: 2 }, 'ab -c 10 -n 100000'],
    [
      ab('-c 10 -n 100000'),
      { generatorCores: 2, quick: true },
      'ab -c 10 -n 100000 (here 10,000 requests)',
    ],
    [
      ab('-c 10 -n 100000'),
      { generatorCores: 2, durationSeconds: 3 },
      'ab -c 10 -n 100000 (here 3 s)',
    ],
  ])('which load: %j with %j is "%s"', (profile, options, text) => {
    expect(loadText(profile, fitLoad(profile, { exact: false, ...options }))).toBe(text);
  });

  test('what is measured, and on what', () => {
    expect(headingLines(heading)).toEqual([
      'nginx-open-file-cache · wrk -c 100 -t 10 -d 10 · 612 B over HTTP/1.1 · 6 rounds, about 2 min 20 s',
      'nginx 1.22.1 on core 1, k6 2.2.0 on core 0 · Linux 6.18 · Xeon',
    ]);
    expect(
      headingLines({
        ...heading,
        rounds: 1,
        seconds: 12.4,
        estimated: false,
        serverCpus: [4, 5, 6, 7],
        generatorCpus: [0, 1, 3],
      }),
    ).toEqual([
      'nginx-open-file-cache · wrk -c 100 -t 10 -d 10 · 612 B over HTTP/1.1 · 1 round, 12 s',
      'nginx 1.22.1 on cores 4-7, k6 2.2.0 on cores 0-1,3 · Linux 6.18 · Xeon',
    ]);
  });
});

test('Markdown is the same table', () => {
  expect(
    markdownReport({
      ...both,
      warnings: ['quick run'],
      footnotes: ['Kernel settings are not applied.'],
    }).split('<details>')[0],
  )
    .toBe(`**open-file-cache is faster than workers here: +33 % (95 % interval +31 % to +34 %); the article saw +12 %.**

| variant | published requests/s | published ratio | requests/s | against workers | CPU µs/req | CPU ratio | p50 ms | p99 ms | max ms | errors/M | success |
| --- | ---: | --- | ---: | --- | ---: | --- | ---: | ---: | ---: | ---: | ---: |
| workers | 624,639 |  | 60,411 |  | 15.9 |  | 1.6 | 2.1 | 8.4 | 0 | 100 % |
| open-file-cache | 700,324 | ×1.12 | 80,275 | ×1.33 [1.31, 1.34] faster | 11.8 | ×0.74 [0.74, 0.74] | 1.2 | 1.7 | 206 | 0 | 100 % |

- Note: quick run
- Kernel settings are not applied.

nginx-open-file-cache · wrk -c 100 -t 10 -d 10 · HTTP/1.1 · 6 rounds, 2 min 20 s

`);
});

describe('figures', () => {
  test.each([
    [0.004, '0.00'],
    [0.43, '0.43'],
    [0.996, '1.0'],
    [8.44, '8.4'],
    [99.96, '100'],
    [206.4, '206'],
  ])('%f ms is %s', (value, text) => {
    expect(format.short(value)).toBe(text);
  });

  test.each([
    [1.334, '+33 %'],
    [0.998, '−0.2 %'],
    [1.1, '+10 %'],
    [1.0996, '+10 %'],
    [1.05, '+5 %'],
    [1.0004, '+0.04 %'],
    [0.99999, '−0.001 %'],
    [1, '±0 %'],
    [1 + 1e-7, '±0 %'],
    [3, '+200 %'],
    [0.02, '−98 %'],
    [0.004, '−99.6 %'],
    [0.00017, '−99.98 %'],
    [1e-12, '−99.9999999999 %'],
    [0, '−100 %'],
    [20_000, '+1999900 %'],
    [Number.MAX_VALUE, 'over +1,000,000,000 %'],
  ])('a ratio of %f is %s', (ratio, text) => {
    expect(format.change(ratio)).toBe(text);
  });

  test.each<[number, [number, number] | undefined, string]>([
    [0.0041, [0.0038, 0.0046], '×0.0041 [0.0038, 0.0046]'],
    [0.05, [0.04, 1.001], '×0.050 [0.040, 1.001]'],
    [0.004, undefined, '×0.0040'],
    [0.1, undefined, '×0.10'],
    [0, undefined, '×0.00'],
    [1e-300, undefined, '×0.0000000000'],
  ])('a ratio of %f within %j is %s', (ratio, interval, text) => {
    expect(format.times(ratio, interval)).toBe(text);
  });

  test.each([
    [0.0123, '1.2 %'],
    [0.0996, '10 %'],
    [0.666, '67 %'],
    [1.04, '104 %'],
  ])('a share of %f is %s', (share, text) => {
    expect(format.percent(share)).toBe(text);
  });

  test.each([
    [1, '100 %'],
    [0.999999, '99.99 %'],
    [0.5, '50.00 %'],
    [0, '0.00 %'],
    [0.57, '57.00 %'],
    [0.0029, '0.29 %'],
    [1 - 1e-9, '99.99 %'],
  ])('success of %f is %s', (ratio, text) => {
    expect(format.success(ratio)).toBe(text);
  });

  test.each([
    [0.2, '1 s'],
    [59.6, '1 min'],
    [140, '2 min 20 s'],
    [3600, '60 min'],
  ])('%f s is %s', (seconds, text) => {
    expect(format.duration(seconds)).toBe(text);
  });
});

describe('live progress', () => {
  const now = {
    what: 'round 2 of 10',
    seen: 'open-file-cache ×1.21 [1.19, 1.23]',
    secondsLeft: 75.2,
  };

  function shown(
    stream: { isTTY: boolean; columns?: number },
    use: (progress: ReturnType<typeof createRunProgress>) => void,
  ): string {
    let text = '';
    use(
      createRunProgress({
        ...stream,
        write: (piece) => {
          text += piece;
        },
      }),
    );
    return text;
  }

  test('is one line that is rewritten on a terminal, cut to its width', () => {
    expect(
      shown({ isTTY: true, columns: 200 }, (progress) => {
        progress.running({ ...now, seen: 'workers, open-file-cache', secondsLeft: 76 });
        progress.running(now);
        progress.finished('round 2 of 6 · workers · done');
        progress.clear();
        progress.clear();
      }),
    ).toBe(
      '\r\u001b[2Kround 2 of 10 · 1:16 left · workers, open-file-cache\r\u001b[2Kround 2 of 10 · 1:15 left · open-file-cache ×1.21 [1.19, 1.23]\r\u001b[2K',
    );
    expect(shown({ isTTY: true, columns: 12 }, (progress) => progress.running(now))).toBe(
      '\r\u001b[2Kround 2 of ',
    );
  });

  test('is plain lines in a pipe', () => {
    expect(
      shown({ isTTY: false }, (progress) => {
        progress.running(now);
        progress.finished('round 2 of 6 · workers · done');
        progress.say('round 2 is dropped and repeated');
        progress.clear();
      }),
    ).toBe('round 2 of 6 · workers · done\nround 2 is dropped and repeated\n');
  });
});
