// How sure a report says its figures are: ladders, noise, and for what a verdict holds.
import { describe, expect, test } from 'vitest';
import { times, tolerance } from '../../lib/format.ts';
import { tableParts, variantTable } from '../../lib/report/run-tables.ts';
import { ladderOf, ladderPart } from '../../lib/report/charts.ts';
import { markdownReport } from '../../lib/report/markdown.ts';
import { type Heading, headingLines } from '../../lib/report/heading.ts';
import {
  findingLines,
  footnoteLines,
  noiseFloorLines,
  roundsLines,
  verdictLines,
} from '../../lib/report/sentences.ts';
import { terminalTable, textOf } from '../../lib/report/table.ts';
import { terminalReport } from '../../lib/report/terminal.ts';
import { verdictCell } from '../../lib/report/verdict-words.ts';
import type { MeasuredVariant } from '../../lib/analysis/verdict.ts';
import type { Comparison, Result } from '../../lib/result/result.ts';
import type { Scenario } from '../../lib/scenario/model.ts';
import { type Figures, h2Result, shippedScenario } from '../fixtures/h2-result.ts';
import { askedBy, openFileCache, result, rounds, workers } from '../fixtures/result.ts';

const even = [-0.01, 0.004, 0.011, -0.002, 0.006, -0.009];
const uneven = [0.005, -0.014, 0.003, 0.012, -0.006, 0];
const about = (rps: number, offs = even): Figures => ({ rps: offs.map((off) => rps * (1 + off)) });

const ladderFigures = {
  'h2o-initial': about(100_000),
  'h2o-tuned': about(101_000),
  'nginx-initial': about(57_000),
  'nginx-workers': about(57_500),
  'nginx-open-file-cache': about(92_000),
  'nginx-accept-mutex-delay': about(92_300, uneven),
  'nginx-tcp-nopush': about(105_000),
};
const ladder = await h2Result('h2o-vs-nginx', ladderFigures);
const both = result([workers, openFileCache]);
const knobScenario = await shippedScenario('nginx-open-file-cache');
const plain = { width: Infinity, colour: false };

/** The result with its one comparison changed. */
const compared = (changes: Partial<Comparison>, more: Partial<Result> = {}): Result => ({
  ...both,
  comparisons: both.comparisons.map((one) => ({ ...one, ...changes })),
  ...more,
});
const findings = (of: Result, scenario: Scenario = knobScenario): string[] =>
  findingLines(askedBy(scenario, of));
const below = (of: Result): readonly string[] => tableParts(of)[0]?.below ?? [];

