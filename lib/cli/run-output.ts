// The output of a run: heading, progress, report and exit code.
import { requestsOf } from '../scenario/pages.ts';
import { constants, fstatSync, statSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { measuredComparisons, sidesOf } from '../analysis/comparisons.ts';
import { sideWithWrongAnswers } from '../analysis/bodies.ts';
import { roundRps, successRatioOf, wholeRounds } from '../analysis/phases.ts';
import { total } from '../analysis/statistics.ts';
import { usageError, UserError } from '../errors.ts';
import { textOf } from '../files.ts';
import { liveLines, type LineStream } from '../live-lines.ts';
import { counts, success, effect, whole } from '../format.ts';
import type { Contribution } from '../report/contribution.ts';
import { curvesOf } from '../report/found.ts';
import { listed, loadText, networkText, type RunHeading } from '../report/heading.ts';
import {
  csvReport,
  isCsvReport,
  isMarkdownReport,
  markdownReport,
  terminalReport,
  type TerminalReportOptions,
} from '../report/texts.ts';
import { metricMark } from '../report/verdict-words.ts';
import { failureCauseOf } from '../analysis/failures.ts';
import { failureCause } from '../report/causes.ts';
import { present } from '../present.ts';
import { shownCommand } from '../secrets.ts';
import { nothingLines, storedLines } from '../report/sentences.ts';
import { terminal, wrapLines } from '../report/table.ts';
import { type Plan, type PlanDraft } from '../runner/plan.ts';
import { estimatedSeconds, expectedRounds, nextLook } from '../runner/times.ts';
import type { Environment } from '../result/environment.ts';
import type { Comparison, Result } from '../result/result.ts';
import { runOfJson, resultJson } from '../result/result-file.ts';
import { checkForUser, writeForUser, writeWhole } from '../writing.ts';
import { protocolName } from '../scenario/load.ts';
import { folderText, type RunEvents } from '../runner/run-events.ts';
import type { RunOutcome } from '../runner/run.ts';
import { isConfigured, loadOf, networkOf, pageOf, programOf } from '../scenario/variants.ts';
import { explainFailure, writeReasons, type RunFolder } from '../runner/results-folder.ts';
import { failIfCode } from './fail-if.ts';
import type { ExportFlag, Exports, RunOptions } from './run-options.ts';

export function headingOf(plan: Plan, environment: Environment): RunHeading {
  const { scenario, variants } = plan;
  const { fewest, most } = expectedRounds(plan);
  const servers = variants.map(({ variant: { server } }) => server);
  const addresses = servers.filter(({ name }) => name === 'address').map(programOf);
  const started = variants
    .filter(({ variant: { server } }) => server.name !== 'address')
    .map(({ variant: { name, series = name, server } }) =>
      isConfigured(server)
        ? `${server.name} ${environment.versions[server.name] ?? ''}`.trim()
        : series,
    );
  const pages = variants.map(({ variant }) => pageOf(scenario, variant));
  return {
    scenario: scenario.name,
    load: listed(variants.map(({ variant, load }) => loadText(loadOf(scenario, variant), load))),
    bodyBytes: pages.flatMap(({ bodyBytes }) => bodyBytes ?? []),
    pages: pages.map((page) => requestsOf(page).length),
    protocol: listed(variants.map(({ load }) => protocolName(load))),
    network: networkText(variants.map(({ variant }) => networkOf(scenario, variant))),
    rounds: fewest,
    seconds: estimatedSeconds(plan, fewest),
    estimated: true,
    ...(most === fewest ? {} : { atMost: { rounds: most, seconds: estimatedSeconds(plan, most) } }),
    server: [...new Set(started)].join(', '),
    addresses: [...new Set(addresses)],
    ...present({ prepare: plan.prepare && shownCommand(plan.prepare) }),
    environment,
  };
}

const longSeconds = 300;

/** Says how to make a long run shorter. @param ownWays of the command: "fewer --variants" */
export function shorterLine(
  plan: PlanDraft,
  options: RunOptions,
  ownWays: readonly string[],
): string[] {
  const seconds = estimatedSeconds(plan);
  if (seconds <= longSeconds) return [];
  const ways = [...ownWays];
  if (plan.rounds > 1)
    ways.unshift(
      plan.precision === undefined ? 'fewer --rounds' : 'a wider --precision',
      plan.maxTimeSeconds === undefined ? 'a --max-time' : 'a shorter --max-time',
    );
  // Set rounds and seconds leave --quick little to save.
  const isSet = options.rounds !== undefined && options.durationSeconds !== undefined;
  if (!plan.quick && !plan.exact && plan.precision === undefined && !isSet) ways.unshift('--quick');
  return [`To make it shorter: ${ways.join(', ')}.`];
}

interface Running {
  /** "round 2 of 10". */
  what: string;
  /** requests/s now, or ratios; cut to the width. */
  seen: string;
  /** Until the run ends, or verdicts may end it. */
  secondsLeft: number;
}

type RunProgress = ReturnType<typeof createRunProgress>;

/**
 * Shows progress on stderr: one line that is rewritten on a terminal, plain lines in a pipe. The time left counts down, also beyond the
 * expected end.
 */
export function createRunProgress(stream: LineStream) {
  const live = liveLines(stream);
  let running: (Running & { endsAtMs: number }) | undefined;
  const work = {
    lines: () => {
      if (running === undefined) return [];
      const { what, seen, endsAtMs } = running;
      return [`${what} · ${timeLeft((endsAtMs - performance.now()) / 1000)} · ${seen}`];
    },
  };

  /** Prints a line that stays. */
  const say = (line: string) => live.print(wrapLines([line], live.columns ?? Infinity));

  return {
    /** Rewrites the line on a terminal. */
    running(step: Running): void {
      running = { ...step, endsAtMs: performance.now() + 1000 * step.secondsLeft };
      live.show(work);
    },
    /** Prints a line in a pipe. */
    finished(line: string): void {
      if (!live.isTerminal) say(line);
    },
    say,
    /** Removes the line for good. */
    clear: () => live.end(work),
  };
}

/** "1:15 left", "0:03 longer than expected". */
function timeLeft(seconds: number): string {
  const whole = Math.max(1, Math.round(Math.abs(seconds)));
  const time = `${Math.floor(whole / 60)}:${String(whole % 60).padStart(2, '0')}`;
  return seconds > 0 ? `${time} left` : `${time} longer than expected`;
}

export function progressEvents(plan: Plan, progress: RunProgress): RunEvents {
  const roundOf = (round: number) => {
    // As many as the heading says, unless there is time for more.
    const most = Math.max(round, expectedRounds(plan).most);
    const look = Math.min(nextLook(plan, round), most);
    return `round ${round} of ${look}${look === most ? '' : ` to ${most}`}`;
  };
  let step = '';
  return {
    load({ round, variants, rps, comparisons, secondsLeft }) {
      const seen = seenSoFar(variants, rps, comparisons);
      progress.running({
        what: roundOf(round),
        seen: step === '' ? seen : `${seen} · ${step}`,
        secondsLeft,
      });
    },
    say: progress.say,
    announce: progress.say,
    stepped({ round, attempt, steps }) {
      step = steps
        .map(
          (sideStep) =>
            `${sideStep.variant} ${whole(sideStep.rate)}/s: ${plan.stepped?.textOf(sideStep)}`,
        )
        .join(', ');
      progress.finished(`${roundOf(round)} · ${step}${folderText(round, attempt)}`);
    },
    measured({ round, attempt, variant, outcome: { phases, stepped } }) {
      const ratio = successRatioOf(phases) ?? 0;
      const hung = total(phases, (phase) => phase.hung);
      const errorCount = total(phases, (phase) => phase.errors.total);
      const errors = [
        counts(errorCount, 'error'),
        ...(hung === 0 ? [] : [`${whole(hung)} hung`]),
        ...(ratio === 1 ? [] : [`${success(ratio)} succeeded`]),
      ];
      const rate = `${stepped?.found.atLeast === true ? 'at least ' : ''}${whole(stepped?.found.rate ?? roundRps(phases))} requests/s`;
      const line = `${roundOf(round)} · ${variant} · ${rate} · ${errors.join(', ')}`;
      progress.finished(line + folderText(round, attempt));
      step = '';
    },
  };
}

/** The ratios after two rounds; before, and for a lone variant, requests/s. */
function seenSoFar(
  variants: readonly string[],
  rps: number | null,
  comparisons: readonly Comparison[],
): string {
  const ratios = comparisons
    .filter(({ roundRatios }) => roundRatios.length > 1)
    .map(
      ({ metric, variant, ratio, ci95 }) =>
        `${variant} ${metricMark(metric)}${effect(ratio, ci95)}`,
    );
  if (variants.length > 1 && ratios.length > 0) return ratios.join(', ');
  return `${variants.join(', ')}${rps === null ? '' : ` · ${whole(rps)} requests/s now`}`;
}

/**
 * Prints the result, writes its files, and judges it.
 * @param lines are printed instead of the tables and sentences; --json then prints no result
 * @returns the exit code
 * @throws the error that ended the run early; UserError if no request of a row succeeded, or if too many failed in each comparison
 */
export async function reportRun(
  { result, ended, folder }: Omit<RunOutcome, 'kept'> & { folder: RunFolder },
  options: RunOptions,
  lines?: readonly string[],
): Promise<number> {
  const contributions = options.contributionsTo(result);
  // A load in steps that was ended in its first round has a curve, counts have a table.
  const measured =
    wholeRounds(result.variants) > 0 ||
    curvesOf(result).length > 0 ||
    contributions.some(({ tables = [] }) => tables.length > 0);
  if (measured) {
    const stored = [...storedLines(contributions), join(folder.name, 'report.html')].join(' · ');
    const terminal = terminalOf(options);
    const text =
      lines === undefined
        ? terminalReport(result, contributions, [stored], terminal)
        : [...lines, ...wrapLines([stored], terminal.width)];
    print(options, ['', ...text]);
    const files = await Promise.allSettled([
      writePage(folder.path, result, contributions),
      writeWhole(join(folder.path, 'table.md'), markdownReport(result, contributions)),
      ...options.exports.map(({ flag, file }) =>
        writeForUser(
          file,
          exportText[flag].of(result, contributions),
          exportText[flag].isOwn,
        ).catch(explained(flag, file, 1)),
      ),
    ]);
    const failed = files.find((file) => file.status === 'rejected');
    // After a failed run, e.g. on a full disk, the run's own error is the one to show.
    if (failed !== undefined && ended === undefined)
      throw await explainFailure(folder, failed.reason);
    if (options.json && lines === undefined)
      await printJson(resultJson(result), `${join(folder.name, 'result.json')} has it`);
  }
  if (ended !== undefined) throw await explainFailure(folder, ended);
  const silent = nothingLines(result);
  if (measured && silent.length > 0)
    throw new UserError(`a side was not measured: ${silent.join(' ').slice(0, -1)}`);
  const compared = measuredComparisons(result);
  // An article may have published the failures.
  const isPublished = result.variants.some(({ published }) => published !== null);
  const wrongSideOf = (comparison: Comparison) => sideWithWrongAnswers(sidesOf(comparison, result));
  const hasWrongSide = (comparison: Comparison) =>
    comparison.verdict === 'none' && wrongSideOf(comparison) !== undefined;
  if (measured && !isPublished && compared.length > 0 && compared.every(hasWrongSide)) {
    const causes = new Set(
      compared.map((comparison) => {
        const side = wrongSideOf(comparison);
        const cause = side === undefined ? '' : failureCause(failureCauseOf(side));
        return `${comparison.why}${cause === '' ? '' : `: ${cause}`}`;
      }),
    );
    throw new UserError(`nothing was compared: ${[...causes].join(', ')}`);
  }
  const { failIf, instead } = options;
  const ofVerdicts = failIf === undefined ? 0 : failIfCode(result, failIf, console.error);
  const gate = instead?.judge(result, console.error) ?? ofVerdicts;
  const lacks = contributions.flatMap(({ stored }) => stored?.lack ?? []);
  if (gate !== 0 || lacks.length === 0) return gate;
  console.error(`the figures above are right, but ${lacks.join(', ')}`);
  return 1;
}

/** Writes report.html. Its code includes a bundler, so it is loaded only when a run has a table. */
async function writePage(
  folder: string,
  result: Result,
  contributions: readonly Contribution[],
): Promise<void> {
  const { writeHtmlReport } = await import('../report/html/run-page.ts');
  await writeHtmlReport(folder, result, contributions);
}

/** With --json, throws UserError (exit code 2) if stdout was closed when this process began. */
export function checkOutput({ json }: Pick<RunOptions, 'json'>): void {
  if (json && isStdoutClosed())
    throw usageError('--json: stdout is closed: open it for the result, or leave --json out');
}

/** Node opens /dev/null for reading and writing in place of a closed stdout; `> /dev/null` opens it for writing only. */
function isStdoutClosed(): boolean {
  const { rdev } = fstatSync(1);
  if (rdev !== statSync('/dev/null').rdev) return false;
  const facts = textOf('/proc/self/fdinfo/1');
  const flags = Number.parseInt(/^flags:\s*(\d+)/m.exec(facts)?.[1] ?? '0', 8);
  return (flags & constants.O_RDWR) !== 0;
}

/**
 * Prints the JSON text of --json on stdout. Throws UserError if stdout does not take all of it.
 * @param remedy where the user finds the figures then
 */
export function printJson(json: string, remedy: string): Promise<void> {
  return new Promise((resolve, reject) => {
    process.stdout.write(json, (error) => {
      if (error == null) resolve();
      else
        reject(
          new UserError(
            `--json: stdout did not take the whole result (${error.message}): ${remedy}`,
          ),
        );
    });
  });
}

/** Prints lines of text, wrapped to the terminal's width: on stdout, or with --json on stderr. */
export function say(options: RunOptions, lines: readonly string[]): void {
  print(options, wrapLines(lines, terminalOf(options).width));
}

/** Prints lines as they are, such as those of tables, which may have colours. */
export function print({ json }: RunOptions, lines: readonly string[]): void {
  if (lines.length > 0) (json ? console.error : console.log)(lines.join('\n'));
}

export function terminalOf({ json, verbose }: RunOptions): TerminalReportOptions {
  return { ...terminal(json ? process.stderr : process.stdout), verbose: verbose === true };
}

interface Export {
  of(result: Result, contributions: readonly Contribution[]): string;
  /** Returns whether a file's text is such an export. */
  isOwn(text: string, file: string): boolean;
}

const exportText: Readonly<Record<ExportFlag, Export>> = {
  'export-markdown': { of: markdownReport, isOwn: isMarkdownReport },
  'export-json': { of: resultJson, isOwn: isJsonExport },
  'export-csv': { of: csvReport, isOwn: isCsvReport },
};

/** Returns whether a file is an earlier export of --export-json, and not a run's own result.json. */
function isJsonExport(text: string, file: string): boolean {
  const run = runOfJson(text);
  return run !== undefined && run !== basename(dirname(file));
}

/** Throws UserError (exit code 2) if an export cannot be written. */
export async function checkExports(exports: Exports): Promise<void> {
  for (const { flag, file } of exports)
    await checkForUser(file, exportText[flag].isOwn).catch(explained(flag, file, 2));
}

const explained =
  (flag: ExportFlag, file: string, exitCode: 1 | 2) =>
  ({ code = '', message }: NodeJS.ErrnoException) => {
    const why = code === 'ENOENT' ? 'its folder is not there' : (writeReasons[code] ?? message);
    throw new UserError(`--${flag} ${file} cannot be written: ${why}`, exitCode);
  };
