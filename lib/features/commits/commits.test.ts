// Commits as sides, with real repositories.
import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { commitSides, type AskedCommits } from './commits.ts';
import { commitsBetween, commitsBroughtBy, filesChangedBy } from './git.ts';
import { layoutsOfCommit, nextLayout } from './layouts.ts';
import { closeNewFiles } from '../../files.ts';
import { newClosedFolder, newFolder } from '../../../test/fixtures/new-folder.ts';

const serve = './server {port}';

const buildsIn = (place: string) =>
  readdirSync(place, { withFileTypes: true }).flatMap((entry) =>
    entry.isDirectory() ? [entry.name] : [],
  );

/** A repository whose file `page` is 1 at `first` and 2 at main; `git` and `write` work in it. */
function repository() {
  const folder = newFolder();
  const repo = path.join(folder, 'repo');
  const place = path.join(newClosedFolder(), 'kept');
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
    const takeTurn = () => Promise.resolve();
    await make(new AbortController().signal, (more) => lines.push(...more), takeTurn);
    const folders = given.map(({ source }) =>
      source.kind === 'command' ? (source.folder ?? '') : '',
    );
    const read = (file: string) =>
      folders.map((tree) => {
        const there = path.join(tree, file);
        return existsSync(there) ? readFileSync(there, 'utf8').trim() : undefined;
      });
    return { given, folders, read, lines: lines.splice(0) };
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
  vi.stubEnv('PATH', `${newFolder()}:${process.env['PATH']}`);
  expect((await made(['first', 'main'], { build })).lines[0]).toMatch(/built in/);
  expect(files()).toEqual(before);
});

test('a commit is open to other users if the repository is, and the file that is not committed', async () => {
  const { repo, made, write } = repository();
  const modes = async () => {
    const { folders } = await made(['main', 'worktree']);
    return folders.map((tree) => (statSync(path.dirname(tree)).mode & 0o777).toString(8));
  };
  write('secrets', 'one');
  expect(await modes()).toEqual(['700', '700']);
  chmodSync(path.dirname(repo), 0o755);
  expect(await modes()).toEqual(['755', '755']);
  chmodSync(path.join(repo, 'secrets'), 0o600);
  expect(await modes()).toEqual(['755', '700']);
  chmodSync(path.join(repo, '.git'), 0o700);
  expect(await modes()).toEqual(['700', '700']);
});

test('a commit that a search makes after its first run has files with the same modes', async () => {
  const { made } = repository();
  const mode = async (commit: string) => {
    const [tree = ''] = (await made([commit, 'worktree'])).folders;
    return [tree, path.join(tree, 'page')].map((place) => statSync(place).mode & 0o077);
  };
  const before = await mode('main');
  const umask = process.umask();
  onTestFinished(() => void process.umask(umask));
  closeNewFiles();
  expect(await mode('first')).toEqual(before);
});

test('a worktree is called by its time, since its changes may be others in the next run', async () => {
  const { given } = await repository().made(['main', 'worktree']);
  expect(given.map((side) => side.given)).toEqual([
    expect.stringMatching(/^main \([0-9a-f]{9}\)$/),
    expect.stringMatching(/^worktree \([0-9a-f]{9} with changes of 20\d\d-\d\d-\d\d .* UTC\)$/),
  ]);
});

test('two names of one commit are built in two folders', async () => {
  const { made } = repository();
  const { folders, lines } = await made(['a=main', 'b=HEAD', 'c=main'], { build: 'true' });
  expect(new Set(folders).size).toBe(3);
  expect(lines.filter((line) => line.includes('built in'))).toHaveLength(3);
});

test('a commit in whose folder its server wrote is made anew', async () => {
  const { made } = repository();
  const build = 'ln -s . loop; cp page built';
  const first = await made(['first', 'HEAD'], { build });
  writeFileSync(path.join(first.folders[0] ?? '', 'data'), 'of a run');
  const again = await made(['first', 'HEAD'], { build });
  expect(again.lines).toEqual([
    'first has other files since its last run, so it is made anew',
    expect.stringMatching(/^first is .*, built in/),
    expect.stringMatching(/^head is .*, built before$/),
  ]);
  expect(again.read('data')).toEqual([undefined, undefined]);
});

