// How a run over networks of its own is shown: the table of the link, marked comparisons, kernel settings, headings.
import { describe, expect, test } from 'vitest';
import type { MeasuredVariant } from '../../lib/analysis/verdict.ts';
import { variantTable } from '../../lib/report/run-tables.ts';
import { headingLines, resultHeading } from '../../lib/report/heading.ts';
import {
  checkResult,
  type KernelSetting,
  type NetworkUse,
  type Phase,
  type Result,
} from '../../lib/result/result.ts';
import { headlineHtml } from '../../lib/report/html/headline.ts';
import { htmlReport } from '../../lib/report/html/run-page.ts';
import { severalPage } from '../../lib/report/html/several-page.ts';
import { markdownReport } from '../../lib/report/markdown.ts';
import { linkPart, linkText, networksText } from '../../lib/report/network.ts';
import { findingLines, footnoteLines, kernelSettingLines } from '../../lib/report/sentences.ts';
import { type Table, terminalTable } from '../../lib/report/table.ts';
import { terminalReport } from '../../lib/report/terminal.ts';
import type { NetworkSpec } from '../../lib/scenario/model.ts';
import { roundsOf } from '../fixtures/comparison.ts';
import { delayed, overLink, phaseOverLink, traffic } from '../fixtures/link.ts';
import { phase } from '../fixtures/phase.ts';
import { result } from '../fixtures/result.ts';

const offs = [0, 0.004, -0.003, 0.002];
const plain = { width: Infinity, colour: false };

/** Four rounds of 10 s over the article's link. */
function variant(
  name: string,
  requests: number,
  network: (requests: number) => Partial<NetworkUse> = () => ({}),
  changes: Partial<MeasuredVariant> = {},
): MeasuredVariant {
  const counts = offs.map((off) => Math.round(requests * (1 + off)));
  return overLink(
    name,
    counts.map((count) => phaseOverLink(count, network(count))),
    changes,
  );
}

const queue = (requests: number): Partial<NetworkUse> => ({
  toServer: traffic(requests * 9, requests * 3),
  retransmits: { client: requests * 3, server: 0 },
  listenOverflows: 12,
});
const late =
  (p99: number) =>
  (requests: number): Partial<NetworkUse> => ({
    ...queue(requests),
    toServer: traffic(requests * 9, requests * 3, p99),
  });
const untuned = variant('untuned', 10_000, queue, {
  published: { rps: 2211, errorsPerMillion: 363, packetsPerRequest: 11 },
});
const nopush = variant(
  'nopush',
  12_000,
  (requests) => ({ ...queue(requests), toClient: traffic(requests * 4, 0) }),
  {
    published: { rps: 2431, errorsPerMillion: 174, packetsPerRequest: 9 },
  },
);
const held = result([untuned, nopush]);
const notHeld = result([
  { ...untuned, rounds: variant('untuned', 10_000, late(138)).rounds },
  nopush,
]);

const tableIn = (of: Pick<Result, 'variants'>): Table => {
  const [part] = linkPart(of);
  const [table] = part?.tables ?? [];
  if (table === undefined) throw new Error('no table');
  return table;
};
const column = (of: Pick<Result, 'variants'>, group: string, title: string): unknown[] => {
  const { columns, rows } = tableIn(of);
  const at = columns.findIndex((one) => one.group === group && one.title === title);
  return at === -1 ? ['no column'] : rows.map((row) => row[at]);
};