describe('a ladder', () => {
  test('is bars step by step with the effect of each step, published beside measured', () => {
    const [part] = ladderPart(ladder);
    expect(part?.title).toBe('Step by step, each against the row before it:');
    expect(terminalTable(part?.tables[0] as never, { width: 120, colour: false })).toEqual([
      'step                      requests/s                            effect of the step               published',
      'h2o-initial                  100,100  ██████████████████████▉',
      'h2o-tuned                    101,101  ███████████████████████▏  ×1.01 needs 2 server cores       ×1.22',
      'nginx-initial                 57,057  █████████████',
      'nginx-workers                 57,558  █████████████▏            ×1.01 needs 2 server cores       ×11.69',
      'nginx-open-file-cache         92,092  █████████████████████     ×1.60 [1.60, 1.60] faster        ×1.12',
      'nginx-accept-mutex-delay      92,438  █████████████████████▏    ×1.00 [0.98, 1.03] inconclusive  ×1.02',
      'nginx-tcp-nopush             105,105  ████████████████████████  ×1.14 [1.11, 1.17] faster        ×1.15',
    ]);
  });

  test('has its bars beside requests/s and its effects beside the published ones on 80 columns', () => {
    const lines = terminalReport(ladder, [], { width: 80, colour: false });
    const start = lines.indexOf('Step by step, each against the row before it:');
    expect(lines[start + 1]).toBe('step                      requests/s');
    expect(lines[start + 7]).toMatch(/^nginx-accept-mutex-delay +92,438 {2}█+▏$/);
    expect(lines[start + 10]).toBe(
      'step                      effect of the step               published',
    );
    expect(lines.filter((line) => line.length > 80)).toEqual([]);
  });

  test('is told of in the table by its rows before, and by name where it is another one', () => {
    const { columns, rows } = variantTable(ladder);
    const at = columns.findIndex(({ title }) => title === 'against the row before');
    expect(rows.map((row) => textOf(row[at] ?? '').replace(/^.*\] /, ''))).toEqual([
      '',
      '×1.01 needs 2 server cores',
      'slower (against h2o-initial)',
      '×1.01 needs 2 server cores',
      'faster',
      'inconclusive',
      'faster',
    ]);
  });

  test('has no sentence per step: those left undecided share one, what is beside the ladder has its own', async () => {
    const lines = findings(ladder, await shippedScenario('h2o-vs-nginx'));
    expect(lines.slice(0, 4)).toEqual([
      expect.stringMatching(
        /^Not decided: nginx-accept-mutex-delay against nginx-open-file-cache \(about \d+ rounds would probably decide\)\.$/,
      ),
      'nginx-initial is slower than h2o-initial here: −43 % (95 % interval −43 % to −43 %); the article saw −91 %.',
      'nginx-tcp-nopush is faster than h2o-tuned here: +4 % (95 % interval +4 % to +4 %); the article saw +16 %.',
      'nginx-tcp-nopush is faster than nginx-workers here: +83 % (95 % interval +83 % to +83 %); the article saw +32 %.',
    ]);
    expect(lines[4]).toMatch(/^The servers were the limit: /);
  });

  test('is three steps or more, whatever the scenario; bars of nothing are none', async () => {
    expect(ladderOf(both)).toEqual([]);
    expect(
      ladderPart(
        await h2Result('h2o-num-threads', {
          'threads-1': about(1),
          'threads-2': about(2),
          'threads-4': about(3),
          'threads-8': about(4),
        }),
      ),
    ).toEqual([]);
    const { 'nginx-tcp-nopush': _, 'nginx-accept-mutex-delay': __, ...short } = ladderFigures;
    expect(
      ladderOf(await h2Result('h2o-vs-nginx', short)).map(({ step }) => step !== null),
    ).toEqual([false, true, false, true, true]);
    const { 'h2o-tuned': ___, 'h2o-initial': ____, ...shorter } = short;
    expect(ladderOf(await h2Result('h2o-vs-nginx', shorter))).toEqual([]);
    const dead = {
      ...ladder,
      variants: ladder.variants.map((variant) => ({ ...variant, rps: { median: 0 } })),
    };
    expect(ladderPart(dead)).toEqual([]);
  });

  test('stands in Markdown too, with as many cells in every line', () => {
    const text = markdownReport(ladder);
    expect(text).toContain(
      '| nginx-tcp-nopush | 105,105 | ████████████████████████ | ×1.14 [1.11, 1.17] faster | ×1.15 |',
    );
  });
});

describe('beside requests/s', () => {
  test('CPU per request has its ratio, with an interval from 4 rounds on', () => {
    const column = (of: Result, title: string): string[] => {
      const { columns, rows } = variantTable(of);
      const at = columns.findIndex((one) => one.title === title);
      return at === -1 ? ['no column'] : rows.map((row) => textOf(row[at] ?? ''));
    };
    expect(column(both, 'CPU ratio')).toEqual(['', '×0.74 [0.74, 0.74]']);
    const two = (variant: MeasuredVariant): MeasuredVariant => ({
      ...variant,
      rounds: variant.rounds.slice(0, 2),
    });
    expect(column(result([two(workers), two(openFileCache)]), 'CPU ratio')).toEqual(['', '×0.74']);
    expect(column(compared({ cpu: null }), 'CPU ratio')).toEqual(['no column']);
    // What decides may have no figures, as a p99 of few responses.
    expect(
      column(
        compared({ metric: 'p99', ratio: 0, ci95: [0, 0], roundRatios: [], verdict: 'none' }),
        'CPU ratio',
      ),
    ).toEqual(['', '×0.74 [0.74, 0.74]']);
  });

  test('columns that belong together are not parted on 80 columns', () => {
    const titles = terminalTable(variantTable(both), { width: 80, colour: false }).filter((line) =>
      line.startsWith('variant'),
    );
    expect(titles.map((line) => line.split(/ {2,}/).slice(1))).toEqual([
      ['requests/s', 'ratio', 'requests/s', 'against workers'],
      ['CPU µs/req', 'CPU ratio', 'p50 ms', 'p99 ms', 'max ms'],
      ['errors/M', 'success'],
    ]);
  });
});

