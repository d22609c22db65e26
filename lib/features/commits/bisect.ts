// npm run bisect: finds the commit of a history that made a difference. Each run compares commits of the history in turns.
import { compareCommand, compareFlagsWith } from '../../cli/compare.ts';
import {
  flagsWith,
  printGroupedHelp,
  readArguments,
  type Arguments,
  type Flag,
} from '../../cli/arguments.ts';
import { total } from '../../analysis/statistics.ts';
import type { Additions, RunPart } from '../../cli/feature.ts';
import { reportRun, terminalOf } from '../../cli/run-output.ts';
import { usageError, UserError } from '../../errors.ts';
import { counts, effect, enumeration, percent } from '../../format.ts';
import { verdictWord } from '../../report/metric-words.ts';
import { figure, leftColumn, tableOf, terminalTable, type Table } from '../../report/table.ts';
import type { Comparison, Result } from '../../result/result.ts';
import { typed } from '../../setup/paths.ts';
import { commitsBetween, type Listed } from './git.ts';
import { firstBad, likeliest, nextPlaces, type Measured } from './first-bad.ts';

/** The commits of a run beside the good and the bad one. With more, a round takes longer than it tells more. */
const mostInRun = 6;
/** A difference that so many runs do not find is too small for them. */
const mostRuns = 8;
const enough = 0.95;
/** Rounds and measured time of each commit in a round, of a run with several. */
const usualLength = { rounds: '6', duration: '0.5s' };

const ownFlags: Readonly<Record<string, Flag>> = {
  good: { value: 'COMMIT', help: 'the commit before the difference' },
  bad: { value: 'COMMIT', help: 'a later one, which has the difference (HEAD)' },
};

/** Those of compare that have a meaning in each of several runs. */
function bisectFlags(parts: readonly RunPart[]): Record<string, Flag> {
  const flags: Record<string, Flag> = { ...ownFlags, ...compareFlagsWith(parts) };
  const ofOneRun = ['fail-if', 'json', 'quick', 'precision', 'max-time', 'name', 'h3'];
  const files = ['export-json', 'export-csv', 'export-markdown', 'no-look', 'no-why'];
  for (const name of [...ofOneRun, ...files, ...flagsWith('setsRate', flags)]) delete flags[name];
  return flags;
}

const help = [
  `${typed('bisect')} --repo DIR --good v1.0 [--bad main] [--build 'make'] --serve './server -p {port}' [flags]`,
  '',
  'Finds the commit between two that made the server faster or slower. Compares the two first, then up to six commits between them in ' +
    'the same rounds, until one is the cause with a probability of 95 %. Commits that do not build or answer are left out. It follows ' +
    'first parents, and changes nothing in the repository.',
];

/** Causes and a look are for the last run, which confirms what was found. */
const withoutLook = ['--no-look', '--no-why'];

/** Returns the lines to print of a result, in place of the usual report. */
type LinesOf = (result: Result, terminal: ReturnType<typeof terminalOf>) => readonly string[];

/** A search among the commits. */
interface Search {
  /** From the good one on; a commit's place is its index. */
  commits: readonly Listed[];
  /** Measures commits, reports the result, and returns it. @throws UserError, of a commit that does not build or answer too */
  compare(places: readonly number[], flags: readonly string[], linesOf?: LinesOf): Promise<Result>;
  /** Flags of the runs with several commits, unless the user gives others. */
  lengths: readonly string[];
  runs: Measured[][];
  /** Places of commits that do not build or answer. */
  skipped: Set<number>;
}

/** Returns 0 if the commit was found, 3 if there is no difference, else 1. Throws UserError and Interrupted. */
export async function bisectCommand(
  args: readonly string[],
  additions: Additions,
): Promise<number> {
  const known = bisectFlags(additions.runParts);
  const parsed = readArguments(args, known);
  if (parsed.flags.has('help') || args.length === 0) {
    printGroupedHelp(help, known, parsed.positionals.includes('all'));
    return parsed.flags.has('help') ? 0 : 2;
  }
  const search = await searchOf(parsed, known, additions);
  const last = search.commits.length - 1;
  say(
    `${counts(last, 'commit')} after ${nameOf(search, 0)}; it and ${nameOf(search, last)} first:`,
  );
  const [difference] = (await search.compare([0, last], withoutLook)).comparisons;
  if (difference === undefined || difference.verdict === 'none') {
    say('', 'There is no verdict on the two, so there is nothing to look for yet.');
    return 1;
  }
  if (!hasDirection(difference)) {
    say('', 'No difference was found between the two, so there is no commit to find.');
    return 3;
  }
  const found = await narrowDown(search);
  if (found === undefined) return 1;
  return confirm(search, found, difference);
}

