// Every figure of the articles' tables and tool outputs is in a scenario, and every published figure of a scenario in its text. The texts
// are their authors' and not part of this repository: they are read where they lie beside the checkout.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { articlesOf, loadScenarios } from '../../lib/scenario/catalogue.ts';
import { projectRoot } from '../../lib/setup/paths.ts';

const folder = path.join(projectRoot, '../shared/articles');
const isThere = existsSync(folder);
if (!isThere) console.warn(`the figures are not held against the texts: there is no ${folder}`);
const textOf = (id: string) => {
  const file = readdirSync(folder).find((name) => name.startsWith(id)) ?? '';
  return readFileSync(path.join(folder, file), 'utf8').replaceAll(
    /(\d+) sec, (\d+) millisec and (\d+) microsec/g,
    (_, s, ms, us) => `${Number(s) * 1000 + Number(ms) + Number(us) / 1000}ms`,
  );
};

/** Lines of tables and of the tools' results. */
const results = [
  /^ +(Latency|Req \/ Sec) .*/,
  /^(Requests|Transfer) \/ sec.*/,
  /^ *\d+ requests in .*/,
  /^ *(finished in|requests:|status codes:|traffic:|time for|time to|req\/s).*/,
  /^\[.*\] .*/,
  /^ *(Request\/sec|Headers Traffic).*/,
  /^\d\S* +\| .*/,
  /^.* (なし|あり|-)$/,
  /^net\..*=.*/,
];
/** What of these lines is in no scenario, and why. */
const leftOut = [
  // h2load rounds the number in brackets that comes next.
  /[\d.]+MB (?=\()/g,
  // Vegeta's shares of the counts beside them.
  /(?<=\] +\d+ +)[\d.]+%/g,
  // Words and names of the tools and settings.
  /1st byte|ipv4|100ms;|[2-5]xx/g,
];

const units: Readonly<Record<string, number>> = {
  us: 1e-3,
  µs: 1e-3,
  ms: 1,
  s: 1000,
  k: 1000,
  kbyte: 1024,
  MB: 1024 ** 2,
  GB: 1024 ** 3,
};
const digits = (value: number) => Number(value.toPrecision(9));

/** Each number as it may stand in a scenario: as written, and in ms and bytes; the headers of 003 are kilobytes. */
function numbersIn(text: string): { written: string; values: number[] }[] {
  const kilo = text.startsWith('Headers Traffic') ? 1000 : 1;
  return [...text.matchAll(/(?<![\w.])(\d[\d,]*(?:\.\d+)?) ?(us|µs|ms|s|kbyte|k|MB|GB)?/g)].map(
    ([written, figure = '', unit = '']) => {
      const value = Number(figure.replaceAll(',', ''));
      return { written, values: [value, kilo * value * (units[unit] ?? 1)].map(digits) };
    },
  );
}

/** The numbers of a value, each as it may stand in a text: seconds as ms, too, shares as percent. */
function leaves(value: unknown, key = ''): number[][] {
  if (typeof value === 'string') return numbersIn(value).map(({ values }) => values);
  if (typeof value !== 'number')
    return Object.entries(value ?? {}).flatMap(([name, one]) => leaves(one, name));
  if (/seconds$/i.test(key)) return [[value, value * 1000].map(digits)];
  return [[digits(key.endsWith('Share') ? value * 100 : value)]];
}

const scenarios = await loadScenarios();

describe.skipIf(!isThere).each(articlesOf(scenarios).map((one) => [one.id, one] as const))(
  'article %s',
  (id, article) => {
    const own = scenarios.filter((one) => one.article?.id === id);

    test('has no figure in its tables and outputs that no scenario has', () => {
      const settings = readFileSync(
        path.join(projectRoot, 'server-configs/sysctl/article.conf'),
        'utf8',
      );
      const known = new Set([own, article, settings].flatMap((one) => leaves(one).flat()));
      const lines = textOf(id)
        .split('\n')
        .filter((line) => results.some((one) => one.test(line)));
      expect(lines.length).toBeGreaterThan(5);
      const missing = lines.flatMap((line) => {
        const kept = leftOut.reduce((rest, pattern) => rest.replaceAll(pattern, ''), line);
        return numbersIn(kept)
          .filter(({ values }) => !values.some((one) => known.has(one)))
          .map(({ written }) => `${written} of ${line}`);
      });
      expect(missing).toEqual([]);
    });

    test('has every figure that is published of it', () => {
      const printed = new Set(numbersIn(textOf(id)).flatMap(({ values }) => values));
      for (const { name, variants } of own)
        for (const variant of variants)
          for (const [key, figures] of Object.entries(variant.published ?? {})) {
            const wrong = leaves(figures, key).filter(
              (one) => !one.some((value) => printed.has(value)),
            );
            expect.soft(wrong, `${name}/${variant.name} ${key}`).toEqual([]);
          }
    });
  },
);
