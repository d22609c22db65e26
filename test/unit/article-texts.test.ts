// Every figure in the articles' tables and tool outputs is in a scenario, and every published figure in a scenario is in the
// article. The articles are copyrighted and not part of this repository; the tests read them from a folder next to the checkout.
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

/** Lines of tables and tool outputs. */
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
/** Numbers on these lines that no scenario has. */
const leftOut = [
  // h2load's rounded form of the number in brackets after it.
  /[\d.]+MB (?=\()/g,
  // Vegeta's percentages of the counts next to them.
  /(?<=\] +\d+ +)[\d.]+%/g,
  // Names that contain digits.
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

/** Each number in the forms that a scenario may use: as written, and in ms or bytes. Article 003's headers are in kilobytes. */
function numbersIn(text: string): { written: string; values: number[] }[] {
  const kilo = text.startsWith('Headers Traffic') ? 1000 : 1;
  return [...text.matchAll(/(?<![\w.])(\d[\d,]*(?:\.\d+)?) ?(us|µs|ms|s|kbyte|k|MB|GB)?/g)].map(
    ([written, figure = '', unit = '']) => {
      const value = Number(figure.replaceAll(',', ''));
      return { written, values: [value, kilo * value * (units[unit] ?? 1)].map(digits) };
    },
  );
}

/** All numbers in a value, in the forms that an article may use: seconds also as ms, shares as percent. */
function leaves(value: unknown, key = ''): number[][] {
  if (typeof value === 'string') return numbersIn(value).map(({ values }) => values);
  if (typeof value !== 'number')
    return Object.entries(value ?? {}).flatMap(([name, inner]) => leaves(inner, name));
  if (/seconds$/i.test(key)) return [[value, value * 1000].map(digits)];
  return [[digits(key.endsWith('Share') ? value * 100 : value)]];
}

const scenarios = await loadScenarios();

describe
  .skipIf(!isThere)
  .each(articlesOf(scenarios).map((article) => [article.id, article] as const))(
  'article %s',
  (id, article) => {
    const ofArticle = scenarios.filter((scenario) => scenario.article?.id === id);

    test('has all figures of tables and tool outputs in a scenario', () => {
      const settings = readFileSync(
        path.join(projectRoot, 'server-configs/sysctl/article.conf'),
        'utf8',
      );
      const known = new Set(
        [ofArticle, article, settings].flatMap((source) => leaves(source).flat()),
      );
      const lines = textOf(id)
        .split('\n')
        .filter((line) => results.some((pattern) => pattern.test(line)));
      expect(lines.length).toBeGreaterThan(5);
      const missing = lines.flatMap((line) => {
        const kept = leftOut.reduce((rest, pattern) => rest.replaceAll(pattern, ''), line);
        return numbersIn(kept)
          .filter(({ values }) => !values.some((value) => known.has(value)))
          .map(({ written }) => `${written} of ${line}`);
      });
      expect(missing).toEqual([]);
    });

    test('contains every published figure of the scenarios', () => {
      const printed = new Set(numbersIn(textOf(id)).flatMap(({ values }) => values));
      for (const { name, variants } of ofArticle)
        for (const variant of variants)
          for (const [key, figures] of Object.entries(variant.published ?? {})) {
            const wrong = leaves(figures, key).filter(
              (forms) => !forms.some((value) => printed.has(value)),
            );
            expect.soft(wrong, `${name}/${variant.name} ${key}`).toEqual([]);
          }
    });
  },
);
