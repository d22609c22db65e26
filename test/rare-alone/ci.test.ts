// The steps of action.yml and the job of docs/ci.md, with the real nginx and k6.
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { parse } from 'yaml';
import { projectRoot } from '../../lib/setup/paths.ts';
import { run } from '../../lib/process.ts';
import { runAction } from '../fixtures/composite-action.ts';
import { useHome } from '../scenario-run.ts';

const home = useHome(['k6', 'nginx']);
let workspace = '';
beforeAll(async () => {
  workspace = join(home.folder, 'workspace');
  mkdirSync(join(workspace, 'before'), { recursive: true });
  mkdirSync(join(workspace, 'www'));
  writeFileSync(join(workspace, 'www', 'index.html'), 'hello\n');
  const nginx = (connections: number) =>
    `events { worker_connections ${connections}; }\nhttp {\n  access_log off;\n  server { listen 8080; root ${join(workspace, 'www')}; }\n}\n`;
  writeFileSync(join(workspace, 'before/nginx.conf'), nginx(512));
  // nginx fills the memory for all of them when it starts: a busy machine changes nothing of that.
  writeFileSync(join(workspace, 'nginx.conf'), nginx(200_000));
}, 300_000);

const short = '--metric=memory\n--duration=300ms\n--quick\n--no-look';

test('the action fails if a side is slower, after all outputs are written', async () => {
  const { code, outputs, summary, used, calls, body, log } = await runAction({
    inputs: {
      sides: 'before=before/nginx.conf\n\nafter=nginx.conf\n',
      url: '/index.html',
      rounds: '4',
      flags: short,
    },
    pullRequest: 7,
    workspace,
    env: home.env,
  });
  expect(code, log).toBe(3);
  expect(log).toMatch(/^--fail-if slower: after against before: memory .* larger: true$/m);
  expect(outputs['verdict']).toBe('slower');
  expect(Number(outputs['ratio'])).toBeGreaterThan(5);
  expect(summary).toMatch(
    /^\*\*after is larger than before here: memory [\d.]+ times \(95 % interval [\d.]+ to [\d.]+ times\)\.\*\*\n\n\| variant \| /,
  );
  expect(summary).not.toContain(workspace);
  expect(calls.map((call) => call.replace(/ --jq .*|@.*/, ''))).toEqual([
    'api --paginate repos/owner/repository/issues/7/comments',
    'api --silent repos/owner/repository/issues/7/comments -F body=',
  ]);
  expect(body).toBe(
    `<!-- bakeoff: bakeoff -->\n${summary}\n[The whole report](https://example.org/artefact)\n`,
  );
  expect(used['actions/cache/save']?.['key']).toMatch(/^bakeoff-k6-Linux-X64-[0-9a-f]{16}$/);
  const report = outputs['report'] as string;
  expect(used['actions/upload-artifact']).toEqual({ name: 'bakeoff', path: report });
  const files = 'comment.md report.html result.csv result.json';
  expect(readdirSync(report).sort().join(' ')).toBe(files);
});

test('invalid arguments fail the job with their error line, without a comment', async () => {
  const { code, outputs, summary, log, used, calls } = await runAction({
    inputs: { sides: 'before/nginx.conf\nngin.conf', load: '$(touch owned)`touch owned`"' },
    pullRequest: 7,
    workspace,
    env: home.env,
  });
  expect(code).toBe(2);
  expect(log).toContain('did you mean nginx.conf?');
  expect({ outputs, summary, calls }).toEqual({
    outputs: { verdict: '', ratio: '', report: '' },
    summary: '',
    calls: [],
  });
  expect(used).not.toHaveProperty('actions/upload-artifact');
  expect(readdirSync(workspace)).not.toContain('owned');
});

test('the GitLab job does the same', async () => {
  const page = readFileSync(join(projectRoot, 'docs/ci.md'), 'utf8');
  const [, , yaml = ''] = page.split('```yaml\n');
  const {
    bakeoff: { script, after_script: afterwards, artifacts },
  } = parse(yaml.split('```')[0] ?? '') as {
    bakeoff: Record<'script' | 'after_script', string[]> & { artifacts: object };
  };
  expect(artifacts).toMatchObject({ when: 'always', paths: ['report/'] });
  const bin = join(home.folder, 'bin');
  mkdirSync(bin);
  writeFileSync(
    join(bin, 'curl'),
    '#!/bin/sh\nfor word; do :; done; echo "$word" >>curled; for word; do case $word in body=\\<*) cat "${word#body=<}" >>curled; esac; done\n',
    { mode: 0o755 },
  );
  const files = join(home.folder, 'files');
  mkdirSync(join(files, 'report'), { recursive: true });
  cpSync(join(workspace, 'before'), join(files, 'before'), { recursive: true });
  const env = {
    ...process.env,
    ...home.env,
    PATH: `${bin}:${process.env['PATH']}`,
    BAKEOFF: projectRoot,
    FILES: files,
    BAKEOFF_TOKEN: 'token',
    CI_API_V4_URL: 'https://example.org/api/v4',
    CI_PROJECT_ID: '1',
    CI_MERGE_REQUEST_IID: '2',
  };
  const shell = (lines: readonly string[]) => {
    const args = ['-e', '-o', 'pipefail', '-c', lines.join('\n')];
    return run({ command: 'bash', args, cwd: workspace, env });
  };
  const { code, stderr } = await shell(
    script.map((line) =>
      line.replace(' --url ', ` --rounds=4 ${short.replaceAll('\n', ' ')} --url `),
    ),
  );
  expect(code, stderr).toBe(3);
  expect(await shell(afterwards)).toMatchObject({ code: 0 });
  const comment = readFileSync(join(workspace, 'report', 'comment.md'), 'utf8');
  expect(comment).toContain('after is larger than before here');
  expect(readFileSync(join(workspace, 'curled'), 'utf8')).toBe(
    `https://example.org/api/v4/projects/1/merge_requests/2/notes\n${comment}`,
  );
  expect(existsSync(join(workspace, 'report', 'result.csv'))).toBe(true);
});
