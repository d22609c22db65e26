// The articles' claims, and whether they hold.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { decideClaim, decidingRuns, keyOfResult } from '../../lib/report/claims.ts';
import { ownFigures } from '../../lib/report/own-figures.ts';
import { withFindings } from '../../lib/report/finding-words.ts';
import { articleMarkdown } from '../../lib/report/article.ts';
import { articlePage } from '../../lib/report/html/article-page.ts';
import type { MeasuredVariant } from '../../lib/analysis/verdict.ts';
import { byName } from '../../lib/present.ts';
import { wireNames } from '../../lib/result/load-result.ts';
import {
  counterNames,
  type Comparison,
  type Result,
  type VariantResult,
} from '../../lib/result/result.ts';
import { projectRoot } from '../../lib/setup/paths.ts';
import { articlesOf, loadScenarios } from '../../lib/scenario/catalogue.ts';
import { defineArticle, type Claim, type ClaimRest } from '../../lib/scenario/article.ts';
import { openFileCache, result, workers } from '../fixtures/result.ts';

const scenarios = await loadScenarios();
const articles = articlesOf(scenarios);
const scenarioOf = (name: string) => scenarios.find((scenario) => scenario.name === name);

test('there are five articles, and each names its scenarios', () => {
  expect(articles.map(({ id }) => id)).toEqual(['000', '001', '002', '003', '004']);
  for (const { id, scenarios: names = [] } of articles) {
    const ofArticle = scenarios.filter(({ article }) => article?.id === id).map(({ name }) => name);
    expect([...names].sort()).toEqual(ofArticle.sort());
  }
});

/** The texts of the articles, beside the project. */
const texts = join(projectRoot, '../shared/articles');

test.skipIf(!existsSync(texts)).each(articles)('each quote of $id is in the text', (article) => {
  const [file = ''] = readdirSync(texts).filter((name) => name.startsWith(article.id));
  const text = readFileSync(join(texts, file), 'utf8').replaceAll(/\s+/g, ' ');
  const { claims = [], source = '' } = article;
  expect(text).toContain(source.replace(/; no date in it.*/, ''));
  expect(defineArticle(article, text)).toBe(article);
  for (const { place } of claims) expect(text).toContain(place);
});

const rests = articles.flatMap(({ claims = [] }) => claims.flatMap((claim) => claim.rests));

test.each(rests)('$variant against $against is a comparison in $scenario', (rest) => {
  const scenario = scenarioOf(rest.scenario);
  const variants = scenario?.variants ?? [];
  const named = (name: string) => variants.find((variant) => variant.name === name);
  const measuredVariant = named(rest.variant);
  expect([measuredVariant, named(rest.against)]).not.toContain(undefined);
  const baseline =
    measuredVariant?.against === undefined ? variants[0]?.name : measuredVariant.against;
  const pairs = [{ variant: rest.variant, against: baseline }, ...(scenario?.alsoCompare ?? [])];
  if (rest.is !== undefined)
    expect(pairs).toContainEqual({ variant: rest.variant, against: rest.against });
});

const measured = result([workers, openFileCache]);
type Claimed = NonNullable<ClaimRest['is']>;
const rest: ClaimRest = { scenario: 's', variant: openFileCache.name, against: workers.name };
/** The comparison with this verdict; the interval is 2 % on both sides of the ratio. */
const withVerdict = (verdict: Comparison['verdict'], ratio = 1.33): Result => {
  const comparisons = measured.comparisons.map((comparison) => ({
    ...comparison,
    verdict,
    ratio,
    ci95: [ratio / 1.02, ratio * 1.02] as [number, number],
    why: 'too few',
    roundsNeeded: verdict === 'inconclusive' ? 16 : null,
  }));
  return { ...measured, comparisons };
};
const claimOf = (...says: Partial<ClaimRest>[]) => ({
  quote: 'its words',
  place: 'heading',
  text: 't',
  figures: 'f',
  rests: says.map((changes) => ({ ...rest, ...changes })),
});
const decideIn = (of: Result, ...says: Partial<ClaimRest>[]) =>
  decideClaim(claimOf(...says), {}, new Map([['s', of]]));
