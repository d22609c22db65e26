// npm run report: makes the page of a run again, or compares all runs of a scenario.
import { existsSync, statSync, type Stats } from 'node:fs';
import {
  inOneLine,
  usageError,
  UserError,
  unknownWord,
  messageOf,
  systemError,
} from '../../errors.ts';
import { makeFolder } from '../../files.ts';
import { writeForUser, writeWhole } from '../../writing.ts';
import { counts } from '../../format.ts';
import type { Result } from '../../result/result.ts';
import { effectsOf, historyParts } from './history.ts';
import type { Contribute } from '../../report/contribution.ts';
import { isPage } from '../../report/html/page.ts';
import { runPage } from '../../report/html/run-page.ts';
import { terminal, terminalTable } from '../../report/table.ts';
import { writeReasons } from '../../runner/results-folder.ts';
import { fromCallersFolder, typed } from '../../setup/paths.ts';
import { readResult, runsIn, scenarioOfRun } from '../../cli/stored-results.ts';
import { onlyArgument, printHelp, readArguments, type Flag } from '../../cli/arguments.ts';
import path from 'node:path';

const reportFlags = {
  history: {
    value: 'NAME',
    help: 'instead: a comparison over all its kept runs, with the part that differs between boots',
  },
  results: { value: 'DIR', help: 'the folder with the runs, for names of runs (results)' },
  out: { value: 'FILE', help: 'the page (report.html beside the run)' },
  help: { help: 'this text' },
} as const satisfies Record<string, Flag>;

/** Makes the page of a run again, and prints its path. Throws UserError. */
export async function reportCommand(
  args: readonly string[],
  contributionsTo: Contribute,
): Promise<number> {
  const { positionals, flags, read } = readArguments(args, reportFlags);
  const results = fromCallersFolder(flags.get('results') ?? 'results');
  const run = onlyArgument(positionals, 'run');
  const name = flags.get('history');
  if (name !== undefined && !flags.has('help')) return historyOf(name, results, run);
  if (run === undefined || flags.has('help')) {
    printHelp(await help(results), reportFlags);
    return 0;
  }
  const file = await findResult(run, results);
  const result = readResult(file);
  const { text, mode } = await runPage(path.dirname(file), result, contributionsTo(result));
  const named = read('out', (_, page) => fromCallersFolder(page));
  const page = named ?? pageBeside(file);
  // The files of a run are its user's alone.
  const pageMode = named === undefined ? 0o600 : mode;
  const isOfRun = named === undefined && path.basename(file) === 'result.json';
  await write(page, () =>
    isOfRun ? writeWhole(page, text, pageMode) : writeForUser(page, text, isPage, pageMode),
  );
  console.log(inOneLine(page));
  return 0;
}

/**
 * Prints the comparison of all complete runs of that scenario.
 * @throws UserError (exit code 2) if there are none
 */
async function historyOf(name: string, results: string, run: string | undefined): Promise<number> {
  if (run !== undefined) throw usageError(`--history takes a scenario: leave out "${run}"`);
  const runs = await runsIn(results);
  const names = [...new Set(runs.map(scenarioOfRun))];
  if (names.length === 0) throw usageError(`there are no runs in ${results}`);
  if (!names.includes(name)) throw unknownWord(`scenario in ${results}`, name, names);
  const ofName = runs.filter((folder) => scenarioOfRun(folder) === name);
  const { kept, leftOut } = keptResults(ofName.map((folder) => path.join(results, folder)));
  const parts = historyParts(kept);
  if (parts.length === 0) {
    const others = leftOut === '' ? '' : ` (${leftOut})`;
    throw usageError(`no complete run of ${name} in ${results} compares anything${others}`);
  }
  for (const { title, tables, below } of parts) {
    console.log(title);
    for (const table of tables)
      for (const line of terminalTable(table, terminal())) console.log(line);
    for (const line of below) console.log(line);
    console.log('');
  }
  if (leftOut !== '') console.error(inOneLine(leftOut));
  return 0;
}

/** The results of complete runs, and words on the other runs; '' if there are none. */
function keptResults(folders: readonly string[]): { kept: Result[]; leftOut: string } {
  const read: Result[] = [];
  const problems: string[] = [];
  for (const folder of folders) {
    try {
      read.push(readResult(path.join(folder, 'result.json')));
    } catch (error) {
      if (!(error instanceof UserError)) throw error;
      problems.push(error.message);
    }
  }
  const runs = withoutCopies(read);
  const complete = runs.filter(({ state }) => state === 'complete');
  const whole = complete.filter(({ quick }) => !quick);
  const kept = whole.filter((result) => effectsOf([result]).size > 0);
  const others = [
    [complete.length - whole.length, 'with --quick'],
    [whole.length - kept.length, 'without a verdict'],
    [runs.length - complete.length, 'that ended early'],
    [read.length - runs.length, 'that another folder has too'],
    [problems.length, `without a readable result (${problems[0]})`],
  ] as const;
  const words = others
    .filter(([number]) => number > 0)
    .map(([number, why]) => `${counts(number, 'run')} ${why}`);
  return { kept, leftOut: words.length === 0 ? '' : `left out: ${words.join(', ')}` };
}

/** Returns each run once: a folder may be a copy of another one. Runs of different machines may have the same name. */
function withoutCopies(results: readonly Result[]): Result[] {
  const runs = new Map<string, Result>();
  for (const result of results) {
    const { run, environment } = result;
    const key = `${run} ${environment.bootId}`;
    if (!runs.has(key)) runs.set(key, result);
  }
  return [...runs.values()];
}

async function help(results: string): Promise<string[]> {
  const runs = await runsIn(results);
  return [
    `${typed('report')} RUN [flags], or --history NAME`,
    '',
    "Makes report.html of a run again. RUN is a run's name, its folder or its result.json.",
    '',
    ...(runs.length === 0 ? [`There are no runs in ${results}.`] : runs.map((run) => `  ${run}`)),
  ];
}

/** Throws UserError (exit code 2). */
async function findResult(word: string, results: string): Promise<string> {
  for (const place of [fromCallersFolder(word), path.join(results, word)]) {
    const stats = placeOf(place);
    if (stats === undefined) continue;
    if (!stats.isDirectory()) return place;
    const file = path.join(place, 'result.json');
    if (existsSync(file)) return file;
    throw usageError(`${place} has no result.json: name the folder of a run`);
  }
  const runs = await runsIn(results);
  if (runs.length === 0 || word.includes(path.sep))
    throw usageError(
      `there is no run ${fromCallersFolder(word)}: name one in ${results}, or a run's folder`,
    );
  throw unknownWord(`run in ${results}`, word, runs);
}

/** undefined if nothing can have this path. */
function placeOf(place: string): Stats | undefined {
  try {
    return statSync(place, { throwIfNoEntry: false });
  } catch (error) {
    const { code } = systemError(error);
    if (code === 'ENAMETOOLONG' || code === 'ELOOP') return undefined;
    throw error;
  }
}

/** report.html for result.json, NAME.html for another file. */
function pageBeside(file: string): string {
  const { dir, base, name } = path.parse(file);
  return path.join(dir, base === 'result.json' ? 'report.html' : `${name}.html`);
}

async function write(page: string, writing: () => Promise<void>): Promise<void> {
  try {
    makeFolder(path.dirname(page));
    await writing();
  } catch (error) {
    const { code = '' } = systemError(error);
    throw new UserError(
      `cannot write the page to ${page}: ${writeReasons[code] ?? messageOf(error)}; --out names another file`,
    );
  }
}
