// The tables, plots and words of a run over emulated networks.
import { expect, test } from 'vitest';
import { additions } from '../../cli/main.ts';
import {
  held,
  nopush,
  notHeld,
  queue,
  untuned,
  variant,
} from '../../../test/fixtures/delayed-run.ts';
import { delayed, traffic } from '../../../test/fixtures/link.ts';
import { result, workers } from '../../../test/fixtures/result.ts';
import { columnOf } from '../../../test/fixtures/table.ts';
import type { MeasuredVariant } from '../../analysis/verdict.ts';
import { figuresOf } from '../../report/charts.ts';
import { variantTable } from '../../report/run-tables.ts';
import { terminalTable, cellText, type Table } from '../../report/table.ts';
import type { Result } from '../../result/result.ts';
import type { NetworkSpec } from '../../scenario/model.ts';
import { linkText, networkText } from '../../report/heading.ts';
import { linkPart } from './report.ts';

const articleLink = '100 ms to the server, queue of 1,000 packets';

const tableIn = (of: Pick<Result, 'variants'>): Table => {
  const [table] = linkPart(of)[0]?.tables ?? [];
  if (table === undefined) throw new Error('no table');
  return table;
};
const column = (of: Pick<Result, 'variants'>, group: string, title: string) =>
  columnOf(tableIn(of), title, group);

test('the link table shows packets of the article next to measured ones', () => {
  const [groups, titles, first] = terminalTable(tableIn(held), {
    width: Infinity,
    colour: false,
  });
  expect(groups).toMatch(/^ +packets\/request +dropped +late +server idle$/);
  expect(titles).toMatch(
    /^variant .* in all  published .* p99 ms  delay  sent again\/req  listen overflows +here$/,
  );
  expect(first?.split(/ +/).join(' ')).toBe(
    'untuned 9.00 5.00 14.00 11 33 % 0.10 0.40 held 3.00 12 90 %',
  );
});

test('the link table marks an inaccurate delay', () => {
  const part = 'delay not held: p99 +138 ms';
  expect(tableIn(notHeld).rows[0]).toContainEqual({ text: part, part, verdict: 'inconclusive' });
  expect(column(notHeld, '', 'delay')).toEqual([part, 'held']);
});

test('the link table shows drops only for a queue with a limit; small counts are not rounded to zero', () => {
  const few = variant('few', 10_000, (requests) => ({ toServer: traffic(requests * 6, 3) }));
  const none = variant('none', 10_000, (requests) => ({ toServer: traffic(requests * 6, 0) }));
  expect(column(result([few, none]), 'dropped', 'to server')).toEqual(['<0.1 %', '0 %']);
  expect(column(result([few]), 'dropped', 'to client')).toBeUndefined();
});

test('the link table names the links if they differ; on loopback there is no table', () => {
  const { network: _, ...local } = variant('local', 0);
  const loopback = { ...local, rounds: workers.rounds.slice(0, 4) };
  expect(linkPart(result([loopback]))).toEqual([]);
  expect(column(result([loopback, nopush]), '', 'link')).toEqual(['loopback', articleLink]);
  expect(column(held, '', 'link')).toBeUndefined();
});

test('the link table has a row for variants with published packets only', () => {
  const gone = (name: string, published: object) =>
    variant(name, 0, () => ({}), { server: null, publishedOnly: 'gone', rounds: [], published });
  const part = result([untuned, gone('counted', { packetsPerRequest: 7 }), gone('other', {})]);
  expect(column(part, '', 'variant')).toEqual(['untuned', 'counted']);
  expect(column(part, 'packets/request', 'published')).toEqual(['11', '7']);
});