const decided = (verdict: Comparison['verdict'], ...claimed: Claimed[]) =>
  decideIn(withVerdict(verdict), ...claimed.map((is) => ({ is }))).state;

test.each<[Comparison['verdict'], number, Claimed, string]>([
  ['faster', 1.33, 'faster', 'holds here'],
  ['same', 1.001, 'faster', 'does not hold here'],
  ['slower', 0.8, 'faster', 'opposite here'],
  ['faster', 1.33, 'slower', 'opposite here'],
  ['inconclusive', 1.01, 'faster', 'not decided'],
  ['none', 1.33, 'faster', 'not decided'],
  // Two sides are the same if the interval is within 5 %, whatever else the verdict is.
  ['same', 1.001, 'same', 'holds here'],
  ['faster', 1.025, 'same', 'holds here'],
  ['inconclusive', 1.01, 'same', 'holds here'],
  ['faster', 1.04, 'same', 'not decided'],
  ['faster', 1.33, 'same', 'does not hold here'],
  ['slower', 0.8, 'same', 'does not hold here'],
  ['same', 1.001, 'not slower', 'holds here'],
  ['slower', 0.975, 'not slower', 'holds here'],
  ['inconclusive', 0.95, 'not slower', 'not decided'],
  ['slower', 0.8, 'not slower', 'opposite here'],
  ['faster', 1.33, 'not faster', 'opposite here'],
  ['slower', 0.8, 'not faster', 'holds here'],
])('measured %s at %s, claimed %s: %s', (verdict, ratio, is, state) => {
  expect(decideIn(withVerdict(verdict, ratio), { is }).state).toBe(state);
});

test('what is the same by its verdict is so for an article of that resolution', () => {
  // The interval of the verdict "same" is narrower than the one that is shown.
  const seen = { verdict: 'same' as const, ratio: 0.997, ci95: [0.988, 1.006] as [number, number] };
  const same = {
    ...measured,
    comparisons: measured.comparisons.map((row) => ({ ...row, ...seen })),
  };
  const decide = (resolution: number) =>
    decideClaim(claimOf({ is: 'same' }), { resolution }, new Map([['s', same]])).state;
  expect([decide(0.01), decide(0.005)]).toEqual(['holds here', 'not decided']);
});

test('a figure that the article counts as none says so', () => {
  expect(decideIn(withVerdict('faster', 1.025), { is: 'same' }).seen).toMatch(
    / faster, within the article's 5\.0 %$/,
  );
  expect(decideIn(withVerdict('inconclusive', 1.01), { is: 'not faster' }).seen).not.toContain(
    'too few',
  );
});

test.each<[Partial<ClaimRest>, string]>([
  [{ is: 'faster' }, 'faster, not final, since the run was ended'],
  [{ moreSucceed: true }, '% succeeded, not final, since the run was ended'],
])('a run that was ended decides nothing, whatever it found: %j', (says, seen) => {
  const ended = { ...withVerdict('faster'), state: 'partial' as const };
  expect(decideIn(ended, says)).toMatchObject({
    state: 'not decided',
    seen: expect.stringContaining(seen),
  });
});

const sides = [workers.name, openFileCache.name] as const;

test.each<[string, Result, Partial<ClaimRest>, number | undefined]>([
  ['an open one', withVerdict('inconclusive'), { is: 'faster' }, 16],
  ['a decided one', withVerdict('faster'), { is: 'faster' }, undefined],
  ['one that the machine cannot decide', withVerdict('none'), { is: 'faster' }, undefined],
])('the rounds that decide %s', (_, of, says, rounds) => {
  const runs = decidingRuns(claimOf(says), {}, new Map([['s', of]]));
  const run = { scenario: 's', variants: sides, rounds };
  expect(runs).toEqual(rounds === undefined ? [] : [run]);
});

