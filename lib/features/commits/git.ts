// The user's repository, as git shows it. It is never changed.
import { statSync } from 'node:fs';
import path from 'node:path';
import { inOneLine, usageError, UserError } from '../../errors.ts';
import { requirePlainPath, userUmask } from '../../files.ts';
import { present } from '../../present.ts';
import { run, withoutVariables, withUmask } from '../../process.ts';
import { fromCallersFolder } from '../../setup/paths.ts';

const gitSeconds = 300;

/** Bakeoff's own umask closes all files from a run's start on: what a search makes after its first run would have other modes. */
const withOwnUmask = withUmask(userUmask | 0o022);

/** A hook's variables, which name its repository. Builds and servers may use git, too. */
const ofAnotherRepository = [
  'GIT_DIR',
  'GIT_WORK_TREE',
  'GIT_INDEX_FILE',
  'GIT_PREFIX',
  'GIT_COMMON_DIR',
  'GIT_OBJECT_DIRECTORY',
  'GIT_ALTERNATE_OBJECT_DIRECTORIES',
  'GIT_NAMESPACE',
];

/** A repository of the user's. */
export interface Repository {
  top: string;
  /** The folder in it that --repo names; '' for the whole. */
  within: string;
}

/** Finds it, and forgets a hook's variables. Throws UserError (exit code 2). */
export async function repositoryAt(repo: string): Promise<Repository> {
  for (const name of ofAnotherRepository) delete process.env[name];
  const folder = fromCallersFolder(repo);
  requirePlainPath(folder, '--repo names');
  if (!statSync(folder, { throwIfNoEntry: false })?.isDirectory())
    throw usageError(`--repo: there is no folder ${folder}`);
  const shown = await git(folder, ['rev-parse', '--show-toplevel', '--show-prefix']);
  const [top = '', within = ''] = shown.split('\n');
  return { top, within };
}

/** A commit of a history. */
export interface Listed {
  hash: string;
  /** Its date and subject. */
  about: string;
  /** Hashes. */
  parents: readonly string[];
}

/** Lists commits. @param args of git log */
export async function listed(top: string, args: readonly string[]): Promise<Listed[]> {
  const shown = await git(top, ['log', '--no-show-signature', '--format=%H\t%P\t%cs %s', ...args]);
  return shown
    .split('\n')
    .filter(Boolean)
    .map((line): Listed => {
      const [hash = '', parents = '', ...about] = line.split('\t');
      return { hash, about: inOneLine(about.join(' ').slice(0, 100)), parents: parents.split(' ') };
    });
}

/** Returns the commit of that name. Throws UserError (exit code 2) for what is none. */
export async function commitCalled(top: string, name: string): Promise<Listed> {
  const object = await git(top, ['rev-parse', '--verify', '--end-of-options', name]);
  const [commit] = await listed(top, ['--no-walk', `${object.trim()}^{commit}`]);
  if (commit === undefined) throw usageError(`--repo: ${name} is no commit`);
  return commit;
}

/**
 * Returns the good commit and those after it up to the bad one, by first parents.
 * @throws UserError (exit code 2) for what is no commit, or if the bad one does not come after the good one
 */
export async function commitsBetween(repo: string, good: string, bad: string): Promise<Listed[]> {
  const { top } = await repositoryAt(repo);
  const [first, last] = [await commitCalled(top, good), await commitCalled(top, bad)];
  const range = `${first.hash}..${last.hash}`;
  const after = await listed(top, ['--first-parent', '--reverse', range]);
  if (after.length === 0)
    throw usageError(`--bad ${bad} has no commit after --good ${good}: is it the other way round?`);
  if (after[0]?.parents[0] !== first.hash) {
    const fork = await git(top, ['merge-base', first.hash, last.hash]);
    throw usageError(
      `--bad ${bad} does not come after --good ${good} by first parents: they part at ${fork.slice(0, 9)}, which may be the good one`,
    );
  }
  return [first, ...after];
}

/**
 * Returns the commits that a merge brings in, by first parents, after the one that they begin at.
 * @param theirs the merge's second parent
 * @param had commits that have what was there before
 */
export async function commitsBroughtBy(
  repo: string,
  theirs: string,
  had: readonly string[],
): Promise<Listed[]> {
  const { top } = await repositoryAt(repo);
  const brought = await listed(top, ['--first-parent', '--reverse', theirs, '--not', ...had]);
  const [base] = brought[0]?.parents ?? [];
  if (!base)
    throw new UserError('it brings in no history that begins at a commit of the other side');
  return [await commitCalled(top, base), ...brought];
}

/** Returns the files in which a merge differs from both of its parents: conflicts were resolved there, or something was changed. */
export async function filesChangedBy(repo: string, merge: string): Promise<string[]> {
  const { top } = await repositoryAt(repo);
  const plainly = ['--no-ext-diff', '--no-textconv', '--no-commit-id'];
  const shown = await git(top, ['diff-tree', '--cc', '--name-only', '-z', ...plainly, merge]);
  return shown.split('\0').filter(Boolean);
}

/** The path of a file of git's, also for a work tree that shares another's. */
export async function fileOfGit(top: string, file: string): Promise<string> {
  const shown = await git(top, ['rev-parse', '--git-path', file]);
  return path.resolve(top, shown.replace(/\n$/, ''));
}

/** Returns what git prints. Throws UserError (exit code 2) with its complaint. */
export async function git(
  folder: string,
  args: readonly string[],
  signal?: AbortSignal,
  input?: string,
): Promise<string> {
  const { code, stdout, stderr } = await run({
    command: 'git',
    // Neither the user's hooks nor a program that the repository's settings name.
    args: ['-c', 'core.hooksPath=/dev/null', '-c', 'core.fsmonitor=false', ...args],
    cwd: folder,
    before: withOwnUmask,
    env: {
      // The GIT_ variables of a hook name another repository.
      ...withoutVariables(process.env, 'GIT_'),
      GIT_LFS_SKIP_SMUDGE: '1',
      // A partial clone asks its remote for what is not there, by a program that its settings may name.
      GIT_ALLOW_PROTOCOL: args[0] === 'clone' ? 'file' : '',
      // A submodule's index stays as it is.
      GIT_OPTIONAL_LOCKS: '0',
      // Nobody is there to give a password.
      GIT_TERMINAL_PROMPT: '0',
      // Its complaints are read below.
      LC_ALL: 'C',
    },
    limit: {
      seconds: gitSeconds,
      message: `git ${args[0]} has not ended within ${gitSeconds} s, so it was ended`,
    },
    ...present({ signal, input }),
  });
  if (code === 0) return stdout;
  const lines = stderr.trim().split('\n');
  // Warnings may come first.
  const said = lines.find((line) => !line.startsWith('warning: '));
  const complaint =
    said?.replace(/^(?:fatal|error): /, '') || `git ${args[0]} ended with code ${code}`;
  const [, top] = /dubious ownership in repository at '(.*)'/.exec(complaint) ?? [];
  if (top !== undefined)
    throw usageError(
      `${complaint}, and its settings may name programs, which would run as you: name a clone of your own, or trust it by git config --global --add safe.directory ${top}, and the same for ${top}/.git`,
    );
  const why = complaint
    .replace('Needed a single revision', `${args.at(-1)} is no commit`)
    .replace(/^this operation must be .* work tree$/, 'it is bare: name a clone of it');
  throw new UserError(`--repo ${folder}: ${why}`, 2);
}
