// The published rows of the report against the very lines that the articles printed.
import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import type { Result } from '../../lib/result/result.ts';
import { articleParts, loadPart } from '../../lib/report/run-tables.ts';
import { textOf } from '../../lib/report/table.ts';
import { h2Result } from '../fixtures/h2-result.ts';

const results = [
  await h2Result('h2o-vs-nginx-h2', { nginx: { rps: [20_000] }, h2o: { rps: [30_000] } }),
  await h2Result('nghttpd-index', { nghttpd: { rps: [80_000] } }),
  await h2Result('nghttpd-img', { 'nghttpd-1024': { rps: [800], phases: [{}, {}, {}] } }),
];
const wrkResult = await h2Result(
  'h2o-vs-nginx',
  Object.fromEntries(sectionsOf('000').map(({ name }) => [name.split('/')[1], { rps: [50_000] }])),
);
/** The published row of a table, by how it begins. */
function publishedRow(of: Result, title: string, label: string): string[] {
  const tables = [...articleParts(of), ...loadPart(of)].flatMap((part) => part.tables);
  const rows =
    tables.find(({ columns }) => columns[0]?.title === title)?.rows.map((row) => row.map(textOf)) ??
    [];
  return rows.find(([first = '']) => first.replaceAll(/ +/g, ' ') === label)?.slice(1) ?? [];
}

/** What each run of an article printed, under the variant's name. */
function sectionsOf(article: string): { name: string; lines: string[] }[] {
  const text = readFileSync(new URL(`../fixtures/article-${article}.md`, import.meta.url), 'utf8');
  return text
    .split(/^## /m)
    .slice(1)
    .map((section) => ({
      name: section.slice(0, section.indexOf('\n')),
      lines: section.split('\n'),
    }));
}

describe('published figures of h2load', () => {
  const printed = ['001', '002']
    .flatMap(sectionsOf)
    .filter(({ lines }) => lines.some((line) => line.startsWith('finished in')));

  /** "516us" is "516 µs", "85.52%" is "85.52 %", "2.35MB/s" is "2.35 MiB/s": SI's way of writing, and binary units by their name. */
  const asWeWrite = (text: string): string =>
    text.replace(/^([\d.]+)(us|ms|s|%|MB\/s)?$/, (_, value: string, unit?: string) => {
      const grouped = value.replace(/\B(?=(\d{3})+(?!\d)(?=.*\.))/g, ',');
      return unit === undefined
        ? grouped
        : `${value} ${unit.replace('us', 'µs').replace('MB', 'MiB')}`;
    });

  test('of every h2load run of articles 001 and 002 are there to compare with', () => {
    expect(printed.map(({ name }) => name.split('/')[0])).toEqual(
      expect.arrayContaining(results.map(({ scenario }) => scenario)),
    );
  });

  test.each(printed)('$name: stand in the report as h2load printed them', ({ name, lines }) => {
    const [, scenario, variant, phase] = /^(\S+)\/(\S+)(?: phase (\d))?$/.exec(name) ?? [];
    const of = results.find((one) => one.scenario === scenario) as Result;
    const row = (title: string): string[] =>
      publishedRow(
        of,
        title,
        phase === undefined ? `${variant} published` : `${variant} ${phase} published`,
      );
    const line = (start: string): string => lines.find((one) => one.startsWith(start)) ?? '';

    const [, seconds = '', rps = '', bytes = ''] =
      /finished in (\S+), (\S+) req\/s, (\S+)$/.exec(line('finished in')) ?? [];
    expect(row(phase === undefined ? 'load' : 'variant, phase')).toEqual([
      asWeWrite(seconds),
      asWeWrite(rps),
      expect.stringMatching(/ %$/),
      asWeWrite(bytes),
    ]);
    const savings = /savings ([\d.]+)%/.exec(line('traffic:'))?.[1];
    const [total, headers, data] = [...line('traffic:').matchAll(/\((\d+)\)|(\d+) bytes/g)].map(
      (match) => Number(match[1] ?? match[2]).toLocaleString('en-US'),
    );
    expect(row('traffic')).toEqual([
      Number(/(\d+) total/.exec(line('requests:'))?.[1]).toLocaleString('en-US'),
      total,
      headers,
      `${savings} %`,
      data,
    ]);
    for (const [title, start] of [
      ['time of a request', 'time for request'],
      ['time to connect', 'time for connect'],
      ['time to first byte', 'time to 1st byte'],
      ['requests/s of a connection', 'req/s'],
    ] as const) {
      const figures = line(start)
        .slice(line(start).indexOf(':') + 1)
        .trim()
        .split(/ +/);
      expect(row(title), title).toEqual(figures.map(asWeWrite));
    }
  });
});

describe('published figures of wrk', () => {
  const printed = sectionsOf('000');

  /** wrk's "265.78us", "59.04k", "4.56GB", "96.66%" and "582269.87": SI's way of writing, without thousands of its own. */
  const asWeWrite = (text: string): string =>
    text.replace(
      /^([\d.]+)(us|k|[KMG]B)?(.*)$/,
      (whole: string, value: string, unit = '', rest = '') => {
        const number = Number(value);
        if (unit === 'us') return `${Math.round(number)} µs`;
        if (rest === 'ms' && number < 1) return `${number * 1000} µs`;
        if (unit === 'k')
          return (1000 * number).toLocaleString('en-US', { minimumFractionDigits: 2 });
        if (unit !== '') return `${value} ${unit.replace('B', 'iB')}`;
        return rest === ''
          ? number.toLocaleString('en-US', {
              minimumFractionDigits: value.split('.')[1]?.length ?? 0,
            })
          : whole.replace(/(ms|s|%)$/, ' $1');
      },
    );

  test('of every wrk run of article 000 are there to compare with', () => {
    expect(printed.map(({ name }) => name)).toEqual(
      wrkResult.variants.map(({ name }) => `h2o-vs-nginx/${name}`),
    );
  });

  test.each(printed)('$name: stand in the report as wrk printed them', ({ name, lines }) => {
    const row = (title: string): string[] =>
      publishedRow(wrkResult, title, `${name.split('/')[1]} published`);
    const text = lines.join('\n');
    const figures = (start: string): string[] =>
      (new RegExp(`^ *${start} (.*)$`, 'm').exec(text)?.[1] ?? '').split(/ +/).map(asWeWrite);
    const distribution = (start: string): (string | undefined)[] => {
      const [mean, sd, max, within] = figures(start);
      return ['', max, mean, sd, within];
    };
    expect(row('time of a request')).toEqual(distribution('Latency'));
    expect(row('requests/s of a thread')).toEqual(distribution('Req/Sec'));
    const [, requests = '', time = '', read = ''] =
      /^ *(\d+) requests in (\S+), (\S+)GB read$/m.exec(
        text.replace(
          /([\d.]+)MB read/,
          (_, megabytes: string) => `${Number(megabytes) / 1024}GB read`,
        ),
      ) ?? [];
    expect(row('load')).toEqual([
      asWeWrite(time),
      ...figures('Requests/sec:'),
      '',
      `${figures('Transfer/sec:')[0]}/s`,
    ]);
    expect(row('traffic').slice(0, 2)).toEqual([
      asWeWrite(requests),
      Math.round(Number(read) * 1024 ** 3).toLocaleString('en-US'),
    ]);
  });
});