test('whether two sides are the same is decided once the interval is on one side of the edge', () => {
  // A standard deviation of 1 % around +4 %: an edge at +5 % is a fifth as far away as one at +10 %.
  const roundRatios = [1.03, 1.05, 1.03, 1.05, 1.04];
  const comparisons = withVerdict('faster', 1.04).comparisons.map((comparison) => ({
    ...comparison,
    roundRatios,
    ci95: [1.02, 1.12] as [number, number],
  }));
  const neededFor = (resolution: number) => {
    const results = new Map([['s', { ...measured, comparisons }]]);
    return decidingRuns(claimOf({ is: 'same' }), { resolution }, results)[0]?.rounds ?? 0;
  };
  expect(neededFor(0.05)).toBeGreaterThan(neededFor(0.1));
});

test('a side that runs by its name only is run for its claim; its result decides', () => {
  const claim = claimOf({ is: 'faster', variant: 'by-name' });
  const results = new Map([['s', measured]]);
  const variants = [workers.name, 'by-name'];
  expect(decidingRuns(claim, {}, results)).toEqual([{ scenario: 's', variants }]);
  const open = withVerdict('inconclusive');
  const decider = { ...withVerdict('faster'), scenario: 's' };
  const both = new Map([
    ['s', open],
    [keyOfResult('s', sides), decider],
  ]);
  const about = claimOf({ is: 'faster' });
  expect(decideClaim(about, {}, both).state).toBe('holds here');
  const article = { id: 'x', title: 't', date: '2017', claims: [about] };
  const markdown = articleMarkdown({ article, results: both, missing: [] });
  expect(markdown).toContain(`: ${workers.name} and ${openFileCache.name} alone`);
});

test('a size holds if the interval has it, widened by the resolution of the article', () => {
  const stateOf = (about: number, resolution?: number) => {
    const of = resolution === undefined ? {} : { resolution };
    const results = new Map([['s', withVerdict('faster', 1.33)]]);
    return decideClaim(claimOf({ is: 'faster', about }), of, results).state;
  };
  const offSize = 'holds here, but not the size';
  expect([1.25, 1.42, 1.2, 1.46].map((about) => stateOf(about))).toEqual([
    'holds here',
    'holds here',
    offSize,
    offSize,
  ]);
  expect([stateOf(1.25, 0.01), stateOf(1.31, 0.01)]).toEqual([offSize, 'holds here']);
});

test('a claim holds if all of its comparisons agree', () => {
  expect(decided('faster', 'faster', 'not slower')).toBe('holds here');
  expect(decided('faster', 'faster', 'same')).toBe('does not hold here');
  expect(decided('faster', 'slower', 'same')).toBe('opposite here');
});

const changed = (name: string, changes: Partial<VariantResult>): Result => ({
  ...measured,
  variants: measured.variants.map((variant) =>
    variant.name === name ? { ...variant, ...changes } : variant,
  ),
});

test('header bytes per request decide a claim on headers', () => {
  const { traffic } = measured.variants[1] as VariantResult;
  const { bytes, requests } = traffic ?? expect.fail();
  const withHeaders = (perRequest: number) =>
    changed(openFileCache.name, {
      traffic: { ...traffic, requests, bytes: { ...bytes, headers: perRequest * requests } },
    } as Partial<VariantResult>);
  const state = (perRequest: number, headersAbout: number) =>
    decideIn(withHeaders(perRequest), { headersAbout }).state;
  expect(decideIn(withHeaders(119), { headersAbout: 0.49 })).toEqual({
    state: 'holds here',
    seen: 'open-file-cache has 119.00 header bytes per request, workers 238.00: 50 %',
  });
  expect(state(119, 1 / 15)).toBe('holds here, but not the size');
  expect(state(235, 0.5)).toBe('does not hold here');
  expect(state(300, 0.5)).toBe('opposite here');
});

