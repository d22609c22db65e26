// What is said of loads that were not answered, of rates that were not reached, and of verdicts before their time.
import { describe, expect, test } from 'vitest';
import type { MeasuredVariant } from '../../lib/analysis/verdict.ts';
import { report } from '../../lib/cli/run-output.ts';
import { variantTable } from '../../lib/report/run-tables.ts';
import { markdownReport } from '../../lib/report/markdown.ts';
import { UserError } from '../../lib/errors.ts';
import { findingLines } from '../../lib/report/sentences.ts';
import { type Table, textOf } from '../../lib/report/table.ts';
import type { Phase, Result } from '../../lib/result/result.ts';
import { newFolder } from '../fixtures/new-folder.ts';
import { latency, noCauses, noLatency, phase } from '../fixtures/phase.ts';
import { openFileCache, result, workers } from '../fixtures/result.ts';

/** The column's cells, row by row; undefined where there is no such column. */
function column({ columns, rows }: Table, title: string): string[] | undefined {
  const index = columns.findIndex((one) => one.title === title);
  return index < 0 ? undefined : rows.map((row) => textOf(row[index] ?? ''));
}

/** The variant with all of its phases changed. */
function changed(variant: MeasuredVariant, change: (one: Phase) => Phase): MeasuredVariant {
  return {
    ...variant,
    rounds: variant.rounds.map(({ round, phases }) => ({ round, phases: phases.map(change) })),
  };
}

describe('a rate', () => {
  const atRate = (
    name: string,
    one: Phase,
    load: Partial<MeasuredVariant['load']> = {},
  ): MeasuredVariant => ({
    ...workers,
    name,
    setup: name,
    published: null,
    load: {
      command: 'vegeta attack',
      protocol: 'http/1.1',
      threads: 1,
      rate: 300_000,
      connections: 10_000,
      ...load,
    },
    rounds: [1, 2, 3, 4].map((round) => ({ round, phases: [one] })),
  });
  /** All 1,500,000 requests of 5 s, which took three times as long. */
  const late = (changes: Partial<Phase> = {}): Phase =>
    phase({
      requests: 1_500_000,
      seconds: 15.68,
      latencyMs: latency(5300, 10_600, 10_700),
      sendDelayMs: latency(5290, 10_590, 10_680),
      serverCpuSeconds: 0.7 * 15.68,
      generatorCpuSeconds: 0.97 * 15.68,
      ...changes,
    });
  const punctual = phase({
    requests: 1_500_000,
    seconds: 5.01,
    latencyMs: latency(0.3, 0.9, 4),
    sendDelayMs: latency(0.01, 0.02, 0.3),
    serverCpuSeconds: 4,
    generatorCpuSeconds: 3,
  });
  const said = (...variants: MeasuredVariant[]): string[] =>
    findingLines(result(variants)).filter((line) => line.includes('atency'));

  test('that was not reached is never said to be the one of its latencies: what was made is, and why', () => {
    const missed = result([atRate('nginx', late())]);
    expect(said(atRate('nginx', late()))).toEqual([
      'nginx did not come to 300,000 requests/s: 95,663 were made (32 %); the generator was at its limit. Its latency grows with the length of such a run, and is none at that rate.',
    ]);
    expect(column(variantTable(missed), 'requests/s')).toEqual(['95,663 of 300,000']);
    expect(column(variantTable(missed), 'unsent')).toBeUndefined();
  });

  test('of which some never left has their number in the table and a note', () => {
    const cut = result([
      atRate(
        'nginx',
        late({
          requests: 900_000,
          seconds: 5,
          unsent: 600_000,
          serverCpuSeconds: 4.9,
          generatorCpuSeconds: 2,
        }),
      ),
    ]);
    expect(findingLines(cut)[0]).toContain(
      '180,000 were made (60 %); the server was at its limit. Its latency',
    );
    expect(column(variantTable(cut), 'unsent')).toEqual(['2,400,000']);
    expect(cut.warnings).toContain(
      'nginx: 2,400,000 of 6,000,000 requests were due and could not be sent: the server was at its limit',
    );
  });

  test.each([
    [
      'both at their limit',
      { serverCpuSeconds: 15.6, generatorCpuSeconds: 15.6 },
      'both sides were at their limit',
    ],
    [
      'neither',
      { generatorCpuSeconds: 5 },
      'neither side was at its limit (run again on a quieter machine, or with more connections)',
    ],
    [
      'not known of the server',
      { serverCpuSeconds: null, generatorCpuSeconds: 5 },
      'the generator was not at its limit, so the server or the way to it probably was (ask for fewer requests/s, or see how busy the server is)',
    ],
  ])('names the cause: %s', (_, changes, cause) => {
    const [line = ''] = said(atRate('nginx', late(changes)));
    expect(line).toContain(`; ${cause}. Its latency`);
  });

  test('that was reached has no such sentence', () => {
    expect(said(atRate('nginx', late()), atRate('h2o', punctual))).toEqual([
      expect.stringMatching(/^nginx did not come to 300,000 requests\/s: /),
      'Requests left late by (p50 and p99), which latency includes: h2o 100 µs and 100 µs.',
    ]);
  });

  test('is reached where answers are missing and not requests: the last ones are on their way, or failed', () => {
    const slow = phase({
      requests: 10_000,
      seconds: 11,
      latencyMs: latency(1000, 1000, 1000),
      sendDelayMs: latency(0.01, 0.1, 1),
    });
    expect(said(atRate('nginx', slow, { rate: 1000 })).join()).not.toContain('did not come');
    const failing = phase({
      requests: 10_000,
      responses: { '2xx': 9000, '3xx': 0, '4xx': 0, '5xx': 0 },
      errors: { connect: 0, tls: 0, read: 1000, write: 0, timeout: 0, protocol: 0, total: 1000 },
    });
    expect(said(atRate('nginx', failing, { rate: 1000 }))).toEqual([]);
  });
});