describe('what a row is compared with', () => {
  const against = (of: Result): string[] => {
    const { columns, rows } = variantTable(of);
    const at = columns.findIndex(({ title }) => title.startsWith('against'));
    return [
      columns[at]?.title ?? '',
      ...rows.map((row) => textOf(row[at] ?? '').replace(/^.*\] /, '')),
    ];
  };

  test("is the heading's where it is the same for all rows, whatever is compared beside them", async () => {
    const threads = {
      'threads-1': about(1000),
      'threads-16': about(900, uneven),
      'threads-36': about(800, uneven),
    };
    expect(against(await h2Result('h2o-num-threads', threads))).toEqual([
      'against threads-1',
      '',
      'slower',
      'slower',
    ]);
  });

  test('stands in each row where it is not', () => {
    const other = {
      ...openFileCache,
      name: 'other',
      against: 'open-file-cache',
      rounds: workers.rounds,
      setup: 'other',
    };
    expect(against(result([workers, openFileCache, other]))).toEqual([
      'against its baseline',
      '',
      'faster (against workers)',
      'slower (against open-file-cache)',
    ]);
  });
});

describe("the verdict's words", () => {
  test('say within what two are the same', () => {
    const same = compared(
      { ratio: 1.001, ci95: [0.9985, 1.0034], verdict: 'same' },
      { sameWithin: 0.005 },
    );
    expect(terminalTable(variantTable(same), plain)[3]).toContain(
      ' ×1.001 [0.999, 1.003] same within 0.5 %  ',
    );
    expect(findings(same)[0]).toBe(
      'open_file_cache is as fast as without here, within 0.5 %: +0.1 % (95 % interval −0.1 % to +0.3 %); the article saw +12 %.',
    );
  });

  test.each([
    [24, 'about 24 rounds would probably decide'],
    [1234, 'about 1,234 rounds would probably decide'],
    [null, 'no reasonable number of rounds would decide'],
  ])('say what would decide: %j', (roundsNeeded, words) => {
    const open = compared({
      ratio: 1.01,
      ci95: [0.98, 1.04],
      verdict: 'inconclusive',
      roundsNeeded,
    });
    expect(findings(open)[0]).toBe(
      `Whether open_file_cache is faster cannot be told from this: +1 % (95 % interval −2 % to +4 %); ${words}; the article saw +12 %. But CPU per request is clear: open-file-cache uses 74 % of the CPU (95 % interval 74 % to 74 %); --metric cpu compares by that.`,
    );
    const alike = (cpu: Comparison['cpu'], metric: Comparison['metric'] = 'rps'): string =>
      findings(
        compared({
          ratio: 1.01,
          ci95: [0.98, 1.04],
          verdict: 'inconclusive',
          roundsNeeded,
          cpu,
          metric,
        }),
      )[0] as string;
    for (const said of [
      alike(null),
      alike({ ratio: 0.9, ci95: [0.8, 1.1] }),
      alike({ ratio: 1.005, ci95: [1.001, 1.009] }),
      alike({ ratio: 2, ci95: [1.9, 2.1] }, 'cpu'),
    ])
      expect(said).toMatch(/saw \+12 %\.$/);
  });

  test.each([
    [[1.002, 1.01], '×1.006 [1.002, 1.010]'],
    [[0.991, 0.996], '×1.006 [0.991, 0.996]'],
    [[1.02, 1.04], '×1.01 [1.02, 1.04]'],
    [[0.98, 1.04], '×1.01 [0.98, 1.04]'],
    [[1.0003, 1.02], '×1.0060 [1.0003, 1.0200]'],
    [[1, 1.02], '×1.006 [1.000, 1.020]'],
    [[1 + 1e-9, 1.02], '×1.00600 [1.00000, 1.02000]'],
  ] as const)(
    'have decimals enough to see on which side of 1 the interval %j is',
    (interval, text) => {
      expect(times(1.006, interval)).toBe(text);
    },
  );

  test.each([
    [0.01, '1 %'],
    [0.005, '0.5 %'],
    [0.0025, '0.25 %'],
    [0.1, '10 %'],
  ])('a tolerance of %f is %s', (share, text) => {
    expect(tolerance(share)).toBe(text);
  });

  test('hold for this machine in this boot; nothing is said where there is none', () => {
    const scope = (of: Result): string[] =>
      findings(of).filter((line) => line.startsWith('Verdicts hold'));
    expect(scope(both)).toEqual([
      'Verdicts hold for this machine in this boot (since 2026-11-19 07:00 UTC).',
    ]);
    expect(scope(compared({ verdict: 'inconclusive' }))).toEqual([]);
    expect(scope(compared({ verdict: 'none', why: 'needs 4 rounds' }))).toEqual([]);
  });

  test("of whole configs of a person's own do not go by a knob", () => {
    const [first, second] = knobScenario.variants;
    const own = {
      ...knobScenario,
      variants: [first, second].map((one) => ({
        ...one,
        server: { name: 'nginx', config: ['/etc/nginx/nginx.conf'], workers: 1, asIs: {} },
      })),
    } as unknown as Scenario;
    const { article: _, ...scenario } = own;
    const unpublished = compared(
      { publishedRatio: null },
      { variants: both.variants.map((variant) => ({ ...variant, published: null })) },
    );
    expect(findings(unpublished, scenario)[0]).toBe(
      'open-file-cache is faster than workers here: +33 % (95 % interval +31 % to +34 %).',
    );
    expect(variantTable(unpublished).columns.map(({ group }) => group)).not.toContain('published');
  });
});