test('a claim on reliability compares the shares that succeed', () => {
  const failing = changed(workers.name, { successRatio: 0.15386 });
  const state = (of: Result) => decideIn(of, { moreSucceed: true }).state;
  expect(state(measured)).toBe('does not hold here');
  expect(state(changed(openFileCache.name, { successRatio: 0.5 }))).toBe('opposite here');
  expect(decideIn(failing, { moreSucceed: true })).toEqual({
    state: 'holds here',
    seen: 'open-file-cache 100 %, workers 15.38 % succeeded',
  });
});

test('what a claim depends on stands before what was seen', () => {
  const claim = { ...claimOf({ is: 'faster' }), condition: 'with a queue of 1,000 packets' };
  expect(decideClaim(claim, {}, new Map([['s', measured]])).seen).toMatch(
    /^with a queue of 1,000 packets: open-file-cache against workers: /,
  );
});

test('an undecided claim gives the reason', () => {
  const gone = changed(openFileCache.name, { publishedOnly: 'its protocol is gone' });
  expect(decideIn(gone, { is: 'faster' })).toEqual({
    state: 'cannot be run',
    seen: 'open-file-cache: its protocol is gone',
  });
  expect(decideIn(measured, { is: 'faster', variant: 'other' }).seen).toBe(
    'other is run by its name only: npm run scenario -- s --variants other,workers',
  );
  expect(decideIn(measured, { packetsAbout: 1 }).seen).toContain('were not seen');
  expect(decideIn(withVerdict('inconclusive'), { is: 'faster' }).seen).toMatch(
    / inconclusive \(about 16 rounds would probably decide\)$/,
  );
  const lacks = ['s: nghttpd is missing'];
  expect(
    decideClaim(claimOf({ is: 'same', variant: 'other' }), {}, new Map([['s', measured]]), lacks)
      .seen,
  ).toBe('other was not run: nghttpd is missing');
  const none = changed(openFileCache.name, { rounds: [] });
  const failed = new Map([['s', none]]);
  expect(decideClaim(claimOf({ is: 'same' }), {}, failed, ['s: openssl is missing']).seen).toBe(
    'open-file-cache was not measured: openssl is missing',
  );
  const notRun = (...missing: string[]) =>
    decideClaim(claimOf({ is: 'same' }), {}, new Map(), missing).seen;
  expect(notRun('s: has no TLS')).toBe('s was not run: has no TLS');
  expect(notRun()).toBe('s was not run');
});

test('a claim without figures in the article is not compared with them', () => {
  const published = new Map([['s', measured]]);
  expect(ownFigures(claimOf({ is: 'slower' }), {}, published)).toEqual([
    { text: '+12 %', agrees: false },
  ]);
  expect(ownFigures(claimOf({ is: 'slower', unpublished: true }), {}, published)).toEqual([]);
  expect(ownFigures(claimOf({ is: 'slower' }), {}, new Map())).toEqual([]);
});

/** A result with an article's figures of this scenario. */
const printed = (scenario: string) => {
  const variants = (scenarioOf(scenario)?.variants ?? []).map(({ name, published = null }) => ({
    ...(measured.variants[0] as VariantResult),
    name,
    published,
  }));
  return new Map([[scenario, { ...measured, variants }]]);
};

test('a claim on latency is compared with the histogram in the article', () => {
  const [, { claims: [, steadier] = [] } = {}] = articles;
  expect(ownFigures(steadier as Claim, {}, printed('h2o-vs-nginx-h2-rate'))).toEqual([
    { text: 'p99 1–2 ms against over 5 ms', agrees: true },
  ]);
});

test('a claim is compared with the figures in the article', () => {
  const results = printed('http1-vs-h2-small-file');
  const [, , , { claims = [] } = {}] = articles;
  expect(claims.map((claim) => ownFigures(claim, {}, results))).toEqual([
    [{ text: '2.83 times', agrees: true }],
    [{ text: '+74 %, not 2 times', agrees: false }],
    [{ text: '1/15.6', agrees: true }],
    [{ text: '1/55.3, not 1/45', agrees: false }],
    [{ text: '1/3.5, not 1/3', agrees: false }],
    [],
    [],
  ]);
});

