// An article run that resumes after an interruption.
import { chmodSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeEach, expect, test, vi } from 'vitest';
import { noAdditions } from '../fixtures/additions.ts';
import { articleOf, mostRunsOf, runArticle } from '../../lib/cli/article.ts';
import { localDraft } from '../../lib/cli/run-scenario.ts';
import { readScenarioOptions } from '../../lib/cli/scenario.ts';
import { readEnvironment } from '../../lib/machine/cores.ts';
import { readProcessors } from '../../lib/machine/processors.ts';
import type { Result } from '../../lib/result/result.ts';
import { resultJson } from '../../lib/result/result-file.ts';
import { buildResult } from '../../lib/runner/build-result.ts';
import type { PlanDraft } from '../../lib/runner/plan.ts';
import { allNames } from '../../lib/present.ts';
import { findScenario } from '../../lib/cli/find-scenario.ts';
import article from '../../scenarios/articles/001.ts';
import { openFileCache, result as measured, workers } from '../fixtures/result.ts';
import { newFolder } from '../fixtures/new-folder.ts';

const [first = '', second = ''] = article.scenarios ?? [];
const lines: string[] = [];

// Restore the umask: a run makes new files private, and later tests share this process.
const umask = process.umask();
afterAll(() => void process.umask(umask));

beforeEach(() => {
  lines.length = 0;
  for (const name of ['log', 'error'] as const)
    vi.spyOn(console, name).mockImplementation((text: string) => void lines.push(text));
  // Without CPUs for the server, nothing can be measured.
  vi.stubEnv('K6_BIN', '/nowhere/k6');
});

const pairsOf = (...variants: string[]) =>
  variants.map((variant) => ({ scenario: first, variant, against: 'nginx' }));

type Changes = { [Field in keyof Result]?: Result[Field] | undefined };

async function keepRun(
  out: string,
  name: string,
  changes: Changes | ((result: Result) => Changes) = {},
  flags: string[] = [],
) {
  const together = mostRunsOf(article);
  const options = { ...readScenarioOptions(flags, noAdditions), mostSeconds: 300, together };
  const draft = localDraft(await findScenario(name), options) as PlanDraft;
  const run = `2026-11-20T08-15-${30 + flags.length}-${name}`;
  const result = buildResult(
    { plan: { ...draft, run }, templates: {} },
    readEnvironment(readProcessors(), draft.cores, {}),
    { kept: [], findings: [], lines: [], unfinished: [], answers: new Map() },
    new Date(),
    'complete',
  );
  mkdirSync(join(out, run), { recursive: true });
  const changed = typeof changes === 'function' ? changes(result) : changes;
  writeFileSync(join(out, run, 'result.json'), resultJson({ ...result, ...changed } as Result));
  return run;
}

const resumed = (out: string, ...more: string[]) =>
  runArticle(article, readScenarioOptions(['001', '--resume', '--out', out, ...more], noAdditions));

test('a finished scenario does not run again, and is on the page', async () => {
  const out = newFolder();
  const runs = [await keepRun(out, first), await keepRun(out, second)];
  expect(await resumed(out)).toBe(0);
  for (const run of runs) expect(lines).toContain(`it is measured: ${join(out, run)}`);
  const [page = ''] = readdirSync(out).filter((name) => !runs.includes(name));
  expect(page).toMatch(/-article-001$/);
  const text = readFileSync(join(out, page, 'article.md'), 'utf8');
  for (const name of [first, second])
    expect(text).toContain(`## ${(await findScenario(name)).title}`);
});

/** Six rounds in which h2o and nginx differ little, or by half. */
const inRounds =
  (verdict: 'inconclusive' | 'faster', ratio: number) =>
  ({ variants }: Result): Changes => ({
    variants: variants.map((side) => ({ ...side, rounds: workers.rounds })),
    comparisons: measured([workers, openFileCache]).comparisons.map((pair) => ({
      ...pair,
      variant: 'h2o',
      baseline: 'nginx',
      verdict,
      ratio,
      ci95: [ratio / 1.02, ratio * 1.02],
      roundRatios: workers.rounds.map(() => ratio),
      roundsNeeded: verdict === 'inconclusive' ? 20 : null,
    })),
  });

test('an open claim says how long it would take, and the run that was made for it decides', async () => {
  const out = newFolder();
  const more = newFolder();
  for (const folder of [out, more]) {
    await keepRun(folder, first, inRounds('inconclusive', 1.01));
    await keepRun(folder, second);
  }
  expect(await resumed(out, '--max-time', '10s')).toBe(0);
  expect(lines.join('\n')).toMatch(
    /^What is not decided needs one more run, about \d+ min( \d+ s)?: the same command with --resume --max-time \d+m\.$/m,
  );
  lines.length = 0;
  const flags = ['--variants', 'nginx,h2o', '--rounds', '20'];
  const run = await keepRun(more, first, inRounds('faster', 1.5), flags);
  // What is there needs no time.
  expect(await resumed(more, '--max-time', '5s')).toBe(0);
  expect(lines).toContain(`it is measured: ${join(more, run)}`);
  expect(lines.join('\n')).not.toContain('What is not decided');
  expect(lines.join('\n')).toContain('holds here');
});

