// The published rows of the report against the very lines that the articles printed.
import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import type { Result } from '../../lib/runner/result.ts';
import { finishTable, lineTables } from '../../lib/report/h2load.ts';
import { textOf, type Table } from '../../lib/report/table.ts';
import { h2Result } from '../fixtures/h2-result.ts';

const results = [
  await h2Result('h2o-vs-nginx-h2', { nginx: { rps: [20_000] }, h2o: { rps: [30_000] } }),
  await h2Result('nghttpd-index', { nghttpd: { rps: [80_000] } }),
  await h2Result('nghttpd-img', { 'nghttpd-1024': { rps: [800], phases: [{}, {}, {}] } }),
];
const rowsOf = ({ rows }: Table): string[][] => rows.map((row) => row.map(textOf));

describe('published figures', () => {
  const printed = ['001', '002'].flatMap((article) => {
    const text = readFileSync(new URL(`../fixtures/article-${article}.md`, import.meta.url), 'utf8');
    return text.split(/^## /m).slice(1).map((section) => ({ name: section.slice(0, section.indexOf('\n')), lines: section.split('\n') }));
  }).filter(({ lines }) => lines.some((line) => line.startsWith('finished in')));

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
      const found = [finishTable(of), ...lineTables(of)].find(({ columns }) => columns[0]?.title === title);
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
