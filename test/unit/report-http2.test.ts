// What the report shows of the HTTP/2 scenarios as they are shipped, beside their articles.
import { describe, expect, test } from 'vitest';
import type { MeasuredVariant } from '../../lib/analysis/verdict.ts';
import type { Result } from '../../lib/result/result.ts';
import { hasPhases, loadPart, tableParts, variantTable } from '../../lib/report/run-tables.ts';
import { markdownReport, markdownTable } from '../../lib/report/markdown.ts';
import { headingLines } from '../../lib/report/heading.ts';
import { findingLines, footnoteLines } from '../../lib/report/sentences.ts';
import { type Table, terminalTable, textOf, wrapLines } from '../../lib/report/table.ts';
import { terminalReport } from '../../lib/report/terminal.ts';
import { type Figures, h2Result } from '../fixtures/h2-result.ts';
import { latency, noLatency } from '../fixtures/phase.ts';
import { openFileCache, result, workers } from '../fixtures/result.ts';

/** Six rounds about that many requests/s. */
const about = (rps: number, phases?: Figures['phases']): Figures => ({
  rps: [-0.01, 0.004, 0.011, -0.002, 0.006, -0.009].map((off) => rps * (1 + off)),
  ...(phases === undefined ? {} : { phases }),
});

const p384 = { version: 'TLSv1.2', cipher: 'ECDHE-RSA-AES128-GCM-SHA256', keyExchange: 'P-384' };
const buckets = (counts: readonly number[]) => {
  const ends = [0, 0.15, 0.3, 0.45, 0.6, 0.75, 0.9, 1, 2, 5];
  return counts.map((count, index) => ({
    fromMs: ends[index] as number,
    toMs: ends[index + 1] ?? null,
    count,
  }));
};
const imagePhase = (rps: number, succeeded: number) => ({
  rps,
  responses: { '2xx': succeeded, '3xx': 0, '4xx': 100_000 - succeeded, '5xx': 0 },
});

const curve = await h2Result('h2o-vs-nginx-h2', {
  nginx: about(21_230, [{ tls: p384 }]),
  h2o: about(34_450),
  'nginx-p256': about(33_100),
});
const rate = await h2Result('h2o-vs-nginx-h2-rate', {
  nginx: {
    rps: [1000],
    phases: [
      {
        latencyMs: latency(0.31, 1.9, 9.4),
        sendDelayMs: latency(0.012, 0.0851, 1),
        buckets: buckets([1200, 3900, 3000, 1100, 500, 100, 50, 100, 45, 5]),
      },
    ],
  },
  h2o: {
    rps: [1000],
    phases: [
      {
        latencyMs: latency(0.22, 0.7, 4.4),
        sendDelayMs: latency(0.011, 0.08, 1),
        buckets: buckets([2600, 5900, 1000, 300, 100, 50, 20, 20, 10, 0]),
      },
    ],
  },
});
const images = await h2Result('nghttpd-img', {
  'nghttpd-1024': {
    rps: [1330],
    phases: [imagePhase(1200, 28_000), imagePhase(1400, 25_000), imagePhase(1391.5, 24_000)],
  },
  'nghttpd-4096': {
    rps: [800],
    phases: [imagePhase(800, 100_000), imagePhase(812, 100_000), imagePhase(799, 100_000)],
  },
});
const small = await h2Result('http1-vs-h2-small-file', {
  'nginx-http1': about(61_230),
  'nghttpd-h2': about(154_450),
  'nginx-h2': about(83_100),
  'h2o-h2': about(143_100),
});
const sweepFigures: Record<string, Figures> = {
  'nginx-http1': about(61_230),
  'streams-100': about(154_450),
  'streams-50': about(150_000),
  'streams-20': about(140_000),
  'streams-10': about(110_000),
  'streams-5': about(95_000),
  'streams-2': about(72_000),
  'streams-1': about(60_000),
};
const sweep = await h2Result('h2-stream-sweep', sweepFigures);
const index = await h2Result('nghttpd-index', {
  nghttpd: about(81_230),
  nginx: about(54_450),
  h2o: about(93_100),
});