test('a commit is made anew after a day, since a compiler may be another', async () => {
  const { place, made } = repository();
  const build = 'cp page built';
  await made(['first', 'HEAD'], { build });
  const old = new Date(Date.now() - 25 * 3_600_000);
  for (const name of buildsIn(place)) utimesSync(path.join(place, name, 'done'), old, old);
  for (const line of (await made(['first', 'HEAD'], { build })).lines)
    expect(line).toContain('built in');
});

test('files that a repository has not fetched or not checked out are named', async () => {
  const { repo, place, git, write, made } = repository();
  write('other', 'a file of its own');
  git('add', '.');
  git('commit', '--quiet', '--message', 'Other');
  git('config', 'uploadpack.allowFilter', 'true');
  const partial = path.join(newFolder(), 'repo');
  git('clone', '--quiet', '--filter=blob:none', `file://${repo}`, partial);
  rmSync(path.join(place), { recursive: true, force: true });
  await expect(made(['old=origin/first', 'main'], { repo: partial })).rejects.toThrow(
    /^old: the repository has not fetched page, as it is a partial clone: git checkout \w{9} there fetches it$/,
  );
  const ran = path.join(newFolder(), 'ran');
  git('-C', partial, 'config', 'remote.origin.url', `ext::touch ${ran}`);
  git('-C', partial, 'config', 'protocol.ext.allow', 'always');
  await expect(made(['1'.repeat(40), 'main'], { repo: partial })).rejects.toThrow(/^--repo \S+: /);
  expect(existsSync(ran)).toBe(false);
  git('update-index', '--skip-worktree', 'other');
  await expect(made(['main', 'worktree'])).rejects.toThrow(
    'worktree lacks other, which is not checked out: git sparse-checkout disable',
  );
});

test('worktree has changes and new files, and not what git ignores', async () => {
  const { write, git, made } = repository();
  write('.gitignore', 'ignored');
  git('add', '.');
  git('commit', '--quiet', '--message', 'Ignore');
  write('page', '3');
  write('new', 'new');
  write('ignored', 'x');
  const { read, lines } = await made(['main', 'worktree']);
  expect(read('page')).toEqual(['2', '3']);
  expect(read('new')).toEqual([undefined, 'new']);
  expect(read('ignored')).toEqual([undefined, undefined]);
  expect(lines[1]).toMatch(/^worktree is \w{9} \(.*\) with what is not committed$/);
  write('page', '4');
  expect((await made(['main', 'worktree'])).read('page')).toEqual(['2', '4']);
});

test('worktree has links and deletions as they are, whatever the settings of diff, and changes no file of git', async () => {
  const { repo, place, write, git, made } = repository();
  const outside = newFolder();
  symlinkSync(outside, path.join(repo, 'part'));
  write('.gitignore', 'ignored');
  write('lines', `${'line\n'.repeat(9)}`);
  write('gone', '');
  git('add', '.');
  git('commit', '--quiet', '--message', 'Lines');
  // Git no longer looks at the link, and sees a new file behind it.
  git('update-index', '--assume-unchanged', 'part');
  rmSync(path.join(repo, 'part'));
  mkdirSync(path.join(repo, 'part'));
  write('part/file', 'part');
  write('lines', `${'line\n'.repeat(5)}other\n${'line\n'.repeat(4)}`);
  rmSync(path.join(repo, 'gone'));
  symlinkSync('page', path.join(repo, 'link'));
  write('ignored', 'added');
  git('add', '--force', 'ignored');
  git('config', 'diff.context', '0');
  git('config', 'core.fsmonitor', `touch ${outside}/ran; false`);
  // The index knows it with another time.
  utimesSync(path.join(repo, 'page'), 1, 1);
  const states = () =>
    readdirSync(path.join(repo, '.git'), { recursive: true, encoding: 'utf8' })
      .map((file) => [file, statSync(path.join(repo, '.git', file)).mtimeMs])
      .sort();
  const before = states();
  const { read } = await made(['main', 'worktree']);
  expect(states()).toEqual(before);
  expect(read('lines')[1]).toMatch(/other/);
  expect(read('part/file')).toEqual([undefined, 'part']);
  expect(read('ignored')).toEqual([undefined, 'added']);
  expect(read('gone')).toEqual(['', undefined]);
  expect(readdirSync(outside)).toEqual([]);
  // A link to another place is no folder of the commit.
  await expect(made(['main', 'worktree'], { repo: path.join(repo, 'part') })).rejects.toThrow(
    'main has no folder part/',
  );
  const kept = readdirSync(place).find((name) => name.startsWith('worktree-')) ?? '';
  expect(readlinkSync(path.join(place, kept, 'tree/link'))).toBe('page');
});

