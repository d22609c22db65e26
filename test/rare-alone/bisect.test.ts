// A search among commits, in complete runs.
import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { newClosedFolder } from '../fixtures/new-folder.ts';
import { newOut, startCommand, useHome } from '../scenario-run.ts';

const home = useHome(['k6']);

test('bisect finds a commit in the merge that made a server slower, beside one that fails under load', async () => {
  const repo = join(home.folder, 'history');
  mkdirSync(repo);
  const git = (...args: string[]) =>
    execFileSync('git', ['-c', 'user.name=a', '-c', 'user.email=a@b.example', ...args], {
      cwd: repo,
      encoding: 'utf8',
    });
  const server = (milliseconds: number, first = '') => {
    const answering = `${first} setTimeout(() => answer.end('a page'), ${milliseconds});`;
    return `require('node:http').createServer((asked, answer) => { ${answering} }).listen(process.env.PORT, '127.0.0.1');`;
  };
  const commit = (message: string, text: string) => {
    writeFileSync(join(repo, 'server.cjs'), text);
    git('add', '.');
    git('commit', '--quiet', '--message', message);
  };
  git('init', '--quiet', '--initial-branch', 'main');
  commit('Begin', server(5));
  git('checkout', '--quiet', '-b', 'branch');
  commit('Comment', `${server(5)} //`);
  commit('Fail', `let left = 50; ${server(5, 'if (left-- === 0) process.exit(9);')}`);
  commit('Wait', server(40));
  git('checkout', '--quiet', 'main');
  git('commit', '--quiet', '--allow-empty', '--message', 'Nothing');
  git('merge', '--quiet', '--no-ff', '--message', 'Merge', 'branch');
  commit('Comment again', `${server(40)} //`);
  const sides = ['--repo', repo, '--good', 'main~3', '--serve', 'node server.cjs'];
  const quickly = ['--load=wrk -c 4', '--rounds=4', '--warmup=100ms', '--duration=300ms'];
  const run = startCommand(['bisect', ...sides, ...quickly, '--store=none', '--out', newOut()], {
    ...home.env,
    BAKEOFF_PRIORITY: 'yes',
    BAKEOFF_HOME: newClosedFolder(),
  });
  expect(await run.ended, run.stdout() + run.stderr()).toBe(0);
  const merge = git('log', '--format=%h', '--abbrev=9', '-1', 'main~1').trim();
  expect(run.stdout()).toMatch(
    new RegExp(
      `^The commit with a .*: ${merge} .* Merge\\)\\. It is −[\\d.]+ % .* slower\\.$`,
      'm',
    ),
  );
  expect(run.stdout()).not.toContain('The answer is the merge');
  expect(run.stdout()).toMatch(/ Fail\) is left out\.$/m);
  // The one that fails may be the cause as well.
  expect(run.stdout()).toMatch(
    /^One of 2 commits with a probability of .*: \w{9} \(.* Fail\) or \w{9} \(.* Wait\)\. It is −[\d.]+ % \[.*\] slower\.$/m,
  );
});
