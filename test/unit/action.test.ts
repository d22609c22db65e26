// Checks action.yml and docs/ci.md statically.
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { runFlags } from '../../lib/cli/run-options.ts';
import { projectRoot } from '../../lib/setup/paths.ts';
import {
  action,
  runAction,
  type Ended,
  type Job,
  type Step,
} from '../fixtures/composite-action.ts';
import { ownFiles } from '../fixtures/own-files.ts';

const page = readFileSync(join(projectRoot, 'docs/ci.md'), 'utf8');
const [, workflow = ''] = /^```yaml\n([^]*?)^```$/m.exec(page) ?? [];
const { steps } = action.runs;

const expressionsIn = (part: string) =>
  [...part.matchAll(/\$\{\{ *(.*?) *\}\}/g)].map(([, expression = '']) => expression);

const outputsOfUses: Record<string, string[]> = {
  'actions/cache/restore': ['cache-hit', 'cache-primary-key', 'cache-matched-key'],
  'actions/upload-artifact': ['artifact-id', 'artifact-url', 'artifact-digest'],
};

function outputsOf({ uses, run = '' }: Step) {
  return uses !== undefined
    ? outputsOfUses[uses.replace(/@.*/, '')]
    : [...run.matchAll(/(?:echo "|`|\\n)(\w+)=/g)].map(([, name = '']) => name);
}

test('action.yml uses no expressions inside scripts', () => {
  for (const { run = '' } of steps) expect(expressionsIn(run)).toEqual([]);
});

test('scripts in action.yml are valid bash, and use all of their variables', () => {
  for (const { run, env = {} } of steps.filter((step) => step.run !== undefined)) {
    execFileSync('bash', ['-n', '-c', run as string]);
    for (const name of Object.keys(env).filter((name) => name !== 'GH_TOKEN'))
      expect(run).toMatch(new RegExp(`\\$\\{?${name}\\b`));
  }
});

test('action.yml uses every input, and only outputs of earlier steps', () => {
  const inputs = new Set<string>();
  for (const [index, part] of [...steps, { run: JSON.stringify(action.outputs) }].entries()) {
    const conditions =
      part.if?.split(' && ').map((condition) => condition.replace(/ .*/, '')) ?? [];
    for (const path of [...expressionsIn(JSON.stringify(part)), ...conditions]) {
      const [, input] = /^inputs\.(.*)/.exec(path) ?? [];
      const [, id, output] = /^steps\.(\w+)\.outputs\.([\w-]+)$/.exec(path) ?? [];
      const step = steps.slice(0, index).find((step) => step.id === id && id !== undefined);
      if (input !== undefined) inputs.add(input);
      else if (step !== undefined) expect(outputsOf(step), path).toContain(output);
      else
        expect(path).toMatch(/^(runner\.(os|arch)|github\.(token|event\.pull_request\.number))$/);
    }
  }
  expect([...inputs].sort()).toEqual(Object.keys(action.inputs).sort());
});

const namesIn = (title: string) => {
  const [, rows = ''] =
    new RegExp(`^\\| ${title} \\|.*\\n\\|.*\\n((?:\\|.*\\n)+)`, 'm').exec(page) ?? [];
  return [...rows.matchAll(/^\| (.*?) \|/gm)].flatMap(([, cell = '']) =>
    cell.replaceAll('`', '').split(', '),
  );
};

test('docs/ci.md lists all inputs, outputs and files', () => {
  expect(namesIn('input').sort()).toEqual(Object.keys(action.inputs).sort());
  expect(namesIn('output')).toEqual(Object.keys(action.outputs));
  expect(namesIn('code')).toEqual(['0', '1', '2', '3', '130']);
  for (const flag of Object.keys(runFlags([])).filter((flag) => flag.startsWith('export-')))
    expect(page).toContain(`- \`--${flag} FILE\`: `);
});

test('the workflow in docs/ci.md uses existing inputs', () => {
  const { permissions, jobs } = parse(workflow) as {
    permissions: Record<string, string>;
    jobs: { compare: { steps: { uses?: string; with?: Record<string, string> }[] } };
  };
  expect(permissions).toEqual({ contents: 'read', 'pull-requests': 'write' });
  const given = jobs.compare.steps.at(-1)?.with ?? {};
  for (const name of Object.keys(given)) expect(Object.keys(action.inputs)).toContain(name);
  for (const [name, { required }] of Object.entries(action.inputs))
    if (required === true) expect(given).toHaveProperty(name);
});

const mark = '<!-- bakeoff: bakeoff -->';
const commented = async (job: Partial<Job> = {}): Promise<Ended> => {
  const report = join(await ownFiles({ 'report/comment.md': '**slow is slower**\n' }), 'report');
  const outputsOf = {
    sources: {},
    cache: { 'cache-hit': 'true' },
    compare: { code: '3', report, verdict: 'slower', ratio: '0.5000' },
    'Get ready': {},
  };
  const inputs = { sides: 'a\nb' };
  return runAction({ inputs, pullRequest: 7, workspace: report, outputsOf, ...job });
};

test('the comment replaces only an earlier comment of the action', async ({ skip }) => {
  try {
    execFileSync('jq', ['--version']);
  } catch {
    skip('jq, which does what gh --jq does, is not here');
  }
  const bot = { login: 'github-actions[bot]' };
  const { calls } = await commented({
    comments: [
      { id: 1, body: `${mark}\nforged`, user: { login: 'somebody' } },
      { id: 2, body: '<!-- bakeoff: other -->\n', user: bot },
      { id: 3, body: `${mark}\nold`, user: bot },
      { id: 4, body: `${mark}\nolder`, user: bot },
    ],
  });
  expect(calls.slice(1).map((call) => call.replace(/@.*/, ''))).toEqual([
    'api --silent --method PATCH repos/owner/repository/issues/comments/3 -F body=',
  ]);
});

test('a comment without permission becomes a warning', async () => {
  const { code, log } = await commented({ forbidden: true });
  expect(code).toBe(3);
  expect(log).toMatch(/^::warning::The comment could not .* HTTP 403: .*"pull-requests: write"/m);
});

test.each([{ inputs: { sides: 'a\nb', comment: 'false' } }, { pullRequest: undefined }])(
  'the comment is left out where it is not wanted: %j',
  async (job) => {
    const { code, calls } = await commented(job);
    expect({ code, calls }).toEqual({ code: 3, calls: [] });
  },
);