describe('what went over the link', () => {
  test("is a table with the article's packets beside those counted here", () => {
    expect(terminalTable(tableIn(held), plain)).toEqual([
      '         packets/request                            dropped    late',
      'variant  to server  to client  in all  published  to server  p50 ms  p99 ms  delay  sent again/req  listen overflows  server idle',
      'untuned       9.00       5.00   14.00         11       33 %    0.10    0.40  held             3.00                12         90 %',
      'nopush        9.00       4.00   13.00          9       33 %    0.10    0.40  held             3.00                12         90 %',
    ]);
    expect(linkPart(held)[0]?.title).toBe('What went over the link:');
  });

  test("goes on below on 80 columns, a group's figures together", () => {
    const lines = terminalTable(tableIn(notHeld), { width: 80, colour: false });
    expect(lines.filter((line) => line.length > 80)).toEqual([]);
    expect(
      lines
        .filter((line) => line.startsWith('variant'))
        .map((line) => line.split(/ {2,}/).slice(1)),
    ).toEqual([
      ['to server', 'to client', 'in all', 'published', 'to server'],
      ['p50 ms', 'p99 ms', 'delay', 'sent again/req'],
      ['listen overflows', 'server idle'],
    ]);
  });

  test('says of each row whether the delay held, and by how much not', () => {
    expect(column(notHeld, '', 'delay')).toEqual([
      {
        text: 'delay not held: p99 +138 ms',
        part: 'delay not held: p99 +138 ms',
        verdict: 'inconclusive',
      },
      'held',
    ]);
    expect(terminalTable(tableIn(notHeld), { width: Infinity, colour: true })[2]).toContain(
      '  \u001b[33mdelay not held: p99 +138 ms\u001b[39m',
    );
  });

  test('has no share of drops where the queue has no limit, and few are not none', () => {
    const few = variant('few', 10_000, (requests) => ({ toServer: traffic(requests * 6, 3) }));
    const none = variant('none', 10_000, (requests) => ({ toServer: traffic(requests * 6, 0) }));
    expect(column(result([few, none, untuned]), 'dropped', 'to server')).toEqual([
      '<0.1 %',
      '0 %',
      '33 %',
    ]);
    expect(column(result([few]), 'dropped', 'to client')).toEqual(['no column']);
    const unlimited = variant('none', 10_000, () => ({}), {
      network: { ...delayed, toServer: { delayMs: 100 } },
    });
    expect(column(result([unlimited]), 'dropped', 'to server')).toEqual(['no column']);
  });

  test('has no packets per request without a request', () => {
    const dead = variant('untuned', 0, () => ({
      toServer: traffic(10, 0),
      toClient: traffic(0, 0, 0),
    }));
    expect(column(result([dead, nopush]), 'packets/request', 'in all')).toEqual(['', '13.00']);
    expect(column(result([dead, nopush]), '', 'sent again/req')).toEqual(['', '3.00']);
  });

  test('is nothing where all went over loopback, and names loopback where some did', () => {
    const loopback = (name: string): MeasuredVariant => {
      const { network: _, ...rest } = variant(name, 0);
      return {
        ...rest,
        rounds: roundsOf(offs.map((off) => phase({ requests: 10_000 * (1 + off) }))),
      };
    };
    expect(linkPart(result([loopback('untuned')]))).toEqual([]);
    const mixed = result([loopback('untuned'), nopush]);
    expect(column(mixed, '', 'variant')).toEqual(['untuned', 'nopush']);
    expect(column(mixed, '', 'link')).toEqual([
      'loopback',
      '100 ms to the server, queue of 1,000 packets',
    ]);
    expect(column(mixed, 'packets/request', 'in all')).toEqual(['', '13.00']);
    expect(findingLines(mixed)).toContainEqual(
      expect.stringMatching(/^(Neither was the limit|Use of the cores): nginx at /),
    );
  });

  test('has a row for what is published only, where the article counted packets', () => {
    const gone = (name: string, packetsPerRequest?: number): MeasuredVariant =>
      variant(name, 0, () => ({}), {
        server: null,
        publishedOnly: 'it is gone',
        rounds: [],
        published: { rps: 1, ...(packetsPerRequest === undefined ? {} : { packetsPerRequest }) },
      });
    const part = result([untuned, gone('counted', 7), gone('uncounted')]);
    expect(column(part, '', 'variant')).toEqual(['untuned', 'counted']);
    expect(column(part, 'packets/request', 'published')).toEqual(['11', '7']);
    expect(tableIn(part).columns.map(({ title }) => title)).not.toContain('link');
  });

  test('says which link it was where they differ', () => {
    const other = variant('other', 9000, () => ({}), {
      network: { ...delayed, toServer: { delayMs: 0 }, toClient: { delayMs: 100 } },
    });
    expect(column(result([untuned, nopush, other]), '', 'link')).toEqual([
      '100 ms to the server, queue of 1,000 packets',
      '100 ms to the server, queue of 1,000 packets',
      '100 ms to the client, no queue limit',
    ]);
  });
});