const plain = { width: Infinity, colour: false };
const findings = (of: Result) => findingLines(of);
const rowsOf = ({ rows }: Table): string[][] => rows.map((row) => row.map(textOf));
const tablesOf = (of: Result) => loadPart(of).flatMap(({ tables }) => tables);

/** The lines of a table in the report on 80 columns, found by how its heading begins. */
function table80(of: Result, heading: string): string[] {
  const lines = terminalReport(of, [], { width: 80, colour: false, verbose: true });
  const start = lines.findIndex((line) => line.startsWith(heading));
  expect(start).toBeGreaterThanOrEqual(0);
  const rest = lines.slice(start);
  return rest.slice(0, rest.indexOf(''));
}

describe('each load in detail', () => {
  test('has what was published above what was measured, per variant', () => {
    expect(table80(curve, 'time to connect')).toEqual([
      'time to connect              min        max       mean         sd      ±sd',
      'nginx       published  608.48 ms     3.66 s     2.70 s  968.20 ms  82.00 %',
      'nginx       here       220.50 ms  633.10 ms  410.00 ms   90.21 ms  80.00 %',
      'h2o         published  349.15 ms  991.57 ms  732.81 ms  157.30 ms  63.60 %',
      'h2o         here       220.50 ms  633.10 ms  410.00 ms   90.21 ms  80.00 %',
      'nginx-p256  here       220.50 ms  633.10 ms  410.00 ms   90.21 ms  80.00 %',
    ]);
  });

  test('leaves out what nobody measured: distributions over nothing', async () => {
    const nothing = await h2Result('nghttpd-index', {
      nginx: {
        rps: [10],
        phases: [{ connectMs: latency(0, 0, 0, { min: 0, sd: 0, withinSd: 0 }) }],
      },
    });
    const titles = tablesOf(nothing).map(({ columns }) => columns[0]?.title);
    expect(titles).toContain('time of a request');
    expect(titles).not.toContain('time to connect');
  });

  test('says from when latencies are', () => {
    expect(loadPart(curve)[0]?.below).toEqual([
      expect.stringMatching(/ those of all rounds\. Latency is service time: /),
    ]);
    expect(loadPart(rate)[0]?.below).toEqual([
      expect.stringMatching(/ Latency is from when a request was due\.$/),
    ]);
  });
});

test.each([curve, rate, images, small, sweep, index])('$scenario fits 80 columns', async (of) => {
  const lines = [false, true].flatMap((verbose) =>
    terminalReport(of, [], { width: 80, colour: false, verbose }),
  );
  expect(lines.filter((line) => line.length > 80)).toEqual([]);
});

