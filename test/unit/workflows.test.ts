// Checks of .github/workflows that do not need GitHub.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { projectRoot } from '../../lib/setup/paths.ts';

interface Step {
  uses?: string;
  with?: Record<string, unknown>;
}
interface Workflow {
  permissions: Record<string, string>;
  jobs: Record<string, { permissions?: Record<string, string>; uses?: string; steps?: Step[] }>;
}

const folder = join(projectRoot, '.github/workflows');
const texts = new Map(
  readdirSync(folder).map((file) => [file, readFileSync(join(folder, file), 'utf8')]),
);
const workflow = (file: string) => parse(texts.get(file) ?? '') as Workflow;
const stepsOf = ({ jobs }: Workflow, action: string) =>
  Object.values(jobs).flatMap(({ steps = [] }) =>
    steps.filter(({ uses }) => uses?.startsWith(`actions/${action}@`)),
  );

test.each([...texts.keys()])(
  '%s pins third-party actions by digest, and gives them no secrets',
  (file) => {
    for (const { uses, steps = [] } of Object.values(workflow(file).jobs))
      for (const foreign of [uses, ...steps.map((step) => step.uses)])
        expect(foreign ?? './').toMatch(/^\.\/|@[0-9a-f]{40}$/);
    for (const step of stepsOf(workflow(file), 'checkout'))
      expect(step.with).toMatchObject({ 'persist-credentials': false });
    expect(texts.get(file)).not.toContain('secrets.');
  },
);

test('release jobs have minimal permissions, and no cache', () => {
  const release = workflow('release.yml');
  expect(release.permissions).toEqual({});
  const rights = Object.entries(release.jobs).map(([name, job]) => [name, job.permissions]);
  expect(Object.fromEntries(rights)).toEqual({
    test: { contents: 'read' },
    build: { contents: 'read' },
    npm: { 'id-token': 'write' },
    image: { packages: 'write' },
    notes: { contents: 'write' },
  });
  expect(workflow('ci.yml').permissions).toEqual({ contents: 'read' });
  for (const step of stepsOf(release, 'setup-node'))
    expect(step.with).toMatchObject({ 'package-manager-cache': false });
  for (const step of stepsOf(release, 'setup-go'))
    expect(step.with).toMatchObject({ cache: false });
  expect(stepsOf(release, 'cache')).toEqual([]);
});