describe('under the table', () => {
  test('are the rounds of a row that is undecided or has some that lie apart', () => {
    expect(below(compared({ outliers: [] }))).toEqual([]);
    expect(
      below(compared({ roundRatios: [1.4, 1.44, 1.8, 1.42, 1.41, 1.43], outliers: [3] })),
    ).toEqual(['open-file-cache, rounds (! lies apart): ×1.40 ×1.44 ×1.80! ×1.42 ×1.41 ×1.43']);
    expect(
      below(
        compared({
          verdict: 'inconclusive',
          roundRatios: [0.99, 1.004, 1.01, 1.002, 0.996, 1.001],
          outliers: [],
        }),
      ),
    ).toEqual(['open-file-cache, rounds: ×0.990 ×1.004 ×1.010 ×1.002 ×0.996 ×1.001']);
  });

  test('marks the round that lies apart by its number, which a repeated round has moved', () => {
    const renumbered = {
      variants: both.variants.map((variant) => ({
        ...variant,
        rounds: variant.rounds.map((one) => ({ ...one, round: one.round + 1 })),
      })),
    };
    expect(
      below(
        compared({ roundRatios: [1.4, 1.44, 1.8, 1.42, 1.41, 1.43], outliers: [4] }, renumbered),
      ),
    ).toEqual(['open-file-cache, rounds (! lies apart): ×1.40 ×1.44 ×1.80! ×1.42 ×1.41 ×1.43']);
  });

  test("is why requests/s and CPU time disagree, with the row's name, and the baseline's where it is not the row's own", () => {
    const [own] = both.comparisons as [Comparison];
    const quiet = { ...own, outliers: [] };
    const disagreement =
      "with workers the server's cores were 12 % less busy than with open-file-cache";
    const beside = {
      ...both,
      comparisons: [
        { ...quiet, disagreement },
        { ...quiet, baseline: 'another', disagreement: 'so it is' },
      ],
    };
    expect(below(beside)).toEqual([
      `open-file-cache: requests/s (×1.33) and CPU per request (×0.74) disagree, since ${disagreement}.`,
      'open-file-cache against another: requests/s (×1.33) and CPU per request (×0.74) disagree, since so it is.',
    ]);
  });
});

describe('how many rounds it took', () => {
  const looking = { looks: [5, 10, 20], precision: 0.02 };
  const took = (count: number, changes: Partial<Result>): string[] => {
    const some = (variant: MeasuredVariant): MeasuredVariant => ({
      ...variant,
      rounds: rounds(
        Array.from({ length: count }, (_, index) => 600_000 + index),
        12,
        1,
        2,
        3,
        7,
      ),
    });
    const said = result([some(workers), some(openFileCache)], changes);
    return roundsLines(said);
  };

  test.each([
    ['all that were planned', 6, { looks: [6] }, []],
    ['fewer, of which a warning tells', 4, { looks: [6] }, []],
    ['an end that another line tells of', 4, { looks: [6], state: 'partial' as const }, []],
    [
      'the first look',
      5,
      looking,
      ['With --precision 2 % the verdicts were looked at after 5 rounds.'],
    ],
    [
      'the last look',
      20,
      looking,
      ['With --precision 2 % the verdicts were looked at after 5, 10 and 20 rounds.'],
    ],
    [
      'time between looks',
      8,
      looking,
      ['With --precision 2 % the verdicts were looked at after 5 and 8 rounds.'],
    ],
    [
      'time before a look',
      1,
      looking,
      ['With --precision 2 % the verdicts were looked at after 1 round.'],
    ],
  ])('%s', (_what, count, changes, lines) => {
    expect(took(count, changes)).toEqual(lines);
  });
});

