// What a plan makes of the variants' pages and requests: what is right, and the lists that k6 reads.
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { Group } from '../../lib/runner/plan.ts';
import { writePageFiles, expectedOf, loadPlanFor } from '../../lib/runner/k6-plan.ts';
import { makePlan } from '../../lib/runner/make-plan.ts';
import { findScenario } from '../../lib/scenario/catalogue.ts';
import { type RunnableVariant } from '../../lib/scenario/variants.ts';
import { address } from '../../lib/scenario/index.ts';
import type { Variant } from '../../lib/scenario/model.ts';
import { readPageList } from '../../lib/scenario/pages.ts';
import { newFolder } from '../fixtures/new-folder.ts';

const scenario = await findScenario('nginx-open-file-cache');
const variants = scenario.variants.slice(0, 2);
const cores = { serverCpus: [1], generatorCpus: [0] };
const page = { docroot: 'nginx', path: '/', bodyBytes: 612 };

test("has the expected class of status of a page and of a user's server", () => {
  const [plain] = variants as [RunnableVariant];
  const of = (changes: object): unknown => expectedOf(scenario, { ...plain, ...changes });
  expect([
    of({}),
    of({ page: { ...page, status: 404 } }),
    of({ server: address('http://127.0.0.1:1') }),
    of({ server: address('http://127.0.0.1:1'), page: { path: '/', bodyBytes: 5, status: 302 } }),
  ]).toEqual([{}, { expected: '4xx' }, { expected: '2xx' }, { expected: '3xx' }]);
});

test('names and writes each list of pages once', async () => {
  const [plain] = variants as [Variant];
  const [one, other] = [
    { '/': 3, '/a?b=c': 1 },
    { '/': 1, '/x': 1 },
  ];
  const of = (name: string, weights: Record<string, number>): Variant => ({
    ...plain,
    name,
    page: { ...page, weights },
  });
  const several = {
    ...scenario,
    variants: [plain, of('a', one), of('b', other), of('c', { ...one })],
  };
  const plan = makePlan(several, several.variants, cores, { quick: false, exact: false });
  const targets = several.variants.map(() => ({ url: 'http://127.0.0.1:8080/' }));
  expect(
    loadPlanFor({ ...plan, run: 'run' }, plan.groups[0] as Group, 1, targets).pageFiles,
  ).toEqual([null, 'pages-1.txt', 'pages-2.txt', 'pages-1.txt']);
  const folder = newFolder();
  await writePageFiles(several, folder);
  expect(readdirSync(folder)).toEqual(['pages-1.txt', 'pages-2.txt']);
  expect(readPageList('--urls', join(folder, 'pages-1.txt'))).toEqual({
    url: { path: '/' },
    weights: one,
  });
});
