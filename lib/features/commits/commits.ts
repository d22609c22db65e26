// Sides that are commits: each is cloned into bakeoff's folder, and built there. The repository itself is not changed.
import { createHash, randomBytes } from 'node:crypto';
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
import { whoMayWrite } from '../../../bin/trust.mjs';
import type { AddedSides } from '../../cli/feature.ts';
import { asName, readCommand, readName, requireDifferent, requireNumber } from '../../cli/sides.ts';
import { inOneLine, UserError } from '../../errors.ts';
import { makeOwnFolder } from '../../files.ts';
import { duration } from '../../format.ts';
import { lockFile } from '../../machine/locks.ts';
import { leaveToCaller, removeFolder } from '../../process.ts';
import { runOwnCommand } from '../../servers/own-command.ts';
import { find, thisMachine } from '../../setup/machine.ts';
import { writeWhole } from '../../writing.ts';
import { commitCalled, fileOfGit, git, repositoryAt, type Repository } from './git.ts';
import { kept } from './kept.ts';
import { layoutsOfCommit, salt, startInTurn } from './layouts.ts';

/** What is not committed, in place of a commit. */
const worktree = 'worktree';
const buildSeconds = 900;
/** The other side may be built today, and a compiler may have been replaced since. */
const keptHours = 24;
/** Older builds than these, those of the run among them, are removed. */
const mostKept = 20;
/** Number of lines that are shown of a build that fails, above its error. */
const linesOfFailure = 15;

export interface AskedCommits {
  repo: string;
  /** Absent: a commit needs none. */
  build: string | undefined;
  serve: string;
}

interface Asked extends Repository {
  build: string | undefined;
  /** Where built commits are kept. */
  place: string;
  /** A part of their folders' names. */
  secret: string;
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
  /** Its number, of several. */
  layout?: number;
}

/**
 * Finds the commits. Throws UserError (exit code 2).
 * @param words [NAME=]COMMIT
 * @param place where built commits are kept
 */
export async function commitSides(
  words: readonly string[],
  { repo, build, serve }: AskedCommits,
  place: string = kept.folder,
): Promise<AddedSides> {
  requireNumber(words, "main HEAD --repo DIR --serve './server -p {port}'");
  const command = readCommand(serve);
  const repository = { ...(await repositoryAt(repo)), build, place, secret: await secretOf(place) };
  const commits: Commit[] = [];
  const withLayouts = build?.includes(salt) === true;
  for (const word of words) {
    const commit = await commitOf(word, repository);
    const alike = commits.filter(
      ({ hash, isWorktree }) => hash === commit.hash && isWorktree === commit.isWorktree,
    );
    // Two names of one commit are two servers, which may each need a folder of its own.
    commits.push(
      alike.length === 0 ? commit : inFolder(commit, `${commit.folder}-${alike.length + 1}`),
    );
  }
  requireDifferent(commits.map(({ name }) => name));
  const sides = commits.map((commit) => ({
    commit,
    builds: withLayouts ? layoutsOf(commit) : [commit],
    start: withLayouts ? `${commit.folder}-now` : commit.tree,
  }));
  const builds = sides.flatMap((side) => side.builds);
  return {
    given: sides.map(({ commit: { name, hash }, start }) => ({
      name,
      given: `${name} (${hash.slice(0, 9)})`,
      source: { ...command, folder: path.join(start, repository.within) },
    })),
    make: async (signal, sayRaw) => {
      const say = (lines: readonly string[]) => sayRaw(lines.map(inOneLine));
      await holdFolder(place, signal, say);
      try {
        for (const commit of builds) await makeCommit(commit, repository, signal, say);
        await requireOwnPrograms(command.program, builds, repository);
        await removeOld(place, builds);
        for (const { commit, builds: layouts, start } of sides)
          if (withLayouts)
            startInTurn(
              commit.name,
              start,
              layouts.map(({ tree }) => tree),
            );
      } finally {
        await leaveToCaller(place);
      }
    },
  };
}

/**
 * Refuses a program that all sides would share: one that a build installs in a place for all, or that of the repository itself.
 * @param program as --serve names it
 */
async function requireOwnPrograms(
  program: string,
  commits: readonly Commit[],
  { top, within }: Repository,
): Promise<void> {
  const clonedAtMs = Math.min(...commits.map(({ folder }) => statSync(folder).birthtimeMs));
  for (const { name, tree } of commits) {
    const named = program.includes('/')
      ? path.resolve(tree, within, program)
      : await find(program, thisMachine());
    // The start says what is wrong.
    if (named === undefined || !existsSync(named)) continue;
    const file = realpathSync(named);
    if (isBelow(file, realpathSync(tree))) continue;
    const remedy = "have --build put the program into the commit's folder, and --serve start that";
    if (isBelow(file, realpathSync(top)))
      throw new UserError(`--serve runs ${file} of the repository for each commit: ${remedy}`);
    // File systems without a time of birth have 0.
    if (clonedAtMs > 0 && statSync(file).ctimeMs > clonedAtMs)
      throw new UserError(
        `--serve runs ${file}, which has been written since ${name} was cloned, for each commit: ${remedy}`,
      );
  }
}

const isBelow = (file: string, folder: string): boolean => file.startsWith(`${folder}/`);