test('a p50 that can be told where p99 cannot is told, and marked where the run ended early', () => {
  const whole = result([workers, openFileCache]);
  const [one] = whole.comparisons as [Comparison];
  const p50 = { ratio: 1.5, ci95: [1.4, 1.6] as [number, number], verdict: 'slower' as const };
  const byLatency: Comparison = {
    ...one,
    metric: 'p99',
    ratio: 0,
    ci95: [0, 0],
    verdict: 'none',
    why: 'p99 needs 1,000 responses',
    latency: { p50, p90: null, p99: null },
    publishedRatio: null,
  };
  const told = { ...whole, comparisons: [byLatency] };
  const sentence =
    'No verdict on open-file-cache against workers: p99 needs 1,000 responses; p50 +50 % (95 % interval +40 % to +60 %), slower';
  expect(verdictLines(told)).toEqual([`${sentence}.`]);
  expect(verdictLines({ ...told, state: 'partial' })).toEqual([
    expect.stringContaining('No verdict is final'),
    `${sentence}, not final.`,
  ]);
  expect(verdictCell(byLatency, { ...told, state: 'partial' }).text).toBe(
    '– p99 needs 1,000 responses, p50 ×1.50 [1.40, 1.60] slower, not final',
  );
});

describe('a config against itself', () => {
  test('states the noise floor, and is not spoken of as faster', async () => {
    const scenario = await shippedScenario('aa');
    const quiet = await h2Result('aa', { a: about(100_000), again: about(100_500, uneven) });
    expect(findings(quiet, scenario).filter((line) => !line.includes('limit'))).toEqual([
      expect.stringMatching(
        /^again and a are the same, and not called different: \+0\.5 % \(95 % interval −\d.* % to \+\d.* %\)\.$/,
      ),
      expect.stringMatching(
        /^Noise floor: with 10 such rounds this machine shows effects from about ±\d\.\d % on \(one of just that size in about half of all runs\)\.$/,
      ),
    ]);
    const byP99 = {
      ...quiet,
      comparisons: quiet.comparisons.map((one) => ({ ...one, metric: 'p99' as const })),
    };
    expect(noiseFloorLines(byP99)).toEqual([
      expect.stringContaining('this machine shows effects on p99 from about ±'),
    ]);
    const floor = quiet.noiseFloor?.ratio ?? 0;
    expect(findings(quiet, scenario)).toContainEqual(
      expect.stringContaining(`effects from about ±${((floor - 1) * 100).toFixed(1)} % on (`),
    );
    const loud = await h2Result('aa', { a: about(100_000), again: about(104_000) });
    expect(findings(loud, scenario)[0]).toMatch(
      /^again is called faster than a, and they are the same: \+4 % \(95 % interval .*\)\. Chance alone does so in about one of 20 runs; /,
    );
    const byCpu = {
      ...loud,
      comparisons: loud.comparisons.map((one) => ({ ...one, metric: 'cpu' as const })),
    };
    expect(findings(byCpu, scenario)[0]).toMatch(
      /^again is called cheaper than a, and they are the same: at 104 % of the CPU /,
    );
    const short = await h2Result('aa', { a: { rps: [1000] }, again: { rps: [1010] } });
    expect(findings(short, scenario)[0]).toBe(
      'No verdict on again against a: needs 4 rounds (measured +1 %).',
    );
    expect(findings(short, scenario).join(' ')).not.toContain('shows effects');
  });
});

