// Sides that are commits: each is cloned into bakeoff's folder, and built there. The repository itself is not changed.
import { createHash } from 'node:crypto';
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import path from 'node:path';
import type { AddedSides } from '../../cli/feature.ts';
import { asName, readCommand, readName, requireDifferent, requireNumber } from '../../cli/sides.ts';
import { usageError, UserError } from '../../errors.ts';
import { makeOwnFolder } from '../../files.ts';
import { duration } from '../../format.ts';
import { lockFile } from '../../machine/locks.ts';
import { present } from '../../present.ts';
import { leaveToCaller, run, withoutVariables } from '../../process.ts';
import { runOwnCommand } from '../../servers/before-start.ts';
import { bakeoffFolder, fromCallersFolder } from '../../setup/paths.ts';
import { kept } from './kept.ts';

/** What is not committed, in place of a commit. */
const worktree = 'worktree';
const buildSeconds = 900;
const gitSeconds = 300;
/** Builds that are kept, with those of the run. */
const mostKept = 20;
/** Number of lines that are shown of a build that fails. */
const linesOfFailure = 15;

export interface AskedCommits {
  repo: string;
  /** Absent: a commit needs none. */
  build: string | undefined;
  serve: string;
}

interface Repository {
  top: string;
  /** The folder in it that --repo names; '' for the whole. */
  within: string;
  build: string | undefined;
  /** Where built commits are kept. */
  place: string;
}

interface Commit {
  name: string;
  hash: string;
  isWorktree: boolean;
  /** Its date and subject. */
  about: string;
  /** Where it is kept; its files are in `tree`. */
  folder: string;
  tree: string;
}

/**
 * Finds the commits. Throws UserError (exit code 2).
 * @param words [NAME=]COMMIT
 * @param place where built commits are kept
 */
export async function commitSides(
  words: readonly string[],
  { repo, build, serve }: AskedCommits,
  place = path.join(bakeoffFolder, kept.folder),
): Promise<AddedSides> {
  requireNumber(words, "main HEAD --repo DIR --serve './server -p {port}'");
  const command = readCommand(serve);
  const repository = { ...(await repositoryAt(repo)), build, place };
  const commits: Commit[] = [];
  for (const word of words) commits.push(await commitOf(word, repository));
  requireDifferent(commits.map(({ name }) => name));
  return {
    given: commits.map(({ name, hash, tree }) => ({
      name,
      given: `${name} (${hash.slice(0, 9)})`,
      source: { ...command, folder: path.join(tree, repository.within) },
    })),
    make: async (signal, say) => {
      await holdFolder(place, signal, say);
      try {
        for (const commit of commits) await makeCommit(commit, repository, signal, say);
        removeOld(place, commits);
      } finally {
        await leaveToCaller(place);
      }
    },
  };
}

async function repositoryAt(repo: string): Promise<Pick<Repository, 'top' | 'within'>> {
  const folder = fromCallersFolder(repo);
  if (!existsSync(folder)) throw usageError(`--repo: there is no folder ${folder}`);
  const shown = await git(folder, ['rev-parse', '--show-toplevel', '--show-prefix']);
  const [top = '', within = ''] = shown.split('\n');
  return { top, within };
}

async function commitOf(text: string, { top, within, build, place }: Repository): Promise<Commit> {
  const { name: given, word } = readName(text);
  const isWorktree = word === worktree;
  const ref = isWorktree ? 'HEAD' : word;
  const plainLog = ['log', '-1', '--no-show-signature', '--format=%H %cs %s'];
  const shown = await git(top, [...plainLog, '--end-of-options', ref, '--']);
  const [, hash = '', about = ''] = /^(\w+) (.*)/.exec(shown) ?? [];
  const name = given ?? nameOf(word);
  const key = createHash('sha256').update(JSON.stringify([top, within, build, buildVariables()]));
  const folder = path.join(
    place,
    `${isWorktree ? worktree : hash.slice(0, 12)}-${key.digest('hex').slice(0, 12)}`,
  );
  const tree = path.join(folder, 'tree');
  return { name, hash, isWorktree, about, folder, tree };
}

/** A name for tables: not digits alone, and not empty, as of `@`. */
function nameOf(ref: string): string {
  const name = asName(ref);
  if (/\D/.test(name)) return name;
  return name === '' ? 'commit' : `commit-${name}`;
}

/** The variables that compilers and their tools read. A build with others is another build. */
function buildVariables(): string[] {
  return Object.entries(process.env)
    .filter(([name]) =>
      /^(?:CC|CXX|LD|AR|NODE_ENV|GO\w*|CGO_\w+|CARGO_\w+|RUST\w+|\w*FLAGS)$/.test(name),
    )
    .map((pair) => pair.join('='))
    .sort();
}

/** The folders whose lock this process has. */
const held = new Set<string>();