describe('a load at a constant rate', () => {
  test('has latencies in its table, and their ratio', () => {
    expect(terminalTable(variantTable(rate), plain)).toEqual([
      '          published                   here',
      'variant         p50        p99  requests/s  against nginx             CPU µs/req  CPU ratio  p50 ms  p99 ms  max ms  errors/M  success',
      'nginx    600–750 µs  over 5 ms       1,000                                 970.0               0.31     1.9     9.4         0    100 %',
      'h2o      450–600 µs     1–2 ms       1,000  p99 ×0.37 needs 4 rounds       970.0  ×1.00        0.22    0.70     4.4         0    100 %',
    ]);
  });

  test("shows vegeta's histogram, both servers side by side, published beside measured", () => {
    const wide = terminalReport(rate, [], { width: 160, colour: false });
    const start = wide.indexOf('Answers by latency:') + 1;
    expect(wide.slice(start, start + 12)).toEqual([
      'latency      nginx, published                h2o, published                  nginx, here                 h2o, here',
      '0–150 µs           0   0.00 %                      0   0.00 %                  1,200  12.00 %  ██▍         2,600  26.00 %  █████▎',
      '150–300 µs         0   0.00 %                      0   0.00 %                  3,900  39.00 %  ███████▊    5,900  59.00 %  ███████████▊',
      '300–450 µs       342   3.42 %  ▋                 657   6.57 %  █▍              3,000  30.00 %  ██████      1,000  10.00 %  ██',
      '450–600 µs     2,617  26.17 %  █████▎          5,740  57.40 %  ███████████▌    1,100  11.00 %  ██▎           300   3.00 %  ▋',
      '600–750 µs     6,000  60.00 %  ████████████    3,318  33.18 %  ██████▋           500   5.00 %  █             100   1.00 %  ▎',
      '750–900 µs       207   2.07 %  ▍                  63   0.63 %  ▏                 100   1.00 %  ▎              50   0.50 %  ▏',
      '900 µs–1 ms       19   0.19 %  ▏                   7   0.07 %  ▏                  50   0.50 %  ▏              20   0.20 %  ▏',
      '1–2 ms           257   2.57 %  ▌                 148   1.48 %  ▎                 100   1.00 %  ▎              20   0.20 %  ▏',
      '2–5 ms            36   0.36 %  ▏                   9   0.09 %  ▏                  45   0.45 %  ▏              10   0.10 %  ▏',
      'over 5 ms        522   5.22 %  █                  58   0.58 %  ▏                   5   0.05 %  ▏               0   0.00 %',
      '',
    ]);
    // On 80 columns the two servers stay side by side.
    expect(table80(rate, 'latency  ')[0]).toBe(
      'latency      nginx, published                h2o, published',
    );
  });

  test("has a row for each bucket of any server, and no count under another one's label", () => {
    const having = (variant: MeasuredVariant, ends: readonly number[]): MeasuredVariant => ({
      ...variant,
      published: null,
      rounds: variant.rounds.map(({ round, phases }) => ({
        round,
        phases: phases.map((one) => ({
          ...one,
          buckets: ends.map((fromMs, index) => ({
            fromMs,
            toMs: ends[index + 1] ?? null,
            count: index + 1,
          })),
        })),
      })),
    });
    const { rows } = tableParts(
      result([having(workers, [0, 1, 2, 5]), having(openFileCache, [0, 2, 5, 50])]),
    )[1]?.tables[0] as Table;
    const counted = (cell: string): string => cell.trim().split(' ')[0] ?? '';
    expect(
      rows.map((row) => row.map(textOf)).map(([label, ...cells]) => [label, ...cells.map(counted)]),
    ).toEqual([
      ['0–1 ms', '6', ''],
      ['0–2 ms', '', '6'],
      ['1–2 ms', '12', ''],
      ['2–5 ms', '18', '12'],
      ['5–50 ms', '', '18'],
      ['over 5 ms', '24', ''],
      ['over 50 ms', '', '24'],
    ]);
  });

  test('is spoken of by its latencies', async () => {
    expect(findings(rate)[0]).toBe(
      'No verdict on h2o against nginx: needs 4 rounds (measured p99 −63 %).',
    );
    expect(findings(rate)[1]).toBe(
      'Requests left late by (p50 and p99), which latency includes: nginx 12 µs and 85 µs, h2o 11 µs and 80 µs.',
    );
    expect(findings(rate).join(' ')).not.toMatch(/faster|slower/);
  });
});

describe('several phases on one server', () => {
  test('have a row each, with requests/s never far from the share that succeeded', () => {
    expect(hasPhases(images)).toBe(true);
    expect(table80(images, 'variant, phase')).toEqual([
      'variant, phase                  time  requests/s  success       bytes/s',
      'nghttpd-1024  1  published  450.73 s      221.86    100 %  111.22 MiB/s',
      'nghttpd-1024  1  here        83.33 s    1,200.00  28.00 %  601.20 MiB/s',
      'nghttpd-1024  2  published   72.37 s    1,381.70  15.38 %  106.76 MiB/s',
      'nghttpd-1024  2  here        71.43 s    1,400.00  25.00 %  701.40 MiB/s',
      'nghttpd-1024  3  published  250.96 s      398.47  55.27 %  110.43 MiB/s',
      'nghttpd-1024  3  here        71.86 s    1,391.50  24.00 %  697.14 MiB/s',
      'nghttpd-4096  1  here       125.00 s      800.00    100 %  400.80 MiB/s',
      'nghttpd-4096  2  here       123.15 s      812.00    100 %  406.81 MiB/s',
      'nghttpd-4096  3  here       125.16 s      799.00    100 %  400.30 MiB/s',
    ]);
  });

  test("are summed up without the article's figures, which are of one of them", () => {
    const [name, ...others] = variantTable(images).columns;
    expect(name?.title).toBe('variant');
    expect(others.map(({ group }) => group)).not.toContain('published');
    expect(others.slice(0, 2).map(({ title }) => title)).toEqual(['requests/s', 'success']);
  });
});

