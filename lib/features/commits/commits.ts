// Sides that are commits: each is cloned into bakeoff's folder, and built there. The repository itself is not changed.
import { createHash } from 'node:crypto';
import { existsSync, realpathSync, statSync } from 'node:fs';
import path from 'node:path';
import type { AddedSides } from '../../cli/feature.ts';
import { asName, readCommand, readName, requireDifferent, requireNumber } from '../../cli/sides.ts';
import { inOneLine, UserError } from '../../errors.ts';
import { leaveToCaller, removeFolder } from '../../process.ts';
import { find, thisMachine } from '../../setup/machine.ts';
import { isBelow, makeCommit, type Commit } from './build.ts';
import { commitCalled, repositoryAt, type Repository } from './git.ts';
import { kept } from './kept.ts';
import { layoutsOfCommit, salt, startInTurn } from './layouts.ts';
import { holdFolder, makePlace, removeOld } from './place.ts';

/** What is not committed, in place of a commit. */
const worktree = 'worktree';

export interface AskedCommits {
  repo: string;
  /** Default: a commit needs no build. */
  build: string | undefined;
  serve: string;
}

interface Asked extends Repository {
  build: string | undefined;
  /** Where built commits are kept. */
  place: string;
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
  makePlace(place);
  const repository = { ...(await repositoryAt(repo)), build, place };
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
    given: sides.map(({ commit, start }) => ({
      name: commit.name,
      given: `${commit.name} (${versionOf(commit)})`,
      source: { ...command, folder: path.join(start, repository.within) },
    })),
    make: async (signal, sayRaw, takeTurn) => {
      const say = (lines: readonly string[]) => sayRaw(lines.map(inOneLine));
      await holdFolder(place, signal, say);
      await takeTurn();
      try {
        const beganAtMs = Date.now();
        for (const commit of builds) await makeCommit(commit, repository, build, signal, say);
        await requireOwnPrograms(command.program, builds, repository, beganAtMs);
        await removeOld(
          place,
          builds.map(({ folder }) => folder),
        );
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

/** What is not committed may be something else in the next run, which is no other run of the same then. */
function versionOf({ hash, isWorktree }: Commit): string {
  const now = new Date().toISOString().slice(0, 19).replace('T', ' ');
  return hash.slice(0, 9) + (isWorktree ? ` with changes of ${now} UTC` : '');
}

/**
 * Refuses a program that all sides would share: one that a build installs in a place for all, or that of the repository itself. Builds that
 * install one are not kept, so that they do it again in the next run.
 * @param program as --serve names it
 * @param beganAtMs when the first build of this run began
 */
async function requireOwnPrograms(
  program: string,
  commits: readonly Commit[],
  { top, within, build }: Asked,
  beganAtMs: number,
): Promise<void> {
  for (const { tree } of commits) {
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
    if (build === undefined || statSync(file).ctimeMs < beganAtMs) continue;
    for (const { folder } of commits) await removeFolder(folder);
    throw new UserError(
      `--serve runs ${file}, which the builds have just written, for each commit: ${remedy}`,
    );
  }
}

async function commitOf(text: string, { top, within, build, place }: Asked): Promise<Commit> {
  const { name: given, word } = readName(text);
  const isWorktree = word === worktree;
  const ref = isWorktree ? 'HEAD' : word;
  const { hash, about } = await commitCalled(top, ref);
  // A whole hash is too wide for a table.
  const made = asName(word.replace(/^([0-9a-f]{9})[0-9a-f]{31,}$/, '$1'));
  const name = given ?? (/\D/.test(made) ? made : asName(`commit-${made}`));
  const key = createHash('sha256').update(JSON.stringify([top, within, build, buildVariables()]));
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
