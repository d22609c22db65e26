// --repo: commits of a repository as sides of compare (docs/compare.md).
import type { Arguments, Flag } from '../../cli/arguments.ts';
import type { AddedSides, Feature } from '../../cli/feature.ts';
import { usageError } from '../../errors.ts';
import { kept } from './kept.ts';
import { nextLayout } from './layouts.ts';

const sideFlags: Readonly<Record<string, Flag>> = {
  repo: {
    value: 'DIR',
    help: "the sides are its commits, such as main HEAD: add --serve './server {port}' and --build make",
  },
  build: {
    group: 'machine',
    rare: true,
    value: "'make -j2'",
    needs: ['repo'],
    help: 'builds a commit, in a folder of its own; with {salt} in it, in ten layouts',
  },
  serve: {
    group: 'machine',
    rare: true,
    value: "'./server {port}'",
    needs: ['repo'],
    help: 'starts the server of a commit, in that folder',
  },
};

export const commits: Feature = {
  commands: {
    bisect: {
      help: 'find the commit that made a server faster or slower',
      run: async (args, additions) => (await import('./bisect.ts')).bisectCommand(args, additions),
    },
  },
  run: { sideFlags, sides: commitsOf, observers: [nextLayout] },
  keeps: { folders: [kept] },
};

/** Returns the sides; undefined without --repo. Throws UserError (exit code 2). */
async function commitsOf({ flags, positionals }: Arguments): Promise<AddedSides | undefined> {
  const repo = flags.get('repo');
  if (repo === undefined) return undefined;
  const serve = flags.get('serve');
  if (serve === undefined)
    throw usageError("--repo needs the command that serves a commit: --serve './server -p {port}'");
  const { commitSides } = await import('./commits.ts');
  return commitSides(positionals, { repo, build: flags.get('build'), serve });
}
