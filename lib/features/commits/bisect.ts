// npm run bisect: finds the commit of a history, or the side of a list, that made a difference. Each run compares some of them in turns.
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
import { UserError } from '../../errors.ts';
import { counts, enumeration, percent } from '../../format.ts';
import { figure, leftColumn, tableOf, terminalTable, type Table } from '../../report/table.ts';
import type { Result } from '../../result/result.ts';
import { typed } from '../../setup/paths.ts';
import { readCandidates, sideNamedIn, type Candidate } from './candidates.ts';
import { byCount, byTime, countThatDiffers, type Difference, type Reading } from './difference.ts';
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

/** Returns compare's flags that have a meaning in each of several runs. */
function bisectFlags(parts: readonly RunPart[]): Record<string, Flag> {
  const flags: Record<string, Flag> = { ...ownFlags, ...compareFlagsWith(parts) };
  const ofOneRun = ['fail-if', 'json', 'quick', 'precision', 'max-time', 'name', 'h3'];
  const files = ['export-json', 'export-csv', 'export-markdown', 'no-look', 'no-why'];
  for (const name of [...ofOneRun, ...files, ...flagsWith('setsRate', flags)]) delete flags[name];
  return flags;
}

const help = [
  `${typed('bisect')} --repo DIR --good v1.0 [--bad main] [--build 'make'] --serve './server -p {port}' [flags]`,
  `${typed('bisect')} FILE [flags]`,
  '',
  'Finds the commit between two that made the server faster or slower. Compares the two first, then up to six commits between them in ' +
    'the same rounds, until one is the cause with a probability of 95 %. Commits that do not build or answer are left out. It follows ' +
    'first parents, looks into a merge that is the cause, and changes nothing in the repository. A FILE has a side in each line ' +
    'instead, such as the versions of a package: the good one first, the bad one last. With --counts it finds what changed a count.',
];

/** Causes and a look are for the last run, which confirms what was found. */
const withoutLook = ['--no-look', '--no-why'];

/** Returns the lines to print of a result, in place of the usual report. */
type LinesOf = (result: Result, terminal: ReturnType<typeof terminalOf>) => readonly string[];

type Sides = Readonly<Record<string, number>>;

/** A search among candidates. */
interface Search {
  /** From the good one on; the place of one is its index. */
  candidates: readonly Candidate[];
  /** What one is called. */
  what: 'commit' | 'side';
  /**
   * Measures sides, which are places by name, reports the result, and returns it.
   * @throws UserError, of one that does not build or answer too
   */
  compare(sides: Sides, flags: readonly string[], linesOf?: LinesOf): Promise<Result>;
  /** Whether counts are compared, instead of times. */
  isCounting: boolean;
  /** How these are read from a result. */
  reading: Reading;
  /** The flags of runs with several, unless the user gives others. */
  flagsOfMany: readonly string[];
  runs: Measured[][];
  /** Places of those that do not build or answer. */
  skipped: Set<number>;
}

/** Returns 0 if the commit was found, 3 if there is no difference, else 1. Throws UserError and Interrupted. */
export async function bisectCommand(
  args: readonly string[],
  additions: Additions,
): Promise<number> {
  const known = bisectFlags(additions.runParts);
  const parsed = readArguments(args, known, true);
  if (parsed.flags.has('help') || args.length === 0) {
    printGroupedHelp(help, known, parsed.positionals.includes('all'));
    return parsed.flags.has('help') ? 0 : 2;
  }
  const candidates = await readCandidates(parsed, known);
  const searchAmong = searchesFor(parsed, known, additions);
  const { exitCode, found } = await find(searchAmong(candidates));
  if (found !== undefined) await lookInto(found, searchAmong);
  return exitCode;
}

/** Searches among the commits of a merge, and of merges in it. */
async function lookInto(
  found: Found,
  searchAmong: (candidates: readonly Candidate[]) => Search,
): Promise<void> {
  const merge = found.cause;
  if (merge.merged === undefined) return;
  say('', `${merge.text} is a merge, so the search goes on in the commits that it brings in.`);
  try {
    const inside = await find(searchAmong(await merge.merged()), found);
    if (inside.found !== undefined) await lookInto(inside.found, searchAmong);
    else if (inside.exitCode !== 0) say('', `The answer is the merge, ${merge.text}.`);
  } catch (error) {
    if (!(error instanceof UserError)) throw error;
    console.error(error.message);
    say('', `The search cannot go on there. The answer is the merge, ${merge.text}.`);
  }
}

/** The cause, and how it differs from the one before it. */
interface Found {
  cause: Candidate;
  difference: Difference;
  reading: Reading;
}

/** The end of a search. `found` is absent if the cause may be one of several. */
interface Outcome {
  exitCode: 0 | 1 | 3;
  found?: Found;
}