test('filters and line ends of the repository make the files of commits and of the worktree alike', async () => {
  const { git, made, write } = repository();
  git('config', 'filter.louder.clean', 'tr A-Z a-z');
  git('config', 'filter.louder.smudge', 'tr a-z A-Z');
  git('config', 'core.autocrlf', 'true');
  write('.gitattributes', 'loud filter=louder\n');
  write('loud', 'A PAGE');
  write('lines', 'one\r\n');
  git('add', '.');
  git('commit', '--quiet', '--message', 'Filtered');
  const { folders, read } = await made(['main', 'worktree']);
  expect(read('loud')).toEqual(['A PAGE', 'A PAGE']);
  for (const folder of folders)
    expect(readFileSync(path.join(folder, 'lines'), 'utf8')).toBe('one\r\n');
});

test('a shallow repository has commits that no branch has', async () => {
  const { repo, git, made } = repository();
  const shallow = path.join(newFolder(), 'repo');
  git('config', 'uploadpack.allowAnySHA1InWant', 'true');
  git('clone', '--quiet', '--depth', '1', `file://${repo}`, shallow);
  const first = git('rev-parse', 'first');
  git('-C', shallow, 'fetch', '--quiet', '--depth', '1', 'origin', first);
  writeFileSync(path.join(shallow, 'page'), '3');
  const { given, read } = await made([first, 'HEAD', 'worktree'], { repo: shallow });
  expect(given[0]?.name).toContain(first.slice(0, 9));
  expect(given[0]?.name).not.toContain(first.slice(0, 10));
  expect(read('page')).toEqual(['1', '2', '3']);
});

test('hooks of the user do not run, and a subject has no control characters', async () => {
  const { git, made } = repository();
  git('commit', '--quiet', '--allow-empty', '--message', 'A \x1b[31msubject');
  const home = newFolder();
  vi.stubEnv('HOME', home);
  const hook = path.join(home, 'post-checkout');
  writeFileSync(hook, `#!/bin/sh\ntouch ${home}/ran; exit 1`, { mode: 0o755 });
  writeFileSync(path.join(home, '.gitconfig'), `[core]\nhooksPath = ${home}\n`);
  const { lines } = await made(['first', 'main']);
  expect(lines[1]).toMatch(/^main is \w{9} \(\S+ A {2}\[31msubject\)$/);
  expect(existsSync(path.join(home, 'ran'))).toBe(false);
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
  const build = 'echo "${GIT_DIR-none}" >dir';
  await made(['main', '@'], { build });
  const both = await made(['main', '@'], { repo: path.join(repo, 'part'), build });
  expect(both.given.map(({ name }) => name)).toEqual(['main', 'commit']);
  expect(both.read('file')).toEqual(['part', 'part']);
  expect(both.read('dir')).toEqual(['none', 'none']);
});

test('the commits that were used last are kept', async () => {
  const { place, made } = repository();
  mkdirSync(place);
  for (let old = 0; old < 25; old++) mkdirSync(path.join(place, `old-${old}`));
  await made(['first', 'main']);
  const kept = buildsIn(place);
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
      new RegExp(
        `dubious ownership .*: name a clone of your own, or trust it by git config --global --add safe.directory ${repo}, and the same for ${repo}/.git$`,
      ),
    );
  },
);

