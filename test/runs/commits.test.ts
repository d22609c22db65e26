// Commits as sides, in complete runs.
import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { newClosedFolder } from '../fixtures/new-folder.ts';
import { newOut, readResult, startCommand, useHome } from '../scenario-run.ts';

const home = useHome(['k6']);

/** Compares both commits of the repository that the first test makes. */
function startComparison(out: string, env: Readonly<Record<string, string>>) {
  const built = `{ echo "const page = '$(cat page)';"; cat ${join(home.folder, 'page.cjs')}; } >server.cjs`;
  writeFileSync(
    join(home.folder, 'page.cjs'),
    `require('node:http').createServer((asked, response) => response.end(page)).listen(process.env.PORT, '127.0.0.1');`,
  );
  const sides = ['before=main~1', 'main', '--repo', join(home.folder, 'repo')];
  const made = ['--build', built, '--serve', 'node server.cjs'];
  const flags = '--rounds 1 --warmup 100ms --duration 300ms --no-look --store none --wait 100s';
  return startCommand(['compare', ...sides, ...made, ...flags.split(' '), '--out', out], {
    ...home.env,
    ...env,
  });
}

test('a commit is built, and compared with another', async () => {
  const repo = join(home.folder, 'repo');
  mkdirSync(repo);
  const git = (...args: string[]) =>
    execFileSync('git', ['-c', 'user.name=a', '-c', 'user.email=a@b.example', ...args], {
      cwd: repo,
    });
  git('init', '--quiet', '--initial-branch', 'main');
  for (const text of ['a fast page', 'a slow page']) {
    writeFileSync(join(repo, 'page'), text);
    git('add', '.');
    git('commit', '--quiet', '--message', text);
  }
  const out = newOut();
  const run = startComparison(out, { BAKEOFF_HOME: newClosedFolder() });
  expect(await run.ended, run.stderr()).toBe(0);
  const result = readResult(out);
  expect(result.title).toMatch(/^before \(\w{9}\) against main \(\w{9}\)$/);
  expect(result.variants.map(({ name }) => name)).toEqual(['before', 'main']);
  expect(run.stdout()).toMatch(/main is \w{9} \(.* a slow page\), built in /);
});

test('of two comparisons of commits at once, each waits for the other', async () => {
  const env = { BAKEOFF_HOME: newClosedFolder() };
  const runs = [startComparison(newOut(), env), startComparison(newOut(), env)];
  for (const run of runs) expect(await run.ended, run.stderr()).toBe(0);
});

test('bisect refuses commits that are the other way round, and says what it needs', async () => {
  const repo = join(home.folder, 'repo');
  const asked = async (...args: string[]) => {
    const run = startCommand(['bisect', '--repo', repo, ...args], home.env);
    return { code: await run.ended, stderr: run.stderr() };
  };
  expect(await asked('--good', 'main', '--bad', 'main~1', '--serve', 'node server.cjs')).toEqual({
    code: 2,
    stderr: expect.stringContaining('--bad main~1 has no commit after --good main: is it'),
  });
  expect(await asked('--good', 'main')).toEqual({
    code: 2,
    stderr: expect.stringContaining("bisect needs --serve './server {port}'"),
  });
});
