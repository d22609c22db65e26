// The candidates of a search: the commits of a history, or the sides that a file lists.
import type { Arguments, Flag } from '../../cli/arguments.ts';
import { readName } from '../../cli/sides.ts';
import { inOneLine, prefixed, usageError, UserError } from '../../errors.ts';
import { readBytes } from '../../files.ts';
import { counts } from '../../format.ts';
import { shownCommand } from '../../secrets.ts';
import { fromCallersFolder } from '../../setup/paths.ts';
import { commitsBetween, commitsBroughtBy, filesChangedBy, type Listed } from './git.ts';

export interface Candidate {
  /** The candidate as a side of compare. */
  side: string;
  /** What it is called. */
  text: string;
  /** Returns the commits that a merge brings in, after the one that they begin at. Absent if it is no merge of two. */
  merged?: () => Promise<Candidate[]>;
}

/** What makes sides of commits. */
const ofCommits = ['repo', 'good', 'bad', 'build', 'serve'];
const mostBytes = 1e6;

/**
 * Returns them from the good one to the bad one.
 * @param known the flags of bisect
 * @throws UserError (exit code 2)
 */
export async function readCandidates(
  { positionals, flags }: Pick<Arguments, 'positionals' | 'flags'>,
  known: Readonly<Record<string, Flag>>,
): Promise<Candidate[]> {
  const [file, another] = positionals;
  if (another !== undefined)
    throw usageError(`bisect takes one file, with a side in each line: leave out "${another}"`);
  if (file !== undefined) {
    const flag = ofCommits.find((name) => flags.has(name));
    if (flag !== undefined)
      throw usageError(`${file} lists what to look among: leave it out, or --${flag}`);
    return listedIn(file);
  }
  const needed = (name: string) => {
    const value = flags.get(name);
    if (value === undefined)
      throw usageError(
        `bisect needs --${name} ${known[name]?.value}, or a file with a side in each line`,
      );
    return value;
  };
  const repo = needed('repo');
  needed('serve');
  return candidatesBetween(repo, needed('good'), flags.get('bad') ?? 'HEAD');
}

async function candidatesBetween(repo: string, good: string, bad: string): Promise<Candidate[]> {
  const commits = await commitsBetween(repo, good, bad);
  return commits.map((commit) => ofCommit(repo, commit));
}

/** @param had commits that have what is not new with this one, beside its first parent */
function ofCommit(
  repo: string,
  { hash, about, parents }: Listed,
  had: readonly string[] = [],
): Candidate {
  const commit: Candidate = { side: hash, text: `${hash.slice(0, 9)} (${about})` };
  const [ours = '', theirs, ...others] = parents;
  if (theirs !== undefined && others.length === 0)
    commit.merged = () => mergedBy(repo, hash, theirs, [ours, ...had]);
  return commit;
}

/** @throws UserError for a merge that is more than what it brings in, or brings in nothing */
async function mergedBy(
  repo: string,
  merge: string,
  theirs: string,
  had: readonly string[],
): Promise<Candidate[]> {
  const [changed] = await filesChangedBy(repo, merge);
  if (changed !== undefined)
    throw new UserError(`The merge has a ${changed} that neither of its parents has.`);
  const commits = await commitsBroughtBy(repo, theirs, had);
  return commits.map((commit) => ofCommit(repo, commit, had));
}

/** Empty lines, and those that begin with #, are left out. */
function listedIn(file: string): Candidate[] {
  const bytes = prefixed(() => readBytes(fromCallersFolder(file), mostBytes), `${file}: `);
  const lines = bytes
    .toString()
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '' && !line.startsWith('#'));
  if (lines.length < 3)
    throw usageError(
      `${file} has ${counts(lines.length, 'side')}, and a search needs three or more, the good one first and the bad one last: a config, a command or an address in each line`,
    );
  return lines.map((line) => {
    const { name, word } = readName(line);
    return { side: word, text: inOneLine(name ?? shownCommand(word)) };
  });
}

/** The name of the side that a message is about: of one that does not build, start or answer, or that fails under load. */
export function sideNamedIn(message: string): string | undefined {
  const form = /^(?:round \d+ [^:]+: )?(?:the build of |of )?([a-z0-9-]+)(?:: |'s | )/;
  return form.exec(message)?.[1];
}
