// Makes a commit ready to start: clones the repository, checks the commit out, and builds it.
import { createHash } from 'node:crypto';
import {
  chmodSync,
  cpSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import path from 'node:path';
import { UserError } from '../../errors.ts';
import { allMayEnter, foldersUp } from '../../files.ts';
import { duration } from '../../format.ts';
import { removeFolder } from '../../process.ts';
import { runOwnCommand } from '../../servers/own-command.ts';
import { fileOfGit, git, type Repository } from './git.ts';
import { layoutsOfCommit, salt } from './layouts.ts';

const buildSeconds = 900;
/** The other side may be built today, and a compiler may have been replaced since. */
const keptHours = 24;
/** Number of lines that are shown of a build that fails, above its error. */
const linesOfFailure = 15;

/** A commit, or a layout of it. */
export interface Commit {
  name: string;
  hash: string;
  isWorktree: boolean;
  /** Its date and subject. */
  about: string;
  /** Where it is kept; its files are in `tree`. */
  folder: string;
  tree: string;
  /** Its number, of several. */
  layout?: number;
}

/**
 * Makes it, unless it is there from before. Throws UserError, or the signal's reason.
 * @param build the command; undefined: a commit needs none
 * @param say gets lines on what was made
 */
export async function makeCommit(
  commit: Commit,
  { top, within }: Repository,
  build: string | undefined,
  signal: AbortSignal,
  say: (lines: readonly string[]) => void,
): Promise<void> {
  const { name, hash, about, folder, tree, isWorktree, layout } = commit;
  const what = `${name} is ${hash.slice(0, 9)} (${about})${isWorktree ? ' with what is not committed' : ''}`;
  const isLast = layout === undefined || layout === layoutsOfCommit;
  const inLayouts = layout === undefined ? '' : `, in ${layout} layouts, the last one`;
  const done = path.join(folder, 'done');
  if (isRecent(done) && !isWorktree) {
    if (readFileSync(done, 'utf8') === filesIn(tree)) {
      chmodSync(folder, await modeOf(top, commit, signal));
      utimesSync(folder, new Date(), new Date());
      if (isLast) say([build === undefined ? what : `${what}${inLayouts}, built before`]);
      return;
    }
    say([`${name} has other files since its last run, so it is made anew`]);
  }
  await removeFolder(folder);
  mkdirSync(folder, { mode: 0o700 });
  await git(top, ['clone', '--quiet', '--no-checkout', '--shared', '--', top, tree], signal);
  const shallow = await fileOfGit(top, 'shallow');
  if (existsSync(shallow)) {
    // Then git shares nothing, and copies only what branches and tags have: a commit may have been fetched without one.
    const borrowed = path.join(tree, borrowedFrom);
    writeFileSync(borrowed, `${await fileOfGit(top, 'objects')}\n`);
    cpSync(shallow, path.join(tree, '.git/shallow'));
  }
  await takeFilters(top, tree, signal);
  if (isWorktree) await takeChanges(top, commit, signal);
  else await git(tree, ['checkout', '--quiet', '--detach', hash], signal);
  await requireAllFiles(commit, signal);
  chmodSync(folder, await modeOf(top, commit, signal));
  if (!isFolderBelow(tree, within))
    throw new UserError(`${name} has no folder ${within}: --repo names one that all have`);
  const beganAtMs = performance.now();
  if (build !== undefined)
    await runOwnCommand({
      command: build.replaceAll(salt, String(layout)),
      what: `the build of ${name}`,
      folder: path.join(tree, within),
      limitSeconds: buildSeconds,
      ifLate: 'give --build what takes less',
      ifLeft: 'start what servers need before bakeoff, or in --serve',
      signal,
      say: (line) => say([line]),
      // The error has the last line.
      onFailure: (output) =>
        say(
          output
            .trimEnd()
            .split('\n')
            .filter(Boolean)
            .slice(-linesOfFailure - 1, -1),
        ),
    });
  const took = duration((performance.now() - beganAtMs) / 1000);
  writeFileSync(done, filesIn(tree));
  if (isLast) say([build === undefined ? what : `${what}${inLayouts}, built in ${took}`]);
}

/** Other users may enter the folder of a commit if they may read it in the repository: servers may drop to them. */
async function modeOf(
  top: string,
  { tree, isWorktree }: Commit,
  signal: AbortSignal,
): Promise<number> {
  const sources = [top, await fileOfGit(top, 'objects')];
  // git keeps no modes but the one for programs.
  const files = isWorktree ? (await git(tree, ['ls-files', '-z'], signal)).split('\0') : [];
  const names = new Set(files.flatMap((file) => [file, ...foldersUp(path.dirname(file))]));
  const isOpen =
    sources.every(isOpenToAll) && [...names].every((name) => mayOthersRead(path.join(top, name)));
  return isOpen ? 0o755 : 0o700;
}

const isOpenToAll = (folder: string): boolean =>
  mayOthersRead(folder) && allMayEnter(path.dirname(realpathSync(folder)));

function mayOthersRead(file: string): boolean {
  const stats = lstatSync(file, { throwIfNoEntry: false });
  if (stats === undefined || stats.isSymbolicLink()) return true;
  const needed = stats.isDirectory() ? 0o005 : 0o004;
  return (stats.mode & needed) === needed;
}

function isRecent(done: string): boolean {
  const written = statSync(done, { throwIfNoEntry: false })?.mtimeMs ?? -Infinity;
  return Date.now() - written < keptHours * 3_600_000;
}

/** Filters and settings of line ends make a file out of what git stores. A clone does not have those of the repository. */
async function takeFilters(top: string, tree: string, signal: AbortSignal): Promise<void> {
  const settings = (await git(top, ['config', '--local', '--list', '-z'], signal)).split('\0');
  for (const setting of settings) {
    const [, name, value = 'true'] =
      /^(filter\..+?|core\.autocrlf|core\.eol)(?:\n(.*))?$/s.exec(setting) ?? [];
    if (name !== undefined) await git(tree, ['config', '--add', name, value], signal);
  }
}

/** A partial clone has not all files, and git's checkout then ends as if nothing were wrong. */
async function requireAllFiles({ name, hash, tree }: Commit, signal: AbortSignal): Promise<void> {
  const [missing] = (await git(tree, ['ls-files', '--deleted', '-z'], signal)).split('\0');
  if (missing)
    throw new UserError(
      `${name}: the repository has not fetched ${missing}, as it is a partial clone: git checkout ${hash.slice(0, 9)} there fetches it`,
    );
}

/**
 * Names, sizes and times of all files as one hash. A server may keep data or caches beside its program: with those of earlier runs it would
 * be compared with a commit that has none.
 */
function filesIn(tree: string): string {
  const hash = createHash('sha256');
  const folders = [''];
  // readdir's own `recursive` would follow links.
  for (const folder of folders) {
    const entries = readdirSync(path.join(tree, folder), { withFileTypes: true });
    for (const entry of entries.sort((a, b) => (a.name < b.name ? -1 : 1))) {
      const name = path.join(folder, entry.name);
      // Git changes files of its own whenever it looks at others.
      if (name === '.git') continue;
      const stats = lstatSync(path.join(tree, name));
      if (stats.isDirectory()) folders.push(name);
      else hash.update(`${name}\0${stats.size} ${stats.mtimeMs}\0`);
    }
  }
  return hash.digest('hex');
}

/**
 * Adds the repository's folder to the clone's index, and makes the clone's files from that: so git reads no other settings of the
 * repository, and writes nothing there. Files that git ignores are left out, unless they were added.
 */
async function takeChanges(top: string, { name, hash, tree }: Commit, signal: AbortSignal) {
  const states = (await git(top, ['ls-files', '-t', '-z'], signal)).split('\0');
  const skipped = states.find((line) => line.startsWith('S '));
  if (skipped !== undefined)
    throw new UserError(
      `${name} lacks ${skipped.slice(2)}, which is not checked out: git sparse-checkout disable`,
    );
  const exclude = await fileOfGit(top, 'info/exclude');
  if (existsSync(exclude)) cpSync(exclude, path.join(tree, '.git/info/exclude'));
  const added = ['diff-index', '--cached', '--diff-filter=A', '--name-only', '-z', hash, '--'];
  const files = (await git(top, added, signal)).split('\0').filter(Boolean);
  const there = files.filter((file) => lstatSync(path.join(top, file), { throwIfNoEntry: false }));
  const clone = [`--git-dir=${tree}/.git`, '--work-tree=.', '--literal-pathspecs'];
  // What the clone has not, git writes there, and does not look for it in the repository, where it would change times.
  const add = [...clone, '-c', 'core.looseCompression=0', '-c', 'core.fsync=none', 'add'];
  const borrowed = path.join(tree, borrowedFrom);
  await git(tree, ['update-ref', '--no-deref', 'HEAD', hash], signal);
  await git(tree, ['read-tree', hash], signal);
  renameSync(borrowed, `${borrowed}-aside`);
  await git(top, [...add, '--all'], signal);
  const named = ['--force', '--pathspec-from-file=-', '--pathspec-file-nul'];
  if (there.length > 0) await git(top, [...add, ...named], signal, there.join('\0'));
  renameSync(`${borrowed}-aside`, borrowed);
  await git(tree, ['checkout-index', '--all'], signal);
}

/** Returns whether there is such a folder, and not by a link that leaves the clone. */
function isFolderBelow(tree: string, within: string): boolean {
  const folder = path.join(tree, within);
  if (!statSync(folder, { throwIfNoEntry: false })?.isDirectory()) return false;
  return isBelow(`${realpathSync(folder)}/`, realpathSync(tree));
}

/** @param folder without links */
export const isBelow = (file: string, folder: string): boolean => file.startsWith(`${folder}/`);

/** A file of a clone: where the objects are that it has not. */
const borrowedFrom = '.git/objects/info/alternates';