const judgedByCpu = measured([workers, openFileCache]).comparisons.map((pair) => ({
  ...pair,
  metric: 'cpu' as const,
}));

test.each<[string, Changes, string[]?]>([
  ['is not complete', { state: 'partial' }],
  ['has no article, like a result of an older version', { article: undefined }],
  ['had a different number of rounds', { looks: [8] }],
  ['was a first look', { quick: true }],
  ['shared the chance of a false verdict with no other', { together: undefined }],
  ['had shorter loads', {}, ['--duration', '7s']],
  ['had another warm-up', {}, ['--warmup', '5s']],
  ['had no command before its rounds', {}, ['--prepare', 'sync']],
  ['had another tolerance', { sameWithin: 0.3 }],
  ['was on other cores', {}, ['--server-cpus', '0', '--generator-cpus', '1']],
  ['was judged by another metric', { comparisons: judgedByCpu }],
  [
    'was before the last boot',
    {
      environment: {
        ...readEnvironment(readProcessors(), { serverCpus: [1], generatorCpus: [0] }, {}),
        bootId: 'x',
      },
    },
  ],
])('a run that %s does not count', async (_, changes, more = []) => {
  const out = newFolder();
  await keepRun(out, first, changes);
  expect(await resumed(out, ...more)).toBe(1);
  expect(lines.filter((line) => line.startsWith('it is measured'))).toEqual([]);
});

test('a result that other users may change does not count', async () => {
  const out = newFolder();
  const run = await keepRun(out, first);
  chmodSync(join(out, run, 'result.json'), 0o666);
  expect(await resumed(out)).toBe(1);
  expect(lines).toContain(
    `${join(out, run)} does not count: every user may write to ${join(out, run, 'result.json')}`,
  );
  expect(lines.filter((line) => line.startsWith('it is measured'))).toEqual([]);
});

test('a damaged result is ignored and does not stop the article', async () => {
  const out = newFolder();
  const run = await keepRun(out, first);
  writeFileSync(join(out, run, 'result.json'), '{');
  await keepRun(out, second);
  expect(await resumed(out)).toBe(1);
  expect(lines.filter((line) => line.startsWith('it is measured'))).toHaveLength(1);
});

test('an article may have a run for each scenario and each pair of sides that a claim rests on', () => {
  expect(mostRunsOf(article)).toBe(4);
  const [claim] = article.claims ?? [];
  const claims = [
    claim,
    claim,
    { ...claim, rests: [...(claim?.rests ?? []), ...pairsOf('a', 'b')] },
  ];
  expect(mostRunsOf({ ...article, claims } as typeof article)).toBe(2 + 1 + 2);
});

test('a claim has one run of its own, whatever that finds', async () => {
  const out = newFolder();
  await keepRun(out, first, inRounds('inconclusive', 1.01));
  await keepRun(out, second);
  const flags = ['--variants', 'nginx,h2o', '--rounds', '20'];
  const run = await keepRun(out, first, inRounds('inconclusive', 1.01), flags);
  expect(await resumed(out, '--max-time', '10s')).toBe(0);
  expect(lines).toContain(`it is measured: ${join(out, run)}`);
  expect(lines.join('\n')).not.toContain('What is not decided');
});

test('a scenario that would take longer than the time is a first look', async () => {
  const options = readScenarioOptions(['--max-time', '10m'], noAdditions);
  const long = await findScenario('nghttpd-img');
  const inArticle = localDraft(long, { ...options, mostSeconds: 300 });
  expect(inArticle).toMatchObject({ quick: true, maxTimeSeconds: 600 });
  const short = await findScenario(first);
  expect(localDraft(short, { ...options, mostSeconds: 300 })).toMatchObject({ quick: false });
});

test("a file's article is refused if its names are not those of its scenarios", async () => {
  const own = { ...(await findScenario(first)), article: { ...article, scenarios: [first] } };
  expect(() => articleOf([own, own])).toThrow(`two scenarios have the name ${first}`);
  const claims = article.claims?.filter(({ rests }) => rests.every((r) => r.scenario === first));
  const whole = { ...own, article: { ...own.article, claims: claims ?? [] } };
  expect(articleOf([whole]).scenarios).toEqual([first]);
  const other = { ...whole, article: { ...whole.article, scenarios: ['other'] } };
  expect(() => articleOf([other])).toThrow('there is no scenario in the list "other"');
  const none = { ...whole, article: { ...whole.article, scenarios: [] } };
  expect(() => articleOf([none])).toThrow(`the article's \`scenarios\` lack ${first}: name all`);
  const [one, two] = allNames(own.variants);
  const rests = [
    { scenario: first, variant: one ?? '', against: two ?? '', is: 'faster' as const },
  ];
  const claim = { quote: 'a', place: 'b', text: 'c', figures: 'd', rests };
  const turned = { ...whole, article: { ...whole.article, claims: [claim] } };
  expect(() => articleOf([turned])).toThrow(
    `the claim "c": ${first} does not compare ${one} with ${two}: swap them`,
  );
});
