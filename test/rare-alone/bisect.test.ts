// A search among commits, in complete runs.
import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { newClosedFolder } from '../fixtures/new-folder.ts';
import { newOut, startCommand, useHome } from '../scenario-run.ts';

const home = useHome(['k6']);

/** An empty repository. `commit` commits a server with that text. */
function repository(name: string) {
  const repo = join(home.folder, name);
  mkdirSync(repo);
  const git = (...args: string[]) =>
    execFileSync('git', ['-c', 'user.name=a', '-c', 'user.email=a@b.example', ...args], {
      cwd: repo,
      encoding: 'utf8',
    });
  git('init', '--quiet', '--initial-branch', 'main');
  const commit = (message: string, text: string) => {
    writeFileSync(join(repo, 'server.cjs'), text);
    git('add', '.');
    git('commit', '--quiet', '--message', message);
  };
  return { repo, git, commit };
}

const server = (milliseconds: number, first = '') => {
  const answering = `${first} setTimeout(() => answer.end('a page'), ${milliseconds});`;
  return `require('node:http').createServer((asked, answer) => { ${answering} }).listen(process.env.PORT, '127.0.0.1');`;
};

const bisect = (repo: string, good: string) =>
  startCommand(
    [
      'bisect',
      `--repo=${repo}`,
      `--good=${good}`,
      '--serve=node server.cjs',
      '--load=wrk -c 4',
      '--rounds=4',
      '--warmup=100ms',
      '--duration=300ms',
      '--store=none',
      `--out=${newOut()}`,
    ],
    { ...home.env, BAKEOFF_PRIORITY: 'yes', BAKEOFF_HOME: newClosedFolder() },
  );

test('bisect finds the commit that made a server slower, beside one that fails under load', async () => {
  const { repo, git, commit } = repository('history');
  const failing = `let left = 50; ${server(5, 'if (left-- === 0) process.exit(9);')}`;
  const contents = [server(5), `${server(5)} //`, failing, server(40), `${server(40)} //`];
  for (const [index, text] of contents.entries()) commit(`Change ${index}`, text);
  const run = bisect(repo, 'main~4');
  expect(await run.ended, run.stdout() + run.stderr()).toBe(0);
  const hashes = git('log', '--format=%h', '--abbrev=9', '-3').trim().split('\n');
  expect(run.stdout()).toContain(`${hashes[2]} (`);
  expect(run.stdout()).toMatch(/Change 2\) is left out\.$/m);
  // The one that fails may be the cause as well.
  expect(run.stdout()).toMatch(
    /^One of 2 commits with a probability of .*: \w{9} \(.* Change 2\) or \w{9} \(.* Change 3\)\. It is −[\d.]+ % \[.*\] slower\.$/m,
  );
});

test('bisect looks into the merge that made a server slower', async () => {
  const { repo, git, commit } = repository('merged');
  commit('Base', server(5));
  git('checkout', '--quiet', '-b', 'branch');
  commit('Comment', `${server(5)} //`);
  commit('Wait', server(40));
  git('checkout', '--quiet', 'main');
  git('commit', '--quiet', '--allow-empty', '--message', 'Note');
  git('merge', '--quiet', '--no-ff', '--message', 'Merge it', 'branch');
  const run = bisect(repo, 'main~2');
  expect(await run.ended, run.stdout() + run.stderr()).toBe(0);
  expect(run.stdout()).toMatch(/^The commit with .*: \w{9} \(.* Merge it\)\. It is /m);
  expect(run.stdout()).toMatch(/^\w{9} \(.* Merge it\) is a merge, so the search goes on /m);
  expect(run.stdout()).toMatch(/^The commit with .*: \w{9} \(.* Wait\)\. It is /m);
});