test("the article's errors stand beside those here, where it had any", () => {
  const lines = terminalTable(variantTable(held), plain);
  expect(lines[1]).toMatch(/^variant  requests\/s  ratio  errors\/M  requests\/s  against untuned/);
  expect(lines[3]).toMatch(/^nopush        2,431  ×1\.10       174/);
  const none = (one: MeasuredVariant): MeasuredVariant => ({
    ...one,
    published: { rps: 2211, errorsPerMillion: 0 },
  });
  expect(terminalTable(variantTable(result([none(untuned), none(nopush)])), plain)[1]).toMatch(
    /^variant  requests\/s  ratio  requests\/s /,
  );
});

describe('a link in words', () => {
  const link = (
    toServer: NetworkSpec['toServer'],
    toClient: NetworkSpec['toClient'] = { delayMs: 0 },
  ): string => linkText({ ...delayed, toServer, toClient });
  test.each([
    [
      { delayMs: 100, queuePackets: 1000 },
      undefined,
      '100 ms to the server, queue of 1,000 packets',
    ],
    [{ delayMs: 0 }, { delayMs: 0.5 }, '0.5 ms to the client, no queue limit'],
    [{ delayMs: 50 }, { delayMs: 50 }, '50 ms each way, no queue limit'],
    [
      { delayMs: 100 },
      { delayMs: 20, queuePackets: 5 },
      '100 ms to the server, no queue limit; 20 ms to the client, queue of 5 packets',
    ],
    [
      { delayMs: 0, bytesPerSecond: 1_250_000, lossShare: 0.005 },
      undefined,
      'no delay to the server, 10 Mbit/s, 0.5 % lost',
    ],
    [{ delayMs: 0 }, { delayMs: 0 }, 'no delay'],
  ])('%j and back %j is "%s"', (toServer, toClient, text) => {
    expect(link(toServer, toClient)).toBe(text);
  });

  test('stands in the heading, or how many there are; loopback is not worth a word', () => {
    expect(headingLines(resultHeading(held))[0]).toContain(
      ' over HTTP/1.0 · 100 ms to the server, queue of 1,000 packets · 4 rounds, ',
    );
    expect(networksText([delayed, { ...delayed, serverSettings: ['article'] }])).toBe(
      '100 ms to the server, queue of 1,000 packets',
    );
    expect(networksText([delayed, undefined])).toBe('2 different networks');
    expect([networksText([undefined, undefined]), networksText([])]).toEqual(['', '']);
  });
});