/**
 * Searches, and prints what it finds.
 * @param merge the one that brings in the candidates: good and bad must differ as it does from the one before it
 */
async function find(search: Search, merge?: Found): Promise<Outcome> {
  const { candidates, what } = search;
  const last = candidates.length - 1;
  say(`${counts(last, what)} after ${nameOf(search, 0)}; it and ${nameOf(search, last)} first:`);
  const first = await search.compare({ good: 0, bad: last }, search.isCounting ? [] : withoutLook);
  if (merge !== undefined) search.reading = merge.reading;
  else if (search.isCounting) {
    const count = countThatDiffers(first, 'bad');
    if (count !== undefined) search.reading = byCount(count);
  }
  const whole = search.reading(first, 'bad');
  if (whole === undefined || whole.direction === 'none') {
    const remedy = search.isCounting ? '' : ': give more --rounds, or --metric cpu';
    say('', `Whether the two differ is not decided, so there is nothing to look for yet${remedy}.`);
    return { exitCode: 1 };
  }
  if (whole.direction === 'same') {
    say('', `The two do not differ, so there is no ${what} to find.`);
    return { exitCode: 3 };
  }
  if (merge !== undefined && !isAlike(whole, merge.difference)) {
    say('', `These commits make ${whole.text}, and the merge ${merge.difference.text}.`);
    return { exitCode: 1 };
  }
  if (search.isCounting) say('', `The search is for the ${what} that made ${whole.text}.`);
  const open = await narrowDown(search, whole);
  const difference = open && (await confirmed(search, open, whole));
  if (difference === undefined) return { exitCode: 1 };
  const [place = 0, ...others] = open ?? [];
  const cause = candidates[place];
  if (cause === undefined || others.length > 0) return { exitCode: 0 };
  return { exitCode: 0, found: { cause, difference, reading: search.reading } };
}

const isAlike = (one: Difference, other: Difference): boolean =>
  one.direction === other.direction &&
  one.range[0] <= other.range[1] &&
  other.range[0] <= one.range[1];

/** Returns the function that prepares a search. */
function searchesFor(
  parsed: Arguments,
  known: Readonly<Record<string, Flag>>,
  additions: Additions,
): (candidates: readonly Candidate[]) => Search {
  const { flags, lists } = parsed;
  const passed = [...flags].flatMap(([name, value]) => {
    if (name in ownFlags) return [];
    if (known[name]?.value === undefined) return [`--${name}`];
    return (lists.get(name) ?? [value]).map((one) => `--${name}=${one}`);
  });
  const lengths = Object.entries(usualLength).flatMap(([name, value]) =>
    flags.has(name) ? [] : [`--${name}=${value}`],
  );
  let waits: readonly string[] = [];
  const compare = async (
    words: readonly string[],
    more: readonly string[],
    linesOf?: LinesOf,
  ): Promise<Result> => {
    let result: Result | undefined;
    try {
      await compareCommand(
        [...words, ...passed, ...more, ...waits],
        additions,
        (outcome, options) => {
          ({ result } = outcome);
          return reportRun(outcome, options, linesOf?.(outcome.result, terminalOf(options)));
        },
      );
    } catch (error) {
      // A side that fails is in the result.
      if (result?.state !== 'complete' || !(error instanceof UserError)) throw error;
      console.error(error.message);
    }
    if (result === undefined) throw new Error('compare has no result');
    // Another run may begin between two of a search.
    if (!flags.has('wait')) waits = ['--wait=1h'];
    return result;
  };
  const isCounting = flags.has('counts');
  return (candidates) => ({
    candidates,
    what: flags.has('repo') ? 'commit' : 'side',
    compare(sides, more, linesOf) {
      const words = Object.entries(sides).map(
        ([name, place]) => `${name}=${candidates[place]?.side}`,
      );
      return compare(words, more, linesOf);
    },
    isCounting,
    reading: isCounting ? byCount('syscalls') : byTime,
    flagsOfMany: isCounting ? [] : [...lengths, ...withoutLook],
    runs: [],
    skipped: new Set(),
  });
}

/** Runs candidates until one, or several that none that builds lies between, is the cause. @returns their places */
async function narrowDown(search: Search, whole: Difference): Promise<number[] | undefined> {
  const { candidates, runs, skipped, what } = search;
  const last = candidates.length - 1;
  const isSkipped = (place: number) => skipped.has(place);
  for (;;) {
    const probabilities = firstBad(runs, last);
    const open = likeliest(probabilities, enough);
    const [from = 1, to = last] = [open[0], open.at(-1)];
    const between = Array.from({ length: to - from }, (_, index) => from + index);
    if (between.every(isSkipped)) return open;
    if (runs.length > 0)
      say(`With 95 % it is one of ${counts(open.length, what)}: ${namesOf(search, open)}.`);
    if (runs.length === mostRuns) {
      say(
        `${mostRuns} runs do not tell which: the difference is small for this machine's noise.${remedyOf(search)}`,
      );
      return undefined;
    }
    const places = [0, ...nextPlaces(probabilities, mostInRun, isSkipped), last];
    // Counts are the same in each run.
    if (search.isCounting && areKnown(places, runs)) {
      say(`More than one ${what} has a part in it, as the tables show.`);
      return undefined;
    }
    const measured = await measure(search, places, whole);
    if (measured !== undefined) runs.push(measured);
  }
}