describe('requests that were answered with an error', () => {
  const answering = (ok: number): Result =>
    result([
      workers,
      changed(openFileCache, (one) => ({
        ...one,
        responses: { '2xx': ok, '3xx': 0, '4xx': one.requests - ok, '5xx': 0 },
      })),
    ]);

  test('are beside requests/s, which are no achievement where most failed', () => {
    const { columns, rows } = variantTable(answering(1000));
    // Behind the published ones.
    const place = columns.findLastIndex(({ title }) => title === 'requests/s');
    expect(rows.map((row) => textOf(row[place] ?? ''))).toEqual([
      '60,411',
      expect.stringMatching(/^100\.06 of 80,275$/),
    ]);
    expect(columns[place + 1]?.title).toBe('success');
    expect(textOf(variantTable(answering(700_000)).rows[1]?.[place] ?? '')).toMatch(/^80,\d{3}$/);
  });
});

describe('requests that hung', () => {
  const hanging = changed(openFileCache, (one) => ({
    ...one,
    hung: 3,
    inFlight: 100,
    latencyMs: { ...one.latencyMs, p999: 1250 },
  }));
  const of = result([workers, hanging]);

  test('stand in the table and in a note, and nowhere where there are none', () => {
    expect(column(variantTable(of), 'hung')).toEqual(['', '18']);
    expect(column(variantTable(of), 'success')).toEqual(['100 %', '99.99 %']);
    expect(of.warnings).toContain(
      'open-file-cache: 18 requests were never answered and had waited for more than 2.50 s when the load ended: the server has probably forgotten them; they count as failed',
    );
    expect(column(variantTable(result([workers, openFileCache])), 'hung')).toBeUndefined();
  });

  test('leave no verdict where they are more than one in a hundred', () => {
    const many = result([workers, changed(openFileCache, (one) => ({ ...one, hung: 20_000 }))]);
    expect(many.comparisons[0]).toMatchObject({
      verdict: 'none',
      why: '2.4 % of the requests of open-file-cache failed',
    });
  });
});

