// Commits as sides, with real repositories.
import { execFileSync } from 'node:child_process';
import {
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import path from 'node:path';
import { expect, test, vi } from 'vitest';
import { commitSides, type AskedCommits } from './commits.ts';
import { newFolder } from '../../../test/fixtures/new-folder.ts';

const serve = './server {port}';

/** A repository whose file `page` is 1 at `first` and 2 at main; `git` and `write` work in it. */
function repository() {
  const folder = newFolder();
  const repo = path.join(folder, 'repo');
  const place = path.join(folder, 'kept');
  mkdirSync(repo);
  const write = (file: string, text: string) => writeFileSync(path.join(repo, file), text);
  const git = (...args: string[]) =>
    execFileSync('git', ['-c', 'user.name=a', '-c', 'user.email=a@b.example', ...args], {
      cwd: repo,
      encoding: 'utf8',
    }).trim();
  git('init', '--quiet', '--initial-branch', 'main');
  for (const text of ['1', '2']) {
    write('page', text);
    git('add', '.');
    git('commit', '--quiet', '--message', `Page ${text}`);
    if (text === '1') git('branch', 'first');
  }
  const lines: string[] = [];
  const made = async (words: string[], asked: Partial<AskedCommits> = {}) => {
    const { given, make } = await commitSides(
      words,
      { repo, build: undefined, serve, ...asked },
      place,
    );
    await make(new AbortController().signal, (more) => lines.push(...more));
    const folders = given.map(({ source }) =>
      source.kind === 'command' ? (source.folder ?? '') : '',
    );
    const read = (file: string) =>
      folders.map((tree) => {
        const there = path.join(tree, file);
        return existsSync(there) ? readFileSync(there, 'utf8').trim() : undefined;
      });
    return { given, read, lines: lines.splice(0) };
  };
  return { repo, place, write, git, made, lines };
}

test('each commit is built once, in a folder of its own, and the repository stays as it is', async () => {
  const { repo, git, made } = repository();
  const files = () => readdirSync(repo, { recursive: true, encoding: 'utf8' }).sort();
  const before = files();
  const build = 'cp page built; date +%N >>../times';
  const { given, read, lines } = await made(['old=first', 'HEAD'], { build });
  const [first, head] = [git('rev-parse', 'first'), git('rev-parse', 'HEAD')];
  expect(given).toMatchObject([
    { name: 'old', given: `old (${first.slice(0, 9)})`, source: { command: serve } },
    { name: 'head', given: `head (${head.slice(0, 9)})` },
  ]);
  expect(read('built')).toEqual(['1', '2']);
  expect(lines).toEqual([
    expect.stringMatching(/^old is \w{9} \(\d{4}-\d\d-\d\d Page 1\), built in .+ s$/),
    expect.stringMatching(/^head is \w{9} \(.* Page 2\), built in .+ s$/),
  ]);
  const again = await made(['first', 'main'], { build });
  expect(again.lines).toEqual([
    expect.stringMatching(/^first is .*, built before$/),
    expect.stringMatching(/^main is .*, built before$/),
  ]);
  expect(again.read('../times').map((times) => times?.split('\n').length)).toEqual([1, 1]);
  const other = await made(['first', 'main'], { build: 'cp page built' });
  expect(other.lines[0]).toMatch(/built in/);
  expect(files()).toEqual(before);
});

test('worktree has changes and new files, and not what git ignores', async () => {
  const { repo, place, write, git, made } = repository();
  write('.gitignore', 'ignored');
  git('add', '.');
  git('commit', '--quiet', '--message', 'Ignore');
  write('page', '3');
  write('new', 'new');
  write('ignored', 'x');
  mkdirSync(path.join(repo, 'deep/er'), { recursive: true });
  symlinkSync('../../page', path.join(repo, 'deep/er/link'));
  const { read, lines } = await made(['main', 'worktree']);
  expect(read('page')).toEqual(['2', '3']);
  expect(read('new')).toEqual([undefined, 'new']);
  expect(read('ignored')).toEqual([undefined, undefined]);
  const [tree = ''] = readdirSync(place).filter((name) => name.startsWith('worktree'));
  expect(readlinkSync(path.join(place, tree, 'tree/deep/er/link'))).toBe('../../page');
  expect(lines[1]).toMatch(/^worktree is what is not committed after \w{9} \(/);
  write('page', '4');
  expect((await made(['main', 'worktree'])).read('page')).toEqual(['2', '4']);
});

test('--repo may name a folder of the repository, and a hook’s variables name no other one', async () => {
  const { repo, git, made } = repository();
  mkdirSync(path.join(repo, 'part'));
  writeFileSync(path.join(repo, 'part/file'), 'part');
  git('add', '.');
  git('commit', '--quiet', '--message', 'Part');
  vi.stubEnv('GIT_DIR', newFolder());
  await expect(made(['main~1', 'main'], { repo: path.join(repo, 'part') })).rejects.toThrow(
    'main-1 has no folder part/: --repo names one that all have',
  );
  const both = await made(['main', 'x=main'], { repo: path.join(repo, 'part') });
  expect(both.read('file')).toEqual(['part', 'part']);
  const build = 'pwd >built';
  await made(['main', 'x=main'], { build });
  const inPart = await made(['main', 'x=main'], { build, repo: path.join(repo, 'part') });
  expect(inPart.read('built')).toEqual(Array(2).fill(expect.stringMatching(/\/part\/?$/)));
});

test('the commits that were used last are kept', async () => {
  const { place, made } = repository();
  mkdirSync(place);
  for (let old = 0; old < 25; old++) mkdirSync(path.join(place, `old-${old}`));
  const { given } = await made(['first', '@']);
  expect(given.map(({ name }) => name)).toEqual(['first', 'commit']);
  const kept = readdirSync(place).filter((name) => name !== 'lock');
  expect(kept).toHaveLength(20);
  expect(kept.filter((name) => !name.startsWith('old-'))).toHaveLength(2);
});

test.runIf(process.getuid?.() === 0)(
  'another user’s repository is refused, with what to type',
  async () => {
    const { repo, made } = repository();
    const part = path.join(repo, 'part');
    mkdirSync(part);
    for (const folder of [part, repo, path.join(repo, '.git')]) chownSync(folder, 12_345, 12_345);
    await expect(made(['first', 'main'], { repo: part })).rejects.toThrow(
      new RegExp(`dubious ownership .*: git config --global --add safe.directory ${repo}$`),
    );
  },
);

test('a build that fails shows its last lines, and is made again', async () => {
  const { made, lines } = repository();
  const build = 'seq 100; echo no rule >&2; exit 2';
  for (let time = 1; time <= 2; time++) {
    await expect(made(['first', 'main'], { build })).rejects.toThrow(
      /^the build of first ended with code 2: no rule$/,
    );
    expect(lines.splice(0)).toEqual([
      ...Array.from({ length: 14 }, (_, at) => `${87 + at}`),
      'no rule',
    ]);
  }
});

test('what is no repository, commit or pair of names is refused in one line', async () => {
  const { repo, made } = repository();
  await expect(made(['main'])).rejects.toThrow(
    /^compare wants two sides or more, and main is one: /,
  );
  await expect(made(['main', 'main'])).rejects.toThrow(/^two sides are named main: /);
  await expect(made(['main', 'nothing'])).rejects.toThrow(`--repo ${repo}: bad revision 'nothing'`);
  await expect(made(['main', '--all'])).rejects.toThrow(/^--repo .*--all/);
  const empty = newFolder();
  await expect(made(['a', 'b'], { repo: empty })).rejects.toThrow(
    /^--repo .*: not a git repository/,
  );
  await expect(made(['a', 'b'], { repo: `${empty}/none` })).rejects.toThrow(
    `--repo: there is no folder ${empty}/none`,
  );
});
