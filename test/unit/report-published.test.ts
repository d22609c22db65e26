// The published rows of the report against the very lines that the articles printed.
import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import type { Result } from '../../lib/result/result.ts';
import { finishTable, h2loadTables, wrkTables } from '../../lib/report/load-tools.ts';
import { textOf, type Table } from '../../lib/report/table.ts';
import { h2Result, type Figures } from '../fixtures/h2-result.ts';
import { latency, noLatency } from '../fixtures/phase.ts';

const results = [
  await h2Result('h2o-vs-nginx-h2', { nginx: { rps: [20_000] }, h2o: { rps: [30_000] } }),
  await h2Result('nghttpd-index', { nghttpd: { rps: [80_000] } }),
  await h2Result('nghttpd-img', { 'nghttpd-1024': { rps: [800], phases: [{}, {}, {}] } }),
];
const wrkResult = await h2Result('h2o-vs-nginx', Object.fromEntries(sectionsOf('000').map(({ name }) => [name.split('/')[1], { rps: [50_000] }])));
const rowsOf = ({ rows }: Table): string[][] => rows.map((row) => row.map(textOf));

/** What each run of an article printed, under the variant's name. */
function sectionsOf(article: string): { name: string; lines: string[] }[] {
  const text = readFileSync(new URL(`../fixtures/article-${article}.md`, import.meta.url), 'utf8');
  return text.split(/^## /m).slice(1).map((section) => ({ name: section.slice(0, section.indexOf('\n')), lines: section.split('\n') }));
}

describe('published figures of h2load', () => {
  const printed = ['001', '002'].flatMap(sectionsOf).filter(({ lines }) => lines.some((line) => line.startsWith('finished in')));

  /** "516us" is "516 µs", "85.52%" is "85.52 %", "2.35MB/s" is "2.35 MiB/s": SI's way of writing, and binary units by their name. */
  const asWeWrite = (text: string): string => text.replace(/^([\d.]+)(us|ms|s|%|MB\/s)?$/, (_, value: string, unit?: string) => {
    const grouped = value.replace(/\B(?=(\d{3})+(?!\d)(?=.*\.))/g, ',');
    return unit === undefined ? grouped : `${value} ${unit.replace('us', 'µs').replace('MB', 'MiB')}`;
  });

  test('of every h2load run of articles 001 and 002 are there to compare with', () => {
    expect(printed.map(({ name }) => name.split('/')[0])).toEqual(expect.arrayContaining(results.map(({ scenario }) => scenario)));
  });

  test.each(printed)('$name: stand in the report as h2load printed them', ({ name, lines }) => {
    const [, scenario, variant, phase] = /^(\S+)\/(\S+)(?: phase (\d))?$/.exec(name) ?? [];
    const of = results.find((one) => one.scenario === scenario) as Result;
    const row = (title: string): string[] => {
      const found = [finishTable(of), ...h2loadTables(of)].find(({ columns }) => columns[0]?.title === title);
      const label = phase === undefined || title === 'TLS' ? `${variant} published` : `${variant} ${phase} published`;
      return rowsOf(found as Table).find(([first = '']) => first.replaceAll(/ +/g, ' ') === label)?.slice(1) ?? [];
    };
    const line = (start: string): string => lines.find((one) => one.startsWith(start)) ?? '';
    const numbers = (start: string, pattern: RegExp): string[] => [...line(start).matchAll(pattern)].map((match) => Number(match[1]).toLocaleString('en-US'));

    const [, seconds = '', rps = '', bytes = ''] = /finished in (\S+), (\S+) req\/s, (\S+)$/.exec(line('finished in')) ?? [];
    expect(row('finished')).toEqual([asWeWrite(seconds), asWeWrite(rps), expect.stringMatching(/ %$/), asWeWrite(bytes)]);
    expect(row('requests')).toEqual([
      ...numbers('requests:', /(\d+) (?:done|succeeded)/g), ...numbers('requests:', /(\d+) (?:failed|errored)/g),
    ]);
    expect(row('status codes')).toEqual(numbers('status codes:', /(\d+) \dxx/g));
    const savings = /savings ([\d.]+)%/.exec(line('traffic:'))?.[1];
    const [total, headers, data] = [...line('traffic:').matchAll(/\((\d+)\)|(\d+) bytes/g)].map((match) => Number(match[1] ?? match[2]).toLocaleString('en-US'));
    expect(row('traffic')).toEqual([total, headers, `${savings} %`, data]);
    for (const [title, start] of [['time for request', 'time for request'], ['time for connect', 'time for connect'], ['time for 1st byte', 'time to 1st byte'], ['req/s per client', 'req/s']] as const) {
      const figures = line(start).slice(line(start).indexOf(':') + 1).trim().split(/ +/);
      expect(row(title), title).toEqual(figures.map(asWeWrite));
    }
    expect(row('TLS').slice(0, 2)).toEqual([line('TLS Protocol').split(': ')[1], line('Cipher').split(': ')[1]]);
    expect(line('Server Temp Key')).toContain(row('TLS')[2]);
  });
});

describe('published figures of wrk', () => {
  const printed = sectionsOf('000');
  const tables = wrkTables(wrkResult);

  /** wrk's "265.78us", "4.56GB", "96.66%" and "582269.87": SI's way of writing, and binary units by their name. */
  const asWeWrite = (text: string): string => text.replace(/^([\d.]+)(us|ms|s|%|[KMG]B)?$/, (_, value: string, unit?: string) => (
    unit === undefined ? Number(value).toLocaleString('en-US', { minimumFractionDigits: value.split('.')[1]?.length ?? 0 })
      : `${value} ${unit.replace('us', 'µs').replace(/([KMG])B/, '$1iB')}`
  ));

  test('of every wrk run of article 000 are there to compare with', () => {
    expect(printed.map(({ name }) => name)).toEqual(wrkResult.variants.map(({ name }) => `h2o-vs-nginx/${name}`));
  });

  test.each(printed)('$name: stand in the report as wrk printed them', ({ name, lines }) => {
    const row = (title: string): string[] => {
      const found = tables.find(({ columns }) => columns[0]?.title === title) as Table;
      return rowsOf(found).find(([first = '']) => first.replaceAll(/ +/g, ' ') === `${name.split('/')[1]} published`)?.slice(1) ?? [];
    };
    const text = lines.join('\n');
    const figures = (start: string): string[] => (new RegExp(`^ *${start} (.*)$`, 'm').exec(text)?.[1] ?? '').split(/ +/).map(asWeWrite);
    expect(row('Latency')).toEqual(figures('Latency'));
    expect(row('Req/Sec per thread')).toEqual(figures('Req/Sec'));
    const [, requests = '', time = '', read = ''] = /^ *(\d+) requests in (\S+), (\S+) read$/m.exec(text) ?? [];
    expect(row('total')).toEqual([...[requests, time].map(asWeWrite), ...figures('Requests/sec:'), asWeWrite(read), `${figures('Transfer/sec:')[0]}/s`]);
  });
});

describe('figures measured here, in wrk\'s lines', () => {
  const phaseOf = async (changes: Figures['phases']): Promise<Record<string, string[]>> => {
    const of = await h2Result('h2o-vs-nginx', { 'nginx-initial': { rps: [50_000], phases: changes ?? [] } });
    const here = wrkTables(of).map((table) => [table.columns[0]?.title, rowsOf(table).find(([name = '']) => name.endsWith('here'))?.slice(1) ?? []]);
    return Object.fromEntries(here) as Record<string, string[]>;
  };

  test('have units as wrk chooses them, percentiles, and errors only where there are some', async () => {
    const lines = await phaseOf([{
      requests: 500_000, seconds: 70, rps: 7142.857, bytes: { received: 980 * 1024 ** 2, headers: 0, headersDecoded: 0, body: 0, sent: 0 },
      latencyMs: latency(0.8499, 0.85, 61_000, { mean: 0.99, sd: 1200 }), perThreadRps: { min: 0, mean: 849.9, sd: 850, withinSd: 0.7, max: 1_200_000 },
      responses: { '2xx': 499_998, '3xx': 0, '4xx': 0, '5xx': 2 },
      errors: { connect: 0, tls: 0, read: 3, write: 0, timeout: 1, protocol: 0, total: 4 },
    }]);
    expect(lines).toEqual({
      Latency: ['0.99 ms', '1.20 s', '1.02 min', '80.00 %'],
      'Latency distribution': ['849.90 µs', '849.90 µs', '0.85 ms', '0.85 ms'],
      'Req/Sec per thread': ['849.90', '0.85k', '1.20M', '70.00 %'],
      total: ['500,000', '1.17 min', '7,142.86', '0.96 GiB', '14.00 MiB/s'],
      errors: ['0', '0', '3', '0', '1', '0', '2'],
    });
    expect(Object.keys(await phaseOf([{}]))).toEqual(['Latency', 'Latency distribution', 'Req/Sec per thread', 'total']);
  });

  test('leave out distributions over nothing', async () => {
    const lines = await phaseOf([{ latencyMs: noLatency, perThreadRps: noLatency }]);
    expect(lines['Latency']).toEqual([]);
    expect(lines['Req/Sec per thread']).toEqual([]);
  });
});