test('a claim without comparisons is refused', () => {
  const article = { id: 'x', title: 't', date: '2017' };
  const claims = [{ ...claimOf(), text: 'it is fast', rests: [rest] }];
  expect(() => defineArticle({ ...article, claims })).toThrow(
    'article x: the claim "it is fast" rests on a comparison that claims nothing',
  );
});

test('the page shows the claims, both machines and the tables', async () => {
  const article = {
    id: 'x',
    title: 'A <b> title',
    date: '2017',
    machine: { servers: 'nginx 1.8.0' },
    claims: [{ ...claimOf({ is: 'faster' }), text: 'it is *faster*', figures: '12 %' }],
  };
  const noted = { ...measured, warnings: ['quick run with short rounds'] };
  const run = { article, results: new Map([['s', noted]]), missing: ['t: has no TLS'] };
  const markdown = articleMarkdown(run);
  for (const text of [
    '# A \\<b> title (2017)',
    '| it is \\*faster\\* | holds here | 12 % | ',
    '| programs | nginx 1.8.0 | ',
    't: has no TLS',
    '| open-file-cache |',
    ': 6 rounds, ',
    'Note: quick run with short rounds',
    '1 of 1 decided claim holds here.',
  ])
    expect(markdown).toContain(text);
  const html = await articlePage(run, () => []);
  expect(html).toContain('A &lt;b&gt; title (2017)');
  for (const text of ['“its words” (heading)', ' · 6 rounds, ', 'Note: quick run'])
    expect(html).toContain(text);
  expect(html).toContain('<dt>open-file-cache</dt>');
  expect(html).toContain('<span>1.00 here</span>');
  // Its effect as a bar with interval, and that of the article.
  expect(html).toMatch(
    /<strong>holds here<\/strong>: it is \*faster\*<\/div><div class="bar".*<i style=.*<b style=.*<u style=/,
  );
});