describe('protocols against each other', () => {
  test('have header bytes in the table, and SPDY as it was published', () => {
    const lines = terminalTable(variantTable(small), plain);
    expect(lines.map((line) => line.replace(/ +CPU.*| +\d+\.\d( +×0.*)? +70\.0.*/, ''))).toEqual([
      '              published                               here',
      'variant      requests/s  ratio  headers kB      requests/s  against nginx-http1        headers kB',
      'nginx-http1      44,326             23,600          61,291                                 23,600',
      'nginx-spdy       77,331  ×1.74       1,511  published only',
      'nghttpd-h2      125,410  ×2.83       426.9         154,604  ×2.52 [2.52, 2.52] faster       1,200',
      'nginx-h2                                            83,183  ×1.36 [1.36, 1.36] faster       1,200',
      'h2o-h2                                             143,243  ×2.34 [2.34, 2.34] faster       1,200',
    ]);
    expect(footnoteLines(small)[0]).toBe(
      'nginx-spdy is published only: SPDY was taken out of nginx in 1.9.5, and of every client since',
    );
  });

  test('say so when the header bytes are of another number of requests', async () => {
    expect(findings(small).join(' ')).not.toContain('Header bytes');
    const fewer = structuredClone(small);
    for (const { traffic } of fewer.variants) if (traffic !== null) traffic.requests = 10_000;
    expect(findings(fewer)).toContain(
      'Header bytes here are those of 10,000 requests, the published ones of 100,000.',
    );
  });

  test("have all bytes in the loads' details, those that were published only too", () => {
    const traffic = tablesOf(small).find(({ columns }) => columns[0]?.title === 'traffic') as Table;
    expect(rowsOf(traffic)[2]).toEqual([
      'nginx-spdy   published',
      '100,000',
      '5,215,400',
      '1,511,000',
      '',
      '2,100,000',
    ]);
  });
});