async function commitOf(
  text: string,
  { top, within, build, place, secret }: Asked,
): Promise<Commit> {
  const { name: given, word } = readName(text);
  const isWorktree = word === worktree;
  const ref = isWorktree ? 'HEAD' : word;
  const { hash, about } = await commitCalled(top, ref);
  // A whole hash is too wide for a table.
  const made = asName(word.replace(/^([0-9a-f]{9})[0-9a-f]{31,}$/, '$1'));
  const name = given ?? (/\D/.test(made) ? made : asName(`commit-${made}`));
  const key = createHash('sha256').update(
    JSON.stringify([top, within, build, buildVariables(), secret]),
  );
  const folder = path.join(
    place,
    `${isWorktree ? worktree : hash.slice(0, 12)}-${key.digest('hex').slice(0, 12)}`,
  );
  return inFolder({ name, hash, isWorktree, about }, folder);
}

/** A commit once for each layout. */
function layoutsOf(commit: Commit): Commit[] {
  return Array.from({ length: layoutsOfCommit }, (_, index) => ({
    ...inFolder(commit, `${commit.folder}-layout-${index + 1}`),
    layout: index + 1,
  }));
}

function inFolder(commit: Omit<Commit, 'folder' | 'tree'>, folder: string): Commit {
  return { ...commit, folder, tree: path.join(folder, 'tree') };
}

/** The variables that say which compilers and tools there are, and that these read. A build with others is another build. */
function buildVariables(): string[] {
  return Object.entries(process.env)
    .filter(([name]) =>
      /^(?:CC|CXX|LD|AR|NODE_\w+|GO\w*|CGO_\w+|CARGO_\w+|CMAKE_\w+|RUST\w+|JAVA_HOME|\w*PATH|\w*FLAGS)$/.test(
        name,
      ),
    )
    .map((pair) => pair.join('='))
    .sort();
}

/**
 * Makes the place, and returns what other users cannot know of the names in it. They may pass through it, since servers drop to other
 * users, but not list it: git knows no files that are for their owner alone.
 */
async function secretOf(place: string): Promise<string> {
  makeOwnFolder(place);
  requireClosed(place);
  chmodSync(place, 0o711);
  const file = path.join(place, 'secret');
  if (!existsSync(file)) await writeWhole(file, randomBytes(16).toString('hex'), 0o600);
  return readFileSync(file, 'utf8');
}

/** The folders whose lock this process has. */
const held = new Set<string>();

/** Keeps others from building and cleaning there until this process ends. */
async function holdFolder(
  folder: string,
  signal: AbortSignal,
  say: (lines: readonly string[]) => void,
): Promise<void> {
  const file = path.join(folder, kept.lock);
  if (held.has(folder)) return;
  if ((await lockFile(file)) === null) {
    say(['waiting for another comparison of commits']);
    while ((await lockFile(file, 1)) === null) signal.throwIfAborted();
  }
  held.add(folder);
}

/**
 * Node, npm, cargo and others look for packages and settings in all folders above a program's own, so nobody else may put some there.
 * @throws UserError
 */
function requireClosed(folder: string): void {
  if (process.geteuid?.() !== 0) return;
  for (let place = folder; place !== path.dirname(place);) {
    place = path.dirname(place);
    const problem = whoMayWrite(place);
    if (problem !== undefined)
      throw new UserError(
        `root builds no commits in ${folder}: ${problem}, and could put packages there that they load; name another folder in BAKEOFF_HOME`,
      );
  }
}

async function makeCommit(
  commit: Commit,
  { top, within, build }: Asked,
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
      utimesSync(folder, new Date(), new Date());
      if (isLast) say([build === undefined ? what : `${what}${inLayouts}, built before`]);
      return;
    }
    say([`${name} has other files since its last run, so it is made anew`]);
  }
  await removeFolder(folder);
  mkdirSync(folder);
  await git(top, ['clone', '--quiet', '--no-checkout', '--shared', '--', top, tree], signal);
  const shallow = await fileOfGit(top, 'shallow');
  if (existsSync(shallow)) {
    // Then git shares nothing, and copies only what branches and tags have: a commit may have been fetched without one.
    const borrowed = path.join(tree, borrowedFrom);
    writeFileSync(borrowed, `${await fileOfGit(top, 'objects')}\n`);
    cpSync(shallow, path.join(tree, '.git/shallow'));
  }
  if (isWorktree) await takeChanges(top, commit, signal);
  else await git(tree, ['checkout', '--quiet', '--detach', hash], signal);
  await requireAllFiles(commit, signal);
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

function isRecent(done: string): boolean {
  const written = statSync(done, { throwIfNoEntry: false })?.mtimeMs ?? -Infinity;
  return Date.now() - written < keptHours * 3_600_000;
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
  // By hand: readdir's own `recursive` follows links.
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
 * Adds the repository's folder to the clone's index, and makes the clone's files from that: so git reads no settings of the repository and
 * writes nothing there. Files that git ignores are left out, unless they were added.
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

/** Whether there is such a folder, and not by a link that leaves the clone. */
function isFolderBelow(tree: string, within: string): boolean {
  const folder = path.join(tree, within);
  if (!statSync(folder, { throwIfNoEntry: false })?.isDirectory()) return false;
  return isBelow(`${realpathSync(folder)}/`, realpathSync(tree));
}

/** A file of a clone: where the objects are that it has not. */
const borrowedFrom = '.git/objects/info/alternates';

/** Removes the builds that have not been used for longest. */
async function removeOld(place: string, used: readonly Commit[]): Promise<void> {
  const usedFolders = new Set(used.map(({ folder }) => folder));
  const folders = readdirSync(place, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map((entry) => path.join(place, entry.name))
    .filter((folder) => !usedFolders.has(folder))
    .sort((a, b) => statSync(b).mtimeMs - statSync(a).mtimeMs);
  for (const folder of folders.slice(Math.max(0, mostKept - usedFolders.size)))
    await removeFolder(folder);
}
