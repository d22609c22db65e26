// A search among commits, in complete runs.
import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { newClosedFolder } from '../fixtures/new-folder.ts';
import { newOut, startCommand, useHome } from '../scenario-run.ts';

const home = useHome(['k6']);

test('bisect finds the commit that made a server slower, beside one that fails under load', async () => {
  const repo = join(home.folder, 'history');
  mkdirSync(repo);
  const git = (...args: string[]) =>
    execFileSync('git', ['-c', 'user.name=a', '-c', 'user.email=a@b.example', ...args], {
      cwd: repo,
      encoding: 'utf8',
    });
  git('init', '--quiet', '--initial-branch', 'main');
  const server = (milliseconds: number, first = '') => {
    const answering = `${first} setTimeout(() => answer.end('a page'), ${milliseconds});`;
    return `require('node:http').createServer((asked, answer) => { ${answering} }).listen(process.env.PORT, '127.0.0.1');`;
  };
  const failing = `let left = 50; ${server(5, 'if (left-- === 0) process.exit(9);')}`;
  const contents = [server(5), `${server(5)} //`, failing, server(40), `${server(40)} //`];
  for (const [index, text] of contents.entries()) {
    writeFileSync(join(repo, 'server.cjs'), text);
    git('add', '.');
    git('commit', '--quiet', '--message', `Change ${index}`);
  }
  const quickly = ['--rounds=4', '--warmup=100ms', '--duration=300ms', '--store=none'];
  const run = startCommand(
    [
      'bisect',
      '--repo',
      repo,
      '--good',
      'main~4',
      '--serve',
      'node server.cjs',
      '--load',
      'wrk -c 4',
      ...quickly,
      '--out',
      newOut(),
    ],
    { ...home.env, BAKEOFF_PRIORITY: 'yes', BAKEOFF_HOME: newClosedFolder() },
  );
  expect(await run.ended, run.stdout() + run.stderr()).toBe(0);
  const hashes = git('log', '--format=%h', '--abbrev=9', '-3').trim().split('\n');
  expect(run.stdout()).toContain(`${hashes[2]} (`);
  expect(run.stdout()).toMatch(/Change 2\) is left out\.$/m);
  // The one that fails may be the cause as well.
  expect(run.stdout()).toMatch(
    /^One of 2 commits with a probability of .*: \w{9} \(.* Change 2\) or \w{9} \(.* Change 3\)\. It is −[\d.]+ % \[.*\] slower\.$/m,
  );
});