describe('a comparison over a link that was late', () => {
  const cell = (of: Result): unknown => {
    const { columns, rows } = variantTable(of);
    return rows[1]?.[columns.findIndex(({ title }) => title === 'against untuned')];
  };
  const changed = (changes: Partial<Result['comparisons'][number]>): Result => ({
    ...notHeld,
    comparisons: notHeld.comparisons.map((one) => ({ ...one, ...changes })),
  });

  test.each([
    [{}, '×1.20 [1.20, 1.20] faster, delay not held'],
    [
      { verdict: 'same', ratio: 1.001, ci95: [0.9985, 1.0034] },
      '×1.001 [0.999, 1.003] same within 1 %, delay not held',
    ],
    [
      { verdict: 'inconclusive', ratio: 1.01, ci95: [0.98, 1.04] },
      '×1.01 [0.98, 1.04] inconclusive, delay not held',
    ],
    [{ verdict: 'none', why: 'needs 4 rounds' }, '×1.20 needs 4 rounds, delay not held'],
  ] as const)('is marked in its cell: %j', (changes, text) => {
    expect(cell(changed(changes as never))).toMatchObject({ text });
  });

  test('is not shown in the colour of a verdict on the servers, in a headline neither', () => {
    expect(cell(notHeld)).toMatchObject({
      part: 'faster, delay not held',
      verdict: 'inconclusive',
    });
    expect(cell(held)).toMatchObject({
      text: '×1.20 [1.20, 1.20] faster',
      part: 'faster',
      verdict: 'faster',
    });
    expect(headlineHtml(notHeld).text).toContain(
      '<div class="effect inconclusive"><div><h1>nopush is 20\u00a0% faster than untuned, delay not held</h1>',
    );
    expect(headlineHtml(held).text).toContain(
      '<div class="effect faster"><div><h1>nopush is 20\u00a0% faster than untuned</h1>',
    );
  });

  test.each([
    [
      {},
      'nopush is faster than untuned here: +20 % (95 % interval +20 % to +20 %), delay not held; the article saw +10 %.',
    ],
    [
      { verdict: 'same', ratio: 1.001, ci95: [0.9985, 1.0034] },
      'nopush is as fast as untuned here, within 1 %: +0.1 % (95 % interval −0.1 % to +0.3 %), delay not held; the article saw +10 %.',
    ],
    [
      { verdict: 'inconclusive', ratio: 1.01, ci95: [0.98, 1.04], roundsNeeded: 24 },
      'Whether nopush is faster than untuned cannot be told from this: +1 % (95 % interval −2 % to +4 %), delay not held; about 24 rounds would probably decide; the article saw +10 %. But CPU per request is clear: nopush uses 83 % of the CPU (95 % interval 83 % to 83 %); --metric cpu compares by that.',
    ],
    [
      { verdict: 'none', why: 'needs 4 rounds' },
      'No verdict on nopush against untuned: needs 4 rounds (measured +20 %, delay not held); the article saw +10 %.',
    ],
  ] as const)('is marked in its sentence: %j', (changes, sentence) => {
    expect(findingLines(changed(changes as never))[0]).toBe(sentence);
  });

  test('of a config with itself is marked, too', () => {
    expect(findingLines({ ...notHeld, control: true })[0]).toMatch(
      /^nopush is called faster than untuned, and they are the same: .*\), delay not held\. /,
    );
  });

  test('is a plain one where the delay held', () => {
    expect(findingLines(held)[0]).toBe(
      'nopush is faster than untuned here: +20 % (95 % interval +20 % to +20 %); the article saw +10 %.',
    );
  });
});

test("who was the limit is said with the link's part of the cores", () => {
  const limit = (changes: Partial<Phase>): string | undefined =>
    findingLines(
      result([
        {
          ...untuned,
          rounds: untuned.rounds.map(({ round, phases }) => ({
            round,
            phases: phases.map((one) => ({ ...one, ...changes })),
          })),
        },
      ]),
    ).find((line) => line.includes('the generator at '));
  expect(limit({})).toBe(
    'Neither was the limit: nginx at 20 %, the generator at 30 % of its available CPU.',
  );
  expect(limit({ serverCpuSeconds: 8.5 })).toBe(
    'nginx was the limit: nginx at 95 %, the generator at 30 % of its available CPU.',
  );
  expect(limit({ generatorCpuSeconds: 8.5 })).toBe(
    'The generator was the limit: nginx at 20 %, the generator at 95 % of its available CPU.',
  );
});