describe('server and generator on the same cores', () => {
  const heading: Heading = {
    scenario: 's',
    load: 'l',
    bodyBytes: [612],
    pages: [1],
    addresses: [],
    protocol: 'http/1.1',
    network: '',
    rounds: 6,
    seconds: 60,
    estimated: true,
    server: 'nginx 1.22.1',
    k6: 'k6 2.2.0',
    serverCpus: [0, 1],
    generatorCpus: [0, 1],
    kernel: 'Linux 6.18',
    cpuModel: 'Xeon',
  };

  test('are said in the heading', () => {
    expect(headingLines(heading)[1]).toBe(
      'nginx 1.22.1 and k6 2.2.0 on cores 0-1, shared · Linux 6.18 · Xeon',
    );
    expect(headingLines({ ...heading, generatorCpus: [2] })[1]).toBe(
      'nginx 1.22.1 on cores 0-1, k6 2.2.0 on core 2 · Linux 6.18 · Xeon',
    );
  });

  test('have shares that add up', () => {
    const shared = (cpuMicros: number, generatorCpuSeconds: number): string[] => {
      const variant = {
        ...workers,
        server: { name: 'nginx', version: '1.22.1', workers: 16, config: [], redirections: [] },
        load: { ...workers.load, threads: 2 },
        rounds: rounds(
          [600_000, 600_000, 600_000, 600_000],
          cpuMicros,
          1,
          2,
          3,
          generatorCpuSeconds,
        ),
      };
      // One worker can use half of the two cores.
      const one = {
        ...variant,
        name: 'one',
        server: { ...variant.server, workers: 1 },
        rounds: rounds(
          [600_000, 600_000, 600_000, 600_000],
          cpuMicros / 1.1,
          1,
          2,
          3,
          generatorCpuSeconds * 1.1,
        ),
      };
      const said = result(
        [variant, one],
        {},
        { serverCores: 2, generatorCores: 2, sharedCores: true },
      );
      said.environment.serverCpus = [0, 1];
      said.environment.generatorCpus = [0, 1];
      return findings(said);
    };
    expect(shared(18, 8.4)).toEqual([
      'Server and generator shared cores 0-1: nginx at 49 to 54 %, the generator at 42 to 46 % of them.',
    ]);
  });
});

describe('around the table', () => {
  test('a terminal has the verdict below its table, then warnings, and the rest where it is asked for', () => {
    const noted = {
      ...both,
      warnings: ['quick run'],
      footnotes: ['Kernel settings are not applied.'],
    };
    const lines = terminalReport(noted, ['One.', 'Two.'], plain);
    expect(lines[1]).toMatch(/^variant +requests\/s +ratio/);
    const verdict = verdictLines(noted)[0] as string;
    expect(lines.slice(lines.indexOf(verdict) - 1, lines.indexOf(verdict) + 2)).toEqual([
      '',
      verdict,
      'Note: quick run',
    ]);
    expect(lines.slice(-2)).toEqual(['One.', 'Two.']);
    expect(lines).not.toContain('Kernel settings are not applied.');
    const all = terminalReport(noted, ['One.', 'Two.'], { ...plain, verbose: true });
    expect(all[0]).toBe('Each load in detail:');
    expect(all).toEqual(expect.arrayContaining([...lines, 'Kernel settings are not applied.']));
    // What differs between sides of one's own is part of what was found.
    const own = {
      ...noted,
      variants: noted.variants.map((variant) => ({ ...variant, published: null })),
    };
    expect(terminalReport(own, [], plain)).toContain('Kernel settings are not applied.');
    expect(markdownReport(noted)).toContain(
      '\n- Note: quick run\n- Kernel settings are not applied.\n',
    );
  });

  test("what of a person's own config runs otherwise than it says stands once", () => {
    const own = (name: string, redirections: readonly string[]): MeasuredVariant => ({
      ...workers,
      name,
      server: {
        name: 'nginx',
        version: '1.22.1',
        workers: 1,
        config: ['/etc/nginx/nginx.conf'],
        redirections,
      },
    });
    expect(
      footnoteLines(
        result([
          own('nginx', ['listen 80 → 127.0.0.1:40123', 'pid /run/nginx.pid → a temporary file']),
          own('copy', ['listen 80 → 127.0.0.1:40999']),
          own('plain', []),
        ]),
      ),
    ).toEqual([
      'nginx, copy: listen 80 → 127.0.0.1, a free port',
      'nginx: pid /run/nginx.pid → a temporary file',
    ]);
  });

  test('the heading says a range of rounds, and both sizes where the pages differ', () => {
    const heading: Heading = {
      scenario: 'compare',
      load: 'wrk -c 10',
      bodyBytes: [612, 615, 612],
      pages: [1, 1, 1],
      protocol: 'http/1.1',
      network: '',
      rounds: 5,
      seconds: 60,
      estimated: true,
      atMost: { rounds: 20, seconds: 240 },
      server: 'nginx 1.22.1',
      addresses: [],
      k6: 'k6',
      serverCpus: [1],
      generatorCpus: [0],
      kernel: 'Linux',
      cpuModel: 'Xeon',
    };
    expect(headingLines(heading)[0]).toBe(
      'compare · wrk -c 10 · 612 B and 615 B over HTTP/1.1 · 5 to 20 rounds, about 1 min to 4 min',
    );
  });
});