test('idle share, effect and packets by kind of the article are next to measured ones', () => {
  const packets = { toServer: { syn: 1, ack: 3 }, toClient: { synAck: 1 } };
  const published = { rps: 2211, serverIdleShare: 0.84, effect: 'yes' as const, packets };
  const linked = variant('one', 10, (requests) => queue(requests), { published });
  const of = result([untuned, linked]);
  expect(column(of, 'server idle', 'published')).toEqual(['', '≥ 84 %']);
  expect(columnOf(variantTable(of), 'effect', 'published')).toEqual(['', 'yes']);
  const kinds = linkPart(of)[0]?.tables[1] as Table;
  expect(columnOf(kinds, 'packets of a request')).toEqual([
    'untuned  here',
    'one  published',
    'one  here',
  ]);
  expect(columnOf(kinds, 'ACK', 'to server')?.[1]).toBe('3');
  expect(columnOf(kinds, 'in all')?.[1]).toBe('5');
  // No article distinguishes kinds, so they are below the details of each load.
  expect(linkPart(held)[0]?.tables).toHaveLength(1);
});

test.each<[NetworkSpec['toServer'], NetworkSpec['toServer'], string]>([
  [{ delayMs: 50 }, { delayMs: 50 }, '50 ms each way, no queue limit'],
  [
    { delayMs: 100 },
    { delayMs: 20, queuePackets: 5 },
    '100 ms to the server, no queue limit; 20 ms to the client, queue of 5 packets',
  ],
  [
    { delayMs: 0, bytesPerSecond: 1_250_000, lossShare: 0.005 },
    { delayMs: 0 },
    'no delay to the server, 10 Mbit/s, 0.5 % lost',
  ],
  [{ delayMs: 0 }, { delayMs: 0 }, 'no delay'],
])('description of a network: %j and back %j', (toServer, toClient, text) => {
  expect(linkText({ ...delayed, toServer, toClient })).toBe(text);
});

test('the heading describes the network, or gives the number of networks, but not loopback', () => {
  expect(networkText([delayed, { ...delayed, serverSettings: ['article'] }])).toBe(articleLink);
  expect(networkText([delayed, undefined])).toBe('2 different networks');
  expect([networkText([undefined, undefined]), networkText([])]).toEqual(['', '']);
});

const at = (series: string, lossShare: number, requests: number, delayMs = 100) =>
  variant(`${series}-${lossShare}-${delayMs}`, requests, undefined, {
    series,
    network: {
      ...delayed,
      toServer: { delayMs, lossShare },
      toClient: { delayMs: 0, lossShare },
    },
  });
const figures = (...variants: MeasuredVariant[]) =>
  figuresOf(result(variants), additions.contributionsTo(result(variants))).filter(({ title }) =>
    / by (packets|delay)/.test(title),
  );
const four = [at('h3', 0.01, 4000), at('h2', 0.01, 5000), at('h3', 0, 10_000), at('h2', 0, 9000)];

test('a curve over a link parameter has median and interval of each variant', () => {
  const [figure] = figures(untuned, ...four);
  expect(figure?.title).toBe('requests/s by packets lost');
  const [table] = figure?.tables ?? [];
  expect(table?.rows.map((row) => row.map(cellText))).toEqual([
    ['0', '1,001 [996.00, 1,006]', '900.90 [896.40, 904.96]'],
    ['1', '400.40 [398.40, 402.20]', '500.50 [498.00, 502.76]'],
  ]);
  expect(figure?.data).toMatchObject({
    x: { title: 'packets lost, %' },
    y: { title: 'requests/s' },
    names: ['h3', 'h2'],
    lines: [0, 0, 1, 1].map((x) => ({ x })),
  });
});

test('a curve over a link parameter needs two series, and exactly one parameter that differs', () => {
  expect(figures(...four.filter(({ series }) => series === 'h2'))).toEqual([]);
  expect(figures(...four, at('h2', 0, 9000, 50))).toEqual([]);
  expect(figures(...four.map(({ series: _, ...rest }) => rest))).toEqual([]);
  const ofThree = four.map((variant) => ({ ...variant, rounds: variant.rounds.slice(0, 3) }));
  expect(figures(...ofThree)).toEqual([]);
  const delays = [50, 100].flatMap((ms) => [at('h2', 0, 9000, ms), at('h3', 0, 8000, ms)]);
  expect(figures(...delays)[0]?.title).toBe('requests/s by delay there and back');
});