describe('kernel settings', () => {
  const setting = (
    name: string,
    value: string,
    variants: string[],
    changes: Partial<KernelSetting> = {},
  ): KernelSetting => ({ side: 'server', name, value, variants, ...changes });
  const lines = (...kernelSettings: KernelSetting[]): string[] =>
    kernelSettingLines({ ...held, kernelSettings });

  test('are those that hold, and each that does not with why, by side and variants', () => {
    expect(
      lines(
        setting('net.core.somaxconn', '128', ['untuned']),
        setting('net.core.somaxconn', '32768', ['nopush']),
        setting('net.ipv4.tcp_tw_recycle', '1', ['nopush'], {
          problem: 'this kernel does not have it',
        }),
        setting('net.ipv4.tcp_rmem', '4096 349520 16777216', ['nopush']),
        setting('net.core.rmem_max', '16777216', ['nopush'], {
          problem: 'read-only in a namespace',
        }),
        setting('net.core.wmem_max', '16777216', ['nopush'], {
          problem: 'read-only in a namespace',
        }),
        setting('net.ipv4.ip_local_port_range', '1024 65535', ['untuned', 'nopush'], {
          side: 'client',
        }),
      ),
    ).toEqual([
      "untuned: kernel settings in the server's namespace: net.core.somaxconn=128.",
      "nopush: kernel settings in the server's namespace: net.core.somaxconn=32768, net.ipv4.tcp_rmem=4096 349520 16777216.",
      "nopush: kernel settings in the server's namespace that were asked for and do not hold: net.ipv4.tcp_tw_recycle=1 (this kernel does not have it), " +
        'net.core.rmem_max=16777216 and net.core.wmem_max=16777216 (read-only in a namespace).',
      "every variant: kernel settings in the client's namespace: net.ipv4.ip_local_port_range=1024 65535.",
    ]);
  });

  test('of most variants name the others', () => {
    const four = {
      variants: result([untuned, nopush, variant('third', 10_000), variant('fourth', 10_000)])
        .variants,
    };
    const named = (...names: string[]): string[] =>
      kernelSettingLines({
        ...four,
        kernelSettings: [setting('net.core.somaxconn', '128', names)],
      });
    expect(named('untuned', 'third', 'fourth')).toEqual([
      "every variant but nopush: kernel settings in the server's namespace: net.core.somaxconn=128.",
    ]);
    expect(named('untuned', 'third')).toEqual([
      "untuned, third: kernel settings in the server's namespace: net.core.somaxconn=128.",
    ]);
  });

  test('of the only variant have its name', () => {
    expect(
      kernelSettingLines({
        variants: held.variants.slice(0, 1),
        kernelSettings: [setting('net.core.somaxconn', '128', ['untuned'])],
      }),
    ).toEqual(["untuned: kernel settings in the server's namespace: net.core.somaxconn=128."]);
  });

  test('are none without any, one line where none of them holds, and stand among the footnotes', () => {
    expect(lines()).toEqual([]);
    const refused = setting('net.core.netdev_max_backlog', '32768', ['nopush'], {
      problem: 'not in a namespace',
    });
    const text =
      "nopush: kernel settings in the server's namespace that were asked for and do not hold: net.core.netdev_max_backlog=32768 (not in a namespace).";
    expect(lines(refused)).toEqual([text]);
    expect(footnoteLines({ ...held, kernelSettings: [refused], footnotes: ['Last.'] })).toEqual([
      text,
      'Last.',
    ]);
  });
});

