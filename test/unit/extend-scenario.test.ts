// A scenario based on another one.
import { expect, test } from 'vitest';
import { extendScenario, nginx, wrk, type Scenario } from '../../lib/scenario/index.ts';
import base from '../../scenarios/nginx-open-file-cache.ts';
import small from '../../scenarios/http1-vs-h2-small-file.ts';

const page = { docroot: './www', path: '/own.html', bodyBytes: 5 };
const namesOf = ({ variants }: Scenario) => variants.map(({ name }) => name);
const publishedIn = ({ variants }: Scenario) =>
  variants.filter(({ published }) => published !== undefined).map(({ name }) => name);
const configsOf = ({ variants }: Scenario) =>
  variants.map(({ server }) =>
    typeof server === 'object' && 'config' in server ? server.config : [],
  );

test('with only a new name, everything is kept', () => {
  expect(extendScenario(base, { name: 'own' })).toEqual({ ...base, name: 'own' });
  expect(publishedIn(base)).toEqual(['workers', 'open-file-cache']);
});

test.each<[string, Omit<Parameters<typeof extendScenario>[1], 'name'>]>([
  ['page', { page }],
  ['load', { load: wrk('-c 7 -d 1') }],
  ['phases', { phases: { count: 2, pauseSeconds: 1 } }],
  ['limit', { within: { metric: 'p99', ms: 5 } }],
  ['config', { configs: { nginx: ['tls'] } }],
])("with a different %s, the article's figures and facts are left out", (_, changes) => {
  const extended = extendScenario(base, { name: 'own', ...changes });
  expect(publishedIn(extended)).toEqual([]);
  expect(extended).not.toHaveProperty('article');
  expect(extended).not.toHaveProperty('footnotes');
  expect(namesOf(extended)).toEqual(namesOf(base));
});

test('config layers are added to those of the server', () => {
  const extended = extendScenario(base, { name: 'own', configs: { nginx: ['tls'], h2o: ['h2'] } });
  expect(configsOf(extended)).toEqual(configsOf(base).map((config) => [...config, 'tls']));
});

test('variants replace those with the same name; new ones are appended', () => {
  const cached = { name: 'open-file-cache', server: nginx(['base'], { workers: 1 }) };
  const third = { name: 'third', server: nginx(['base'], { workers: 1 }) };
  const extended = extendScenario(base, { name: 'own', variants: [third, cached] });
  expect(namesOf(extended)).toEqual([...namesOf(base), 'third']);
  expect(extended.variants[1]).toEqual(cached);
  // The other variants are still the article's.
  expect(publishedIn(extended)).toEqual(['workers']);
  expect(extended.article).toBe(base.article);
});

test('rows that are published only are removed, with their comparisons', () => {
  const gone = small.variants.filter(({ server }) => typeof server === 'string');
  expect(gone).not.toEqual([]);
  const [removed] = gone as [(typeof gone)[0]];
  const paired = {
    ...small,
    alsoCompare: [
      { variant: removed.name, against: small.variants[0]?.name ?? '' },
      ...(small.alsoCompare ?? []),
    ],
  };
  const extended = extendScenario(paired, { name: 'own', page, load: small.load });
  expect(extended.variants.every(({ server }) => typeof server === 'object')).toBe(true);
  expect(extended.alsoCompare ?? []).toEqual(small.alsoCompare ?? []);
});

test('a variant with a load of its own keeps load and figures', () => {
  const [first, ...others] = base.variants as [Scenario['variants'][0], Scenario['variants'][0]];
  const original = { ...base, variants: [{ ...first, load: base.load }, ...others] };
  const extended = extendScenario(original, { name: 'own', load: wrk('-c 7 -d 1') });
  expect(publishedIn(extended)).toEqual(['workers']);
  expect(extended.variants[0]).toEqual(original.variants[0]);
});

test('a user scenario without an article keeps its footnotes', () => {
  const { article: _, ...rest } = base;
  const variants = base.variants.map(({ published: __, ...variant }) => variant);
  const original = { ...rest, variants, footnotes: ['of my own'] };
  expect(extendScenario(original, { name: 'x', page }).footnotes).toEqual(['of my own']);
});

test('invalid changes are refused like in any scenario', () => {
  expect(() => extendScenario(base, { name: 'own', page: { ...page, path: 'x' } })).toThrow(
    'scenario own: page: path "x" has to begin with /',
  );
});