describe('a load of which no request succeeded', () => {
  const options = {
    help: false,
    quick: false,
    store: 'none',
    out: '/',
    json: false,
    hosts: [],
    exports: [],
  } as const;
  const reset = phase({
    requests: 1000,
    responses: { '2xx': 0, '3xx': 0, '4xx': 0, '5xx': 0 },
    errors: { connect: 0, tls: 0, read: 1000, write: 0, timeout: 0, protocol: 0, total: 1000 },
    errorCauses: { ...noCauses, reset: 990, other: 10 },
    errorExample: 'read: no route to host',
    latencyMs: noLatency,
  });
  const refused = phase({ requests: 500, responses: { '2xx': 0, '3xx': 0, '4xx': 0, '5xx': 500 } });
  const hanging = phase({ requests: 0, inFlight: 100, hung: 100, latencyMs: noLatency });
  const ending = async (of: Result, ended?: unknown): Promise<number> => {
    const folder = newFolder();
    return report({ result: of, ended, folder }, options, []);
  };
  const having = (variant: MeasuredVariant, one: Phase): MeasuredVariant =>
    changed(variant, () => one);

  test.each([
    ['reset', reset, '6,000 errors (5,940 reset, 60 other, read: no route to host)'],
    ['5xx', refused, '3,000 answers with 5xx'],
    [
      '503, and others',
      { ...refused, statuses: { 500: 40, 501: 5, 502: 50, 503: 400, 504: 1, 599: 4 } },
      '2,400 answers with 503, 300 answers with 502, 240 answers with 500, 30 answers with 501 and 30 with others',
    ],
    [
      'never answered',
      hanging,
      '600 requests were never answered and had waited for more than 1.00 s when the load ended',
    ],
    [
      'not even begun',
      phase({ requests: 0, latencyMs: noLatency }),
      'no request ended within the load',
    ],
  ])('is named where another row has figures: %s', async (_, one, why) => {
    const of = result([workers, having(openFileCache, one)]);
    expect(findingLines(of)).toContain(`No request of open-file-cache succeeded: ${why}.`);
    await expect(ending(of)).rejects.toThrow(
      new UserError(`a side was not measured: No request of open-file-cache succeeded: ${why}`),
    );
  });

  test('in every row is no comparison: one line says why, after the report', async () => {
    await expect(
      ending(result([having(workers, reset), having(openFileCache, refused)])),
    ).rejects.toThrow(
      /^nothing was compared: No request of workers succeeded: 6,000 errors \(5,940 reset, 60 other, read: no route to host\)\. No request of open-file-cache succeeded: 3,000 answers with 5xx$/,
    );
    // What is published only has no figure to have.
    const spdy: MeasuredVariant = {
      ...openFileCache,
      name: 'spdy',
      server: null,
      publishedOnly: 'gone',
      rounds: [],
    };
    await expect(ending(result([having(workers, reset), spdy]))).rejects.toThrow(
      'nothing was compared',
    );
  });

  test('of a run that ended early is what ended it', async () => {
    const ended = new Error('interrupted');
    await expect(
      ending(result([having(workers, reset)], { state: 'partial' }), ended),
    ).rejects.toBe(ended);
  });
});

describe('a verdict of a run that ended early', () => {
  const complete = result([workers, openFileCache]);
  const partial: Result = { ...complete, state: 'partial', looks: [10] };

  test('is marked as not final wherever it is shown', () => {
    const cell = variantTable(partial).rows[1]?.find((one) => textOf(one).includes('faster'));
    expect(cell).toEqual({
      text: '×1.33 [1.31, 1.34] faster, not final',
      part: 'faster, not final',
      verdict: 'inconclusive',
    });
    const lines = findingLines(partial);
    expect(lines[0]).toBe(
      'Ended early: 6 of 10 rounds are whole and count here. No verdict is final: they are made after 10 rounds, and to end a run by what it shows so far is one more chance to be wrong.',
    );
    expect(lines[1]).toMatch(
      /^open-file-cache is faster than workers here: \+33 % \(95 % interval .*\), not final; /,
    );
    expect(findingLines({ ...partial, looks: [5, 10, 20] })[0]).toContain(
      '6 of at most 20 rounds are whole and count here. No verdict is final: they are made after 5, 10 or 20 rounds',
    );
    expect(markdownReport(partial)).toContain('faster, not final');
    expect(findingLines({ ...partial, control: true })[1]).toContain(', not final.');
  });

  test('is no word where there is none, or the run is complete', () => {
    expect(JSON.stringify([variantTable(complete), findingLines(complete)])).not.toContain(
      'not final',
    );
    const few = {
      ...result([
        { ...workers, rounds: workers.rounds.slice(0, 2) },
        { ...openFileCache, rounds: openFileCache.rounds.slice(0, 2) },
      ]),
      state: 'partial' as const,
      looks: [6],
    };
    expect(findingLines(few)[0]).toBe('Ended early: 2 of 6 rounds are whole and count here.');
    expect(JSON.stringify(variantTable(few))).not.toContain('final');
  });
});