test('the Markdown has no notes on latencies that it does not show', () => {
  const late = {
    code: 'late-reads',
    variant: workers.name,
    latencyMs: 2,
    lateMs: 1,
    waitedShare: 0,
  } as const;
  const noted = withFindings(measured, [late], {});
  expect(noted.warnings.join()).toMatch(/half or more of its p99 .* is the generator's/);
  const article = { id: 'x', title: 't', date: '2017' };
  const shown = (changes: Partial<Result>) =>
    articleMarkdown({ article, results: new Map([['s', { ...noted, ...changes }]]), missing: [] });
  expect(shown({})).not.toContain("is the generator's");
  const byTail = noted.comparisons.map((pair) => ({ ...pair, metric: 'p99' as const }));
  expect(shown({ comparisons: byTail })).toContain("is the generator's");
});

test('the page says why a claim is open and what has a part, without noise of sums', async () => {
  // Sums of equal numbers differ in their last digits.
  const counts = (round: number) => ({
    ...byName([...counterNames, ...wireNames], () => 0.1 + 0.2 + round * 1e-17),
    readBytes: round % 2 === 0 ? 0.3 : 0.1 + 0.2,
  });
  const withCounts = (variant: MeasuredVariant): MeasuredVariant => ({
    ...variant,
    rounds: variant.rounds.map((round) => ({
      ...round,
      phases: round.phases.map((phase) => ({
        ...phase,
        inFlight: variant.name === 'workers' ? 100 : 0,
        perRequest: counts(round.round),
      })),
    })),
  });
  const of = result([withCounts(workers), withCounts(openFileCache)]);
  const [comparison] = of.comparisons as [Comparison];
  const open = {
    ...of,
    environment: {
      ...of.environment,
      versions: { node: '20.20.2', k6: '2.2.0', influxdb: '1.6.7', nginx: '1.22.1' },
    },
    comparisons: [
      {
        ...comparison,
        verdict: 'inconclusive' as const,
        why: 'the interval includes 1: about 16 rounds would probably decide',
        roundsNeeded: 16,
      },
    ],
  };
  const run = {
    article: { id: 'x', title: 't', date: '2017', claims: [claimOf({ is: 'faster' })] },
    results: new Map([['s', open]]),
    missing: [],
  };
  const markdown = articleMarkdown(run);
  // What nobody published, and each load in detail, is on the whole page only.
  expect(markdown).toMatch(/^\| variant \|.* requests\/s \| against workers \| CPU change \|$/m);
  expect(markdown).not.toContain('TLS handshakes');
  const page = await articlePage(run, () => []);
  expect(markdown).toContain('| the article says | state | its figures |');
  expect(markdown).toContain(' inconclusive (about 16 rounds would probably decide) |');
  expect(markdown).toContain('| programs | it does not say | k6 2.2.0, nginx 1.22.1 |');
  expect(page).toContain('0.3 ± 0<');
  expect(page).toMatch(/TLS handshakes<.*resumed<.*segments to server</s);
  expect(page).not.toMatch(/± \S*e-/);
  expect(page).toContain(
    'Requests that were started and are not done were under way when a round ended.',
  );
});

const sound = { id: 'own-1.b', title: 't', date: '2026', claims: [] };

test.each<[string, object, RegExp]>([
  ['a separator', { id: 'a/b' }, /^article a\/b: id "?a\/b"? may have letters, digits, _, \. and/],
  ['an escape', { title: '\u001b[31mred' }, /title .*has to be one line of visible characters$/],
  ['a script', { url: 'javascript:alert(1)' }, /url .*has to begin with http:\/\/ or https:\/\/$/],
  [
    'a bell in a claim',
    { claims: [{ ...claimOf(), text: 'x\u0007' }] },
    /claims\[0\]\.text .*has to be one line/,
  ],
])('an article with %s is refused in one line', (_, changes, message) => {
  let printed = '';
  try {
    defineArticle({ ...sound, ...changes });
  } catch (error) {
    printed = (error as Error).message;
  }
  expect(printed).toMatch(message);
  expect(printed).toMatch(/^[^\n\u001b\u0007\u202e]+$/);
});

test('a quote that is not in the text is refused with the nearest words there', () => {
  const claims = [{ ...claimOf({ is: 'faster' }), quote: 'a cache makes it twice as fast' }];
  const text = `It is said that a cache
    makes it 2 times as fast here.`;
  expect(() => defineArticle({ ...sound, claims }, text)).toThrow(
    'article own-1.b: its text has no "a cache makes it twice as fast": nearest is "a cache makes it 2 times as"',
  );
  expect(() => defineArticle({ ...sound, claims }, '')).toThrow('nearest is ""');
  const right = text.replace('2 times', 'twice');
  expect(defineArticle({ ...sound, claims }, right).claims).toEqual(claims);
});

test('markup in an article appears as text on the page', async () => {
  const odd = `<img src=x onerror=alert(1)>|"&'\\ \`e\` [f](http://x.y)`;
  const rests = [{ ...rest, is: 'faster' as const }];
  const userArticle = defineArticle({
    ...sound,
    title: odd,
    author: odd,
    commands: [odd],
    claims: [{ quote: odd, place: odd, text: odd, figures: odd, rests }],
  });
  const run = {
    article: userArticle,
    results: new Map([['s', { ...measured, title: odd }]]),
    missing: [odd],
  };
  expect(await articlePage(run, () => [])).not.toMatch(/<img|onerror=alert\(1\)>/);
  const markdown = articleMarkdown(run);
  expect(markdown).toContain('\\<img src=x');
  expect(markdown).not.toMatch(/(?<!\\)<img|(?<!\\)\|"|\]\(/);
});