describe('all reports', () => {
  const settings: KernelSetting[] = [
    { side: 'server', name: 'net.core.somaxconn', value: '128', variants: ['untuned', 'nopush'] },
  ];
  const whole = { ...notHeld, kernelSettings: settings };
  const words = [
    'What went over the link',
    'delay not held: p99 +138 ms',
    'faster, delay not held',
    'net.core.somaxconn=128',
    '100 ms to the server, queue of 1,000 packets',
  ];

  test('say the same: the page, Markdown, the terminal', async () => {
    const page = (await htmlReport(whole, { configs: [] }))
      .replaceAll(/<script[\s\S]*?<\/script>/g, '')
      .replaceAll(/<\/?span[^>]*>/g, '');
    const markdown = markdownReport(whole);
    const terminal = [
      ...headingLines(resultHeading(whole)),
      ...terminalReport(whole, [], { ...plain, verbose: true }),
    ].join('\n');
    for (const text of words)
      for (const report of [page, markdown, terminal]) expect(report).toContain(text);
    expect(markdown).toContain(
      '| variant | packets/request to server | packets/request to client | packets/request in all | packets/request published | dropped to server | late p50 ms | late p99 ms | delay |',
    );
    expect(markdown).toContain('| published errors/M | requests/s | against untuned |');
  });

  test('of several runs mark them too', async () => {
    const page = await severalPage([whole, { ...held, run: '2026-11-21T09-00-00-nginx-tuning' }]);
    expect(page).toContain('<span class="verdict inconclusive">faster, delay not held</span>');
    expect(page).toContain('<span class="verdict faster">faster</span>');
  });

  test('of a run that ended early count what is there', () => {
    const some = (one: MeasuredVariant): MeasuredVariant => ({
      ...one,
      rounds: one.rounds.slice(0, 2),
    });
    const partial = result([some(untuned), some(nopush)], { state: 'partial', looks: [4] });
    expect(column(partial, 'packets/request', 'to server')).toEqual(['9.00', '9.00']);
    expect(findingLines(partial)[0]).toBe('Ended early: 2 of 4 rounds are whole and count here.');
  });

  test('are made of a file only where it has all of a network', () => {
    expect(checkResult(JSON.stringify(whole), 'file')).toEqual(whole);
    const without = (text: string, by = ''): string => JSON.stringify(whole).replace(text, by);
    expect(() =>
      checkResult(without('"delayHeld":false,').replace('"delayHeld":false', '"x":1'), 'file'),
    ).toThrow(/: variants\[0\]\.network\.delayHeld is missing/);
    expect(() =>
      checkResult(without('"queuePackets":1000', '"queuePackets":"many"'), 'file'),
    ).toThrow(/queuePackets has to be a number/);
    expect(() =>
      checkResult(without('"delayNotHeld":["untuned"]', '"delayNotHeld":null'), 'file'),
    ).toThrow(/comparisons\[0\]\.delayNotHeld has to be a list of texts/);
    expect(() =>
      checkResult(
        without('"linkCpuSeconds":{"toServer":1', '"linkCpuSeconds":{"toServer":null'),
        'file',
      ),
    ).toThrow(/network\.linkCpuSeconds\.toServer has to be a number/);
    expect(() =>
      checkResult(JSON.stringify({ ...whole, kernelSettings: undefined }), 'file'),
    ).toThrow(/: kernelSettings is missing/);
    expect(() =>
      checkResult(
        JSON.stringify({ ...whole, kernelSettings: [{ ...settings[0], problem: 7 }] }),
        'file',
      ),
    ).toThrow(/kernelSettings\[0\]\.problem has to be a text/);
  });
});

test("a group's name may be longer than its first column, and leaves no blanks behind it", () => {
  const heading = (group: string, title: string): Table['columns'][number] => ({
    group,
    title,
    align: 'left',
  });
  const table: Table = {
    columns: [
      heading('', 'name'),
      heading('a long name', 'a'),
      heading('a long name', 'bc'),
      heading('next', 'd'),
      heading('last', 'efghijk'),
    ],
    rows: [['x', '1', '2', '3', '4']],
  };
  expect(terminalTable(table, plain)).toEqual([
    '      a long name  next  last',
    'name  a  bc  d  efghijk',
    'x     1  2   3  4',
  ]);
});

test("a table's words that do not fit beside its first column take several lines, in colour as without", () => {
  const table: Table = {
    columns: [
      { group: '', title: 'name', align: 'left' },
      { group: '', title: 'words', align: 'left' },
      { group: '', title: 'n', align: 'right' },
    ],
    rows: [
      [
        'a'.repeat(40),
        {
          text: 'some words that take more than one line, delay not held',
          part: 'delay not held',
          verdict: 'inconclusive',
        },
        '1',
      ],
      ['b', 'few', '2'],
    ],
  };
  const lines = [
    `name${' '.repeat(38)}words`,
    `${'a'.repeat(40)}  some words that take more than one`,
    `${' '.repeat(44)}line, delay not held`,
    `b${' '.repeat(41)}few`,
    '',
    `name${' '.repeat(38)}n`,
    `${'a'.repeat(40)}  1`,
    `b${' '.repeat(41)}2`,
  ];
  expect(terminalTable(table, { width: 80, colour: false })).toEqual(lines);
  expect(terminalTable(table, { width: 80, colour: true })[2]).toBe(
    `${' '.repeat(44)}line, \u001b[33mdelay not held\u001b[39m`,
  );
});
