// The variants' pages and requests in a plan.
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { Group } from '../../lib/runner/plan.ts';
import { expectedOf, loadPlanFor } from '../../lib/runner/k6-plan.ts';
import { writeMixFiles } from '../../lib/runner/mix-files.ts';
import { findScenario } from '../../lib/cli/find-scenario.ts';
import { type RunnableVariant } from '../../lib/scenario/variants.ts';
import { address } from '../../lib/scenario/index.ts';
import type { LoadRequest, Variant } from '../../lib/scenario/model.ts';
import { newFolder } from '../fixtures/new-folder.ts';
import { planOf } from '../fixtures/plan.ts';

const scenario = await findScenario('nginx-open-file-cache');
const variants = scenario.variants.slice(0, 2);
const page = { docroot: 'nginx', path: '/', bodyBytes: 612 };

test('has the expected status class for shipped pages and for user servers', () => {
  const [plain] = variants as [RunnableVariant];
  const addressed = { ...plain, server: address('http://127.0.0.1:1') };
  const of = (changes: object): unknown => expectedOf({ variant: plain, page, ...changes });
  expect(of({})).toEqual({});
  expect(of({ page: { ...page, status: 404 } })).toEqual({ expected: '4xx' });
  expect(of({ variant: addressed })).toEqual({ expected: '2xx' });
  const moved = { path: '/', bodyBytes: 5, status: 302 };
  expect(of({ variant: addressed, page: moved })).toEqual({ expected: '3xx' });
  const several = { ...page, requests: [{ target: '/', status: 404 }] };
  expect(of({ page: several })).toEqual({ expected: 'each' });
});

test('writes each page list once', async () => {
  const [plain] = variants as [Variant];
  const [first, second] = [
    [
      { target: '/', weight: 3 },
      { target: '/a?b=c', method: 'POST', body: 'x', status: 404 },
    ],
    [{ target: '/' }, { target: '/x' }],
  ];
  const of = (name: string, requests: readonly LoadRequest[] = []): Variant => ({
    ...plain,
    name,
    page: { ...page, requests },
  });
  const again = first?.map((request) => ({ ...request }));
  const several = {
    ...scenario,
    variants: [plain, of('a', first), of('b', second), of('c', again)],
  };
  const plan = planOf(several);
  const targets = several.variants.map(() => ({ url: 'http://127.0.0.1:8080/' }));
  const group = plan.groups[0] as Group;
  const files = loadPlanFor(plan, group, 1, targets).mixFiles ?? [];
  const aloneSeconds = (changes: Partial<Group>) =>
    loadPlanFor(plan, { ...group, ...changes }, 1, targets).aloneSeconds;
  expect(aloneSeconds({})).toBeGreaterThan(0);
  expect(aloneSeconds({ withoutEachPage: true })).toBeUndefined();
  expect(files).toEqual([null, files[3], expect.stringMatching(/^requests-/), files[1]]);
  const folder = newFolder();
  const pages = plan.variants.map(({ page }) => page);
  await writeMixFiles(pages, folder);
  expect(readdirSync(folder).sort()).toEqual([files[1], files[2]].sort());
  const file = join(folder, files[1] as string);
  // The file may contain credentials.
  expect(statSync(file).mode & 0o777).toBe(0o600);
  expect(readFileSync(file, 'utf8')).toBe(
    '{"status":200,"target":"/","weight":3}\n{"status":404,"target":"/a?b=c","method":"POST","body":"x"}\n',
  );
});