test('a build that fails shows its last lines, each once, and is made again', async () => {
  const { made, lines } = repository();
  const build = 'seq 100; echo no rule >&2; exit 2';
  for (let time = 1; time <= 2; time++) {
    await expect(made(['first', 'main'], { build })).rejects.toThrow(
      /^the build of first ended with code 2: no rule$/,
    );
    // The last one is in the error alone.
    expect(lines.splice(0)).toEqual(Array.from({ length: 15 }, (_, at) => `${86 + at}`));
  }
  await expect(made(['first', 'main'], { build: 'exit 3' })).rejects.toThrow(/with code 3$/);
  expect(lines).toEqual([]);
});

test('what is no repository, commit or pair of names is refused in one line', async () => {
  const { repo, made } = repository();
  await expect(made(['main'])).rejects.toThrow(
    /^compare wants two sides or more, and main is one: /,
  );
  await expect(made(['main', 'main'])).rejects.toThrow(/^two sides are named main: /);
  await expect(made(['main', 'nothing'])).rejects.toThrow(`--repo ${repo}: nothing is no commit`);
  await expect(made(['main', '--all'])).rejects.toThrow(/^--repo .*--all/);
  await expect(made(['first', 'first..main'])).rejects.toThrow(/: first\.\.main is no commit$/);
  await expect(made(['first', 'main:page'])).rejects.toThrow(/expected commit type/);
  await expect(made(['a', 'b'], { repo: path.join(repo, 'page') })).rejects.toThrow(
    /^--repo: there is no folder .*page$/,
  );
  const empty = newFolder();
  await expect(made(['a', 'b'], { repo: empty })).rejects.toThrow(
    /^--repo .*: not a git repository/,
  );
  await expect(made(['a', 'b'], { repo: `${empty}/none` })).rejects.toThrow(
    `--repo: there is no folder ${empty}/none`,
  );
});