async function searchOf(
  { positionals, flags, lists }: Arguments,
  known: Readonly<Record<string, Flag>>,
  additions: Additions,
): Promise<Search> {
  const [word] = positionals;
  if (word !== undefined) throw usageError(`bisect takes flags only: leave out "${word}"`);
  const needed = (name: string) => {
    const value = flags.get(name);
    if (value === undefined) throw usageError(`bisect needs --${name} ${known[name]?.value}`);
    return value;
  };
  const repo = needed('repo');
  needed('serve');
  const commits = await commitsBetween(repo, needed('good'), flags.get('bad') ?? 'HEAD');
  const passed = [...flags].flatMap(([name, value]) => {
    if (name in ownFlags) return [];
    if (known[name]?.value === undefined) return [`--${name}`];
    return (lists.get(name) ?? [value]).map((one) => `--${name}=${one}`);
  });
  const lengths = Object.entries(usualLength).flatMap(([name, value]) =>
    flags.has(name) ? [] : [`--${name}=${value}`],
  );
  const compare: Search['compare'] = async (places, more, linesOf) => {
    let result: Result | undefined;
    const words = places.map((place) => `${nameAt(place, commits)}=${commits[place]?.hash}`);
    try {
      await compareCommand([...words, ...passed, ...more], additions, (outcome, options) => {
        ({ result } = outcome);
        return reportRun(outcome, options, linesOf?.(outcome.result, terminalOf(options)));
      });
    } catch (error) {
      // A side that fails is in the result.
      if (result?.state !== 'complete' || !(error instanceof UserError)) throw error;
      console.error(error.message);
    }
    if (result === undefined) throw new Error('compare has no result');
    return result;
  };
  return { commits, compare, lengths, runs: [], skipped: new Set() };
}

/** Runs commits until one, or several that no commit that builds lies between, is the cause. @returns their places */
async function narrowDown(search: Search): Promise<number[] | undefined> {
  const { commits, runs, skipped } = search;
  const last = commits.length - 1;
  const isSkipped = (place: number) => skipped.has(place);
  for (;;) {
    const probabilities = firstBad(runs, last);
    const open = likeliest(probabilities, enough);
    const [from = 1, to = last] = [open[0], open.at(-1)];
    const between = Array.from({ length: to - from }, (_, index) => from + index);
    if (between.every(isSkipped)) return open;
    if (runs.length > 0)
      say(`With 95 % it is one of ${counts(open.length, 'commit')}: ${namesOf(search, open)}.`);
    if (runs.length === mostRuns) {
      say(
        `${mostRuns} runs do not tell which: the difference is small for this machine's noise. Give more --rounds.`,
      );
      return undefined;
    }
    const places = [0, ...nextPlaces(probabilities, mostInRun, isSkipped), last];
    const measured = await measure(search, places);
    if (measured !== undefined) runs.push(measured);
  }
}

/** Measures commits in one run. @returns undefined if one does not build or answer, which is skipped from then on */
async function measure(search: Search, places: readonly number[]): Promise<Measured[] | undefined> {
  const flags = [...search.lengths, ...withoutLook];
  try {
    const result = await search.compare(places, flags, (made, terminal) =>
      terminalTable(commitsTable(search, places, made), terminal),
    );
    const measured: Measured[] = [{ place: 0, log: 0 }];
    for (const place of places.slice(1)) {
      const ratio = ratioOf(place, search, result)?.ratio;
      if (ratio === undefined) search.skipped.add(place);
      else measured.push({ place, log: Math.log(ratio) });
    }
    if (measured.at(-1)?.place !== places.at(-1))
      throw new UserError('good and bad were not both measured: run again');
    return measured;
  } catch (error) {
    const place = error instanceof UserError ? placeIn(error.message, places, search) : undefined;
    if (place === undefined) throw error;
    say(`${nameOf(search, place)} is left out.`);
    console.error((error as UserError).message);
    search.skipped.add(place);
    return undefined;
  }
}