/** Keeps others from building and cleaning there until this process ends. */
async function holdFolder(
  folder: string,
  signal: AbortSignal,
  say: (lines: readonly string[]) => void,
): Promise<void> {
  makeOwnFolder(folder);
  const file = path.join(folder, kept.lock);
  if (held.has(folder)) return;
  if ((await lockFile(file)) === null) {
    say(['waiting for another comparison of commits']);
    while ((await lockFile(file, 1)) === null) signal.throwIfAborted();
  }
  held.add(folder);
}

async function makeCommit(
  commit: Commit,
  { top, within, build }: Repository,
  signal: AbortSignal,
  say: (lines: readonly string[]) => void,
): Promise<void> {
  const { name, hash, about, folder, tree, isWorktree } = commit;
  const what = `${name} is ${isWorktree ? 'what is not committed after ' : ''}${hash.slice(0, 9)} (${about})`;
  const done = path.join(folder, 'done');
  if (existsSync(done) && !isWorktree) {
    utimesSync(folder, new Date(), new Date());
    say([`${what}, built before`]);
    return;
  }
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder);
  await git(top, ['clone', '--quiet', '--no-checkout', '--shared', '--', top, tree], signal);
  await git(tree, ['checkout', '--quiet', '--detach', hash], signal);
  if (isWorktree) await takeChanges(top, commit, signal);
  if (!existsSync(path.join(tree, within)))
    throw new UserError(`${name} has no folder ${within}: --repo names one that all have`);
  const beganAtMs = performance.now();
  if (build !== undefined)
    await runOwnCommand({
      command: build,
      what: `the build of ${name}`,
      folder: path.join(tree, within),
      limitSeconds: buildSeconds,
      ifLate: 'give --build what takes less',
      ifLeft: 'start what servers need before bakeoff, or in --serve',
      signal,
      say: (line) => say([line]),
      onFailure: (output) => say(output.trimEnd().split('\n').slice(-linesOfFailure)),
    });
  const took = duration((performance.now() - beganAtMs) / 1000);
  writeFileSync(done, '');
  say([build === undefined ? what : `${what}, built in ${took}`]);
}

/** A diff that git can apply, whatever the user's settings make of it for people. */
const plainly = [
  '--binary',
  '--no-ext-diff',
  '--no-textconv',
  '--no-color',
  '--src-prefix=a/',
  '--dst-prefix=b/',
];

/** Puts what differs from HEAD in the repository's folder into the clone: changes, and files that git does not know and does not ignore. */
async function takeChanges(top: string, { folder, tree }: Commit, signal: AbortSignal) {
  const changes = path.join(folder, 'changes');
  await git(top, ['diff', ...plainly, `--output=${changes}`, 'HEAD', '--'], signal);
  if (statSync(changes).size > 0)
    await git(tree, ['apply', '--whitespace=nowarn', changes], signal);
  const others = await git(top, ['ls-files', '-z', '--others', '--exclude-standard'], signal);
  for (const file of others.split('\0').filter(Boolean))
    cpSync(path.join(top, file), path.join(tree, file), {
      recursive: true,
      // Otherwise a relative link leads into the repository.
      verbatimSymlinks: true,
    });
}

/** Removes the builds that have not been used for longest. */
function removeOld(place: string, used: readonly Commit[]): void {
  const usedFolders = new Set(used.map(({ folder }) => folder));
  const folders = readdirSync(place, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map((entry) => path.join(place, entry.name))
    .filter((folder) => !usedFolders.has(folder))
    .sort((a, b) => statSync(b).mtimeMs - statSync(a).mtimeMs);
  for (const folder of folders.slice(mostKept - usedFolders.size))
    rmSync(folder, { recursive: true, force: true });
}

/** Returns what git prints. Throws UserError (exit code 2) with its complaint. */
async function git(folder: string, args: readonly string[], signal?: AbortSignal): Promise<string> {
  const { code, stdout, stderr } = await run({
    command: 'git',
    args: [...args],
    cwd: folder,
    // Those of a hook name another repository. Nobody is there to give a password. Complaints are read below.
    env: { ...withoutVariables(process.env, 'GIT_'), GIT_TERMINAL_PROMPT: '0', LC_ALL: 'C' },
    limit: {
      seconds: gitSeconds,
      message: `git ${args[0]} has not ended within ${gitSeconds} s, so it was ended`,
    },
    ...present({ signal }),
  });
  if (code === 0) return stdout;
  const lines = stderr.trim().split('\n');
  // Warnings may come first.
  const said = lines.find((line) => line.startsWith('fatal: ')) ?? lines[0];
  const complaint = said?.replace(/^fatal: /, '') || `git ${args[0]} ended with code ${code}`;
  const [, top] = /dubious ownership in repository at '(.*)'/.exec(complaint) ?? [];
  if (top !== undefined)
    throw usageError(`${complaint}: git config --global --add safe.directory ${top}`);
  throw new UserError(`--repo ${folder}: ${complaint}`, 2);
}