test('commits are built outside of a checkout of bakeoff, whose package.json and node_modules are not theirs', async () => {
  vi.stubEnv('BAKEOFF_HOME', '');
  vi.resetModules();
  const { kept } = await import('./kept.ts');
  const { projectRoot } = await import('../../setup/paths.ts');
  vi.resetModules();
  expect(path.relative(projectRoot, kept.folder)).toMatch(/^\.\.\//);
});

const isShared = (statSync(tmpdir()).mode & 0o002) !== 0;

test.runIf(isShared)('nothing is built where others may put packages', async () => {
  const { repo } = repository();
  const place = path.join(newFolder(), 'kept');
  const asked = { repo, build: undefined, serve };
  await expect(commitSides(['first', 'main'], asked, place)).rejects.toThrow(
    /^no commit is built in .*: others may write to .*, and could put packages there that it loads; name another/,
  );
});

test('what npm says of a build that fails is shown after `npm run -s`, without its hints', async () => {
  vi.stubEnv('npm_config_loglevel', 'silent');
  const { made, lines } = repository();
  await expect(made(['first', 'main'], { build: 'npm ci --offline' })).rejects.toThrow(
    /^the build of first ended with code 1: npm error (?!A complete log)/,
  );
  expect(lines.join('\n')).toContain('npm error');
});

test("a program that a build installs for all, or that is the repository's, is refused", async () => {
  const { repo, made, write } = repository();
  const shared = path.join(newFolder(), 'server');
  const installs = `printf '#!/bin/sh\\n' >${shared}; chmod +x ${shared}`;
  const words = ['first', 'main'];
  const installed = { build: installs, serve: `${shared} {port}` };
  for (const run of ['first', 'second'])
    await expect(made(words, installed), run).rejects.toThrow(
      `--serve runs ${shared}, which the builds have just written, for each commit: have --build`,
    );
  write('own', '');
  await expect(made(words, { serve: `${repo}/own {port}` })).rejects.toThrow(
    `--serve runs ${repo}/own of the repository for each commit`,
  );
  // A program that was there before, and one that another has replaced since the builds.
  for (const run of ['first', 'second']) {
    const { folders } = await made(words, { build: 'cp page built', serve: `${shared} {port}` });
    expect(folders, run).toHaveLength(2);
    writeFileSync(shared, run);
  }
});

test('a search goes along first parents from a commit that is one of them', async () => {
  const { repo, git, write } = repository();
  const commit = (text: string) => {
    write('page', text);
    git('commit', '--quiet', '--all', '--message', text);
    return git('rev-parse', 'HEAD');
  };
  git('checkout', '--quiet', 'first');
  const released = commit('released \u001B[2J');
  const fork = git('rev-parse', 'first~').slice(0, 9);
  const aside = `--bad main does not come after --good first by first parents: they part at ${fork}, which may be the good one`;
  await expect(commitsBetween(repo, 'first', 'main')).rejects.toThrow(aside);
  const [, printed] = await commitsBetween(repo, 'first~', 'first');
  expect(printed?.about).toMatch(/^\d{4}-\d\d-\d\d released {2}\[2J$/);
  git('checkout', '--quiet', 'main');
  git('merge', '--quiet', '--strategy', 'ours', '--no-edit', 'first');
  await expect(commitsBetween(repo, 'first', 'main')).rejects.toThrow(
    /by first parents: they part/,
  );
  const hashes = (await commitsBetween(repo, 'first~', 'main')).map(({ hash }) => hash);
  expect(hashes).toHaveLength(3);
  expect(hashes).not.toContain(released);
});

test('a merge brings in what its first parent has not, and may be more than that', async () => {
  const { repo, git, write } = repository();
  const commit = (file: string, text: string) => {
    write(file, text);
    git('add', '.');
    git('commit', '--quiet', '--message', text);
  };
  const merge = (branch: string, ...more: string[]) =>
    git('merge', '--quiet', '--no-ff', '--message', `Merge ${branch}`, ...more, branch);
  const subjects = async (...had: string[]) => {
    const commits = await commitsBroughtBy(repo, 'first', had);
    return commits.map(({ about }) => about.replace(/^\S+ /, ''));
  };
  git('checkout', '--quiet', 'first');
  commit('side', 'Aside');
  // A branch that is brought up to date has its own commits on both sides of that.
  merge('main');
  commit('side', 'Aside again');
  git('checkout', '--quiet', 'main');
  merge('first');
  expect(await subjects('main^1')).toEqual(['Page 1', 'Aside', 'Merge main', 'Aside again']);
  expect(await filesChangedBy(repo, 'main')).toEqual([]);
  await expect(subjects('main')).rejects.toThrow('it brings in no history');
  write('other', 'what neither has');
  git('add', '.');
  git('commit', '--quiet', '--amend', '--no-edit');
  expect(await filesChangedBy(repo, 'main')).toEqual(['other']);
});

test('{salt} makes several builds of each commit, and after a load its side starts in the next one', async () => {
  const { made, place } = repository();
  const { read, lines } = await made(['first', 'main'], { build: 'echo {salt} >layout' });
  expect(buildsIn(place)).toHaveLength(2 * layoutsOfCommit);
  expect(lines).toHaveLength(2);
  expect(lines[1]).toMatch(/^main is .*, in 10 layouts, the last one, built in /);
  const layouts = () => read('layout');
  const load = async (name: string) => {
    const stages = [{ planned: { variant: { name } } }];
    await (await nextLayout.begin({ stages } as never)).end(undefined);
  };
  expect(layouts()).toEqual(['1', '1']);
  await load('main');
  expect(layouts()).toEqual(['1', '2']);
  for (let count = 1; count < layoutsOfCommit; count++) await load('main');
  await load('of another run');
  expect(layouts()).toEqual(['1', '1']);
});