describe('requests/s by streams', () => {
  test('are bars against the line of HTTP/1.1', () => {
    expect(table80(sweep, 'streams   requests/s')).toEqual([
      'streams   requests/s  ratio',
      '100          154,604  ×2.52  ████████████████│███████████████████████',
      '50           150,150  ×2.45  ████████████████│█████████████████████▉',
      '20           140,140  ×2.29  ████████████████│███████████████████▎',
      '10           110,110  ×1.80  ████████████████│███████████▌',
      '5             95,095  ×1.55  ████████████████│███████▋',
      '2             72,072  ×1.18  ████████████████│█▋',
      '1             60,060  ×0.98  ███████████████▌│',
      'HTTP/1.1      61,291         ███████████████▉│',
    ]);
  });

  test('are one sentence', async () => {
    expect(findings(sweep)[0]).toBe(
      'requests/s over HTTP/2 against nginx-http1: 2.52 times with 100 streams per connection (the article saw 2.83 times), −2 % with 1 stream; faster from 2 streams on.',
    );
    const slow = await h2Result('h2-stream-sweep', {
      ...sweepFigures,
      'nginx-http1': about(200_000),
    });
    expect(findings(slow)[0]).toMatch(/, −70 % with 1 stream\.$/);
    const fast = await h2Result('h2-stream-sweep', {
      ...sweepFigures,
      'nginx-http1': about(20_000),
    });
    expect(findings(fast)[0]).toMatch(/, 3 times with 1 stream; faster from 1 stream on\.$/);
  });

  test('claim nothing on what has no verdict: that has a sentence of its own', async () => {
    const refused = { '2xx': 0, '3xx': 0, '4xx': 0, '5xx': 100_000 };
    const failing = await h2Result('h2-stream-sweep', {
      ...sweepFigures,
      'streams-100': about(900_000, [{ responses: refused }]),
      'streams-1': about(60_000, [{ responses: refused }]),
    });
    const lines = findings(failing).filter((line) => line.includes('nginx-http1'));
    expect(lines).toEqual([
      'requests/s over HTTP/2 against nginx-http1: 2.45 times with 50 streams per connection, +18 % with 2 streams.',
      expect.stringMatching(
        /^No verdict on streams-100 against nginx-http1: 100 % of the requests of streams-100 failed \(measured 14\.7 times\); the article saw 2\.83 times\.$/,
      ),
      expect.stringMatching(
        /^No verdict on streams-1 against nginx-http1: 100 % of the requests of streams-1 failed \(measured −2 %\)/,
      ),
    ]);
    const others = Object.fromEntries(
      Object.keys(sweepFigures).map((name) => [
        name,
        name === 'nginx-http1' || name === 'streams-5'
          ? (sweepFigures[name] as Figures)
          : about(1000, [{ responses: refused }]),
      ]),
    );
    expect(findings(await h2Result('h2-stream-sweep', others))).toContain(
      'requests/s over HTTP/2 against nginx-http1: +55 % with 5 streams per connection.',
    );
    const two = await h2Result(
      'h2-stream-sweep',
      Object.fromEntries(
        Object.entries(sweepFigures).map(([name, { rps }]) => [name, { rps: rps.slice(0, 2) }]),
      ),
    );
    expect(findings(two).filter((line) => line.includes('nginx-http1'))).toEqual(
      Array.from({ length: 7 }, () =>
        expect.stringMatching(
          /^No verdict on streams-\d+ against nginx-http1: needs 4 rounds \(measured /,
        ),
      ),
    );
  });

  test('are no curve where nothing was answered over HTTP/1.1', async () => {
    const errors = {
      connect: 100_000,
      tls: 0,
      read: 0,
      write: 0,
      timeout: 0,
      protocol: 0,
      total: 100_000,
    };
    const silent = await h2Result('h2-stream-sweep', {
      ...sweepFigures,
      'nginx-http1': about(61_230, [
        { responses: { '2xx': 0, '3xx': 0, '4xx': 0, '5xx': 0 }, errors, latencyMs: noLatency },
      ]),
    });
    expect(tableParts(silent)).toHaveLength(1);
    expect(findings(silent).join('\n')).not.toContain('Infinity');
    expect(findings(silent)).toContainEqual(
      expect.stringMatching(
        /^No verdict on streams-100 against nginx-http1: nothing was answered in a whole round; /,
      ),
    );
  });

  test('have a row by the name of its protocol', () => {
    const old = {
      ...sweep,
      variants: sweep.variants.map((variant) => ({
        ...variant,
        load: {
          ...variant.load,
          protocol: variant.load.protocol.replace('1.1', '1.0') as 'http/1.0',
        },
      })),
    };
    expect(table80(old, 'streams   requests/s').at(-1)).toMatch(/^HTTP\/1\.0 +61,291 /);
  });

  test('are no curve where two numbers of streams were run, or no HTTP/1.1', async () => {
    const parts = (of: Result): number => tableParts(of).length;
    expect(parts(sweep)).toBe(2);
    const {
      'nginx-http1': line,
      'streams-100': most,
      'streams-1': fewest,
      ...others
    } = sweepFigures as Record<string, Figures>;
    expect(
      parts(
        await h2Result('h2-stream-sweep', {
          'nginx-http1': line as Figures,
          'streams-100': most as Figures,
          'streams-1': fewest as Figures,
        }),
      ),
    ).toBe(1);
    expect(parts(await h2Result('h2-stream-sweep', others))).toBe(1);
    expect(parts(small)).toBe(1);
  });
});

describe('servers against each other, in words', () => {
  test('go by their names', () => {
    expect(findings(curve)).toEqual([
      'h2o is faster than nginx here: +62 % (95 % interval +62 % to +62 %); the article saw +47 %.',
      'nginx-p256 is faster than nginx here: +56 % (95 % interval +56 % to +56 %).',
      'The servers were the limit: nginx at 97 %, h2o at 97 %, the generator at 60 % of its available CPU.',
      'Verdicts hold for this machine in this boot (since 2026-11-19 07:00 UTC).',
    ]);
  });

  test('have no verdict on each other, but a reason', async () => {
    expect(findings(images)[0]).toBe(
      'No verdict on nghttpd-4096 against nghttpd-1024: 74 % of the requests of nghttpd-1024 failed (measured −39 %).',
    );
    const two = await h2Result('nghttpd-index', { nghttpd: about(50_000), h2o: about(50_000) });
    expect(findings(two)[0]).toBe(
      'h2o is as fast as nghttpd here, within 1 %: ±0 % (95 % interval ±0 % to ±0 %).',
    );
  });

  test('have their protocol written out', () => {
    const heading = {
      scenario: 's',
      load: 'l',
      bodyBytes: [21],
      pages: [1],
      network: '',
      rounds: 1,
      seconds: 1,
      estimated: false,
      server: '',
      addresses: [],
      k6: '',
      serverCpus: [1],
      generatorCpus: [0],
      kernel: '',
      cpuModel: '',
    };
    expect(headingLines({ ...heading, protocol: 'http/1.1 and h2' })[0]).toBe(
      's · l · 21 B over HTTP/1.1 and HTTP/2 over TLS · 1 round, 1 s',
    );
    expect(headingLines({ ...heading, protocol: 'h2c' })[0]).toContain(
      ' over HTTP/2 without TLS · ',
    );
  });
});

describe('long lines', () => {
  test('break at spaces, indented, and a figure keeps its per cent sign', () => {
    expect(
      wrapLines(
        ['h2o is faster than nginx here: +62 % (95 % interval +61 % to +63 %).', 'short'],
        40,
      ),
    ).toEqual([
      'h2o is faster than nginx here: +62 %',
      '  (95 % interval +61 % to +63 %).',
      'short',
    ]);
    expect(wrapLines(['a nginx at 97 %'], 14)).toEqual(['a nginx at', '  97 %']);
  });

  test('keep a path whole, and lose no word', () => {
    const line = 'Stored 7 of 7 requests · /a/very/long/path/that/does/not/fit/anywhere and on';
    const wrapped = wrapLines([line], 20);
    expect(wrapped).toContain('  /a/very/long/path/that/does/not/fit/anywhere');
    expect(wrapped.map((one) => one.trim()).join(' ')).toBe(line);
    expect(wrapLines([line, ''], Infinity)).toEqual([line, '']);
  });
});

describe('Markdown', () => {
  test('has the same tables', () => {
    const text = markdownReport(rate);
    expect(text).toContain(
      '| 450–600 µs | 2,617 26.17 % █████▎ | 5,740 57.40 % ███████████▌ | 1,100 11.00 % ██▎ | 300 3.00 % ▋ |',
    );
    expect(text).toContain(
      '\n\nRequests left late by (p50 and p99), which latency includes: nginx 12 µs and 85 µs, h2o 11 µs and 80 µs.\n\n',
    );
    for (const table of tableParts(rate).flatMap(({ tables }) => tables))
      expect(text).toContain(markdownTable(table).join('\n'));
  });

  test('has the mark of HTTP/1 in one place in all bars', async () => {
    const slow = await h2Result('h2-stream-sweep', { ...sweepFigures, 'streams-1': about(6000) });
    const text = markdownReport(slow);
    const bars = text
      .split('\n')
      .filter((line) => /^\|.*│/.test(line))
      .map((line) => line.split(' | ').at(-1) ?? '');
    expect(bars).toHaveLength(8);
    expect(new Set(bars.map((bar) => bar.indexOf('│')))).toEqual(new Set([16]));
  });

  test('has as many cells in every line of a table', () => {
    for (const of of [curve, images, small, sweep]) {
      for (const table of tableParts(of).flatMap((part) => part.tables)) {
        expect(new Set(markdownTable(table).map((line) => line.split('|').length)).size).toBe(1);
      }
    }
  });
});