const areKnown = (places: readonly number[], runs: readonly Measured[][]): boolean =>
  places.every((place) => runs.flat().some((measured) => measured.place === place));

/** Measures candidates in one run. @returns undefined if one does not build or answer, which is skipped from then on */
async function measure(
  search: Search,
  places: readonly number[],
  whole: Difference,
): Promise<Measured[] | undefined> {
  // A count has a step of its own, as large as the one between good and bad.
  const unit = search.isCounting ? Math.abs(whole.size) : 1;
  try {
    const sides = Object.fromEntries(
      places.map((place) => [nameAt(place, search.candidates), place]),
    );
    const result = await search.compare(sides, search.flagsOfMany, (made, terminal) =>
      terminalTable(candidatesTable(search, places, made), terminal),
    );
    const measured: Measured[] = [{ place: 0, log: 0 }];
    for (const place of places.slice(1)) {
      const size = differenceOf(place, search, result)?.size;
      if (size === undefined) search.skipped.add(place);
      else measured.push({ place, log: size / unit });
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

/** A row per candidate, with its difference to the good one. */
function candidatesTable(search: Search, places: readonly number[], result: Result): Table {
  return tableOf(places, [
    leftColumn(search.what, (place) => nameOf(search, place)),
    leftColumn('against the good one', (place) =>
      figure(differenceOf(place, search, result), ({ text }) => text),
    ),
  ]);
}

/** Returns the difference of a candidate to the good one; undefined for the good one, or if nothing was measured. */
const differenceOf = (place: number, { candidates, reading }: Search, result: Result) =>
  reading(result, nameAt(place, candidates));

/** The place of the candidate that a message is about; never that of the good or the bad one. */
function placeIn(message: string, places: readonly number[], { candidates }: Search) {
  const name = sideNamedIn(message);
  return places.slice(1, -1).find((place) => nameAt(place, candidates) === name);
}

/**
 * Compares the cause with the one before it, and prints why they differ. Returns their difference; undefined if good and bad do not differ so.
 * @param open the places that may be the cause: none between them can be measured
 */
async function confirmed(
  search: Search,
  open: readonly number[],
  whole: Difference,
): Promise<Difference | undefined> {
  const { candidates, skipped, what } = search;
  const found = open.at(-1) ?? 0;
  let before = (open[0] ?? 1) - 1;
  while (before > 0 && skipped.has(before)) before--;
  say('', `${namesOf(search, open)}, against the one before:`);
  const difference = search.reading(await search.compare({ before, found }, []), 'found');
  if (difference === undefined || difference.direction !== whole.direction) {
    say(
      '',
      `That is not what good and bad differ by: no ${what} alone is the cause.${remedyOf(search)}`,
    );
    return undefined;
  }
  const probabilities = firstBad(search.runs, candidates.length - 1);
  const probability = total(open, (place) => probabilities[place - 1] ?? 0);
  const sure = probability > 0.99 ? 'over 99 %' : percent(probability);
  const which = open.length === 1 ? `The ${what}` : `One of ${counts(open.length, what)}`;
  say(
    '',
    `${which} with a probability of ${sure}: ${namesOf(search, open)}. It ${difference.words}${partOf(difference, whole, what)}.`,
  );
  return difference;
}

/** Says whether the cause is only a part of the whole difference. */
function partOf(cause: Difference, whole: Difference, what: string): string {
  const [part, all] = [cause, whole].map(({ range }) => range.map(Math.abs));
  const isPart = Math.max(...(part ?? [])) < Math.min(...(all ?? []));
  return isPart ? `, of ${whole.text} in all: other ${what}s have a part` : '';
}

const remedyOf = ({ isCounting }: Search): string => (isCounting ? '' : ' Give more --rounds.');

/** The name of a candidate in its runs. */
function nameAt(place: number, candidates: readonly Candidate[]): string {
  if (place === 0) return 'good';
  return place === candidates.length - 1 ? 'bad' : `c${place}`;
}

const nameOf = ({ candidates }: Search, place: number): string => candidates[place]?.text ?? '';

/** Returns the names of at most five, or how many there are. */
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