/** A row per commit, with its ratio to the good one. */
function commitsTable(search: Search, places: readonly number[], result: Result): Table {
  return tableOf(places, [
    leftColumn('commit', (place) => nameOf(search, place)),
    leftColumn('against the good one', (place) =>
      figure(ratioOf(place, search, result), ({ ratio, ci95 }) => effect(ratio, ci95)),
    ),
  ]);
}

/** A commit's comparison with the good one; undefined for the good one, and where nothing was measured. */
function ratioOf(place: number, { commits }: Search, { comparisons }: Result) {
  const name = nameAt(place, commits);
  return comparisons.find(({ variant, ratio }) => variant === name && ratio > 0);
}

/** The place of the commit that a message is about; never that of the good or the bad one. */
function placeIn(message: string, places: readonly number[], { commits }: Search) {
  const [, name] = /^(?:the build of )?([a-z0-9-]+)[: ]/.exec(message) ?? [];
  return places.slice(1, -1).find((place) => nameAt(place, commits) === name);
}

/** Compares the cause with the commit before it, and says why they differ. Returns the exit code. */
async function confirm(
  search: Search,
  found: readonly number[],
  whole: Comparison,
): Promise<number> {
  const { commits, skipped } = search;
  const cause = found.at(-1) ?? 0;
  let before = (found[0] ?? 1) - 1;
  while (before > 0 && skipped.has(before)) before--;
  say('', `${namesOf(search, found)}, against the one before:`);
  const [effectOf] = (await search.compare([before, cause], [])).comparisons;
  const isConfirmed =
    effectOf !== undefined && effectOf.verdict === whole.verdict && hasDirection(effectOf);
  if (!isConfirmed) {
    say(
      '',
      'That is not what good and bad differ by: no commit alone is the cause. Give more --rounds.',
    );
    return 1;
  }
  const { metric, ratio, ci95, verdict } = effectOf;
  const probabilities = firstBad(search.runs, commits.length - 1);
  const probability = total(found, (place) => probabilities[place - 1] ?? 0);
  const sure = probability > 0.99 ? 'over 99 %' : percent(probability);
  const which = found.length === 1 ? 'The commit' : `One of ${counts(found.length, 'commit')}`;
  say(
    '',
    `${which} with a probability of ${sure}: ${namesOf(search, found)}. It is ${effect(ratio, ci95)} ${verdictWord(metric, verdict)}${partOf(effectOf, whole)}.`,
    ...found.flatMap((place) => mergeLine(commits[place])),
  );
  return 0;
}

/** Says whether the cause is only a part of the whole difference. */
function partOf(cause: Comparison, whole: Comparison): string {
  const [part, all] = [cause, whole].map(({ ci95 }) => ci95.map((end) => Math.abs(Math.log(end))));
  const isPart = Math.max(...(part ?? [])) < Math.min(...(all ?? []));
  return isPart ? `, of ${effect(whole.ratio)} in all: other commits have a part` : '';
}

const mergeLine = (commit: Listed | undefined): string[] =>
  commit?.isMerge
    ? [
        `It is a merge: bisect --good ${commit.hash.slice(0, 9)}^1 --bad ${commit.hash.slice(0, 9)}^2 looks into what it merged.`,
      ]
    : [];

const hasDirection = ({ verdict }: Comparison): boolean =>
  verdict === 'faster' || verdict === 'slower';

/** The name of a commit in tables. */
function nameAt(place: number, commits: readonly Listed[]): string {
  if (place === 0) return 'good';
  return place === commits.length - 1 ? 'bad' : `c${place}`;
}

function nameOf({ commits }: Search, place: number): string {
  const { hash = '', about = '' } = commits[place] ?? {};
  return `${hash.slice(0, 9)} (${about})`;
}

/** At most five by name. */
function namesOf(search: Search, places: readonly number[]): string {
  if (places.length <= 5)
    return enumeration(
      places.map((place) => nameOf(search, place)),
      'or',
    );
  return `${nameOf(search, places[0] ?? 0)} to ${nameOf(search, places.at(-1) ?? 0)}`;
}

function say(...lines: readonly string[]): void {
  console.log(lines.join('\n'));
}
