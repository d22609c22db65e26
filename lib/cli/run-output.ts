// What a run prints: its heading, its progress, and its report; and its exit code.
import { join } from 'node:path';
import { roundRps, successRatioOf, wholeRounds } from '../analysis/phases.ts';
import { total } from '../analysis/statistics.ts';
import { UserError, messageOf } from '../errors.ts';
import { counts, duration, scaledTime, success, times, whole } from '../format.ts';
import { listed, loadText, whereRun, type Heading } from '../report/heading.ts';
import { writeHtmlReport } from '../report/html/run-page.ts';
import { csvReport } from '../report/csv.ts';
import { markdownReport } from '../report/markdown.ts';
import { metricMark } from '../report/verdict-words.ts';
import { networksText } from '../report/network.ts';
import {
  terminalReport,
  type RunProgress,
  type TerminalReportOptions,
} from '../report/terminal.ts';
import { nothingLines, storedLine } from '../report/sentences.ts';
import { wrapLines } from '../report/table.ts';
import { estimatedSeconds, expectedRounds, type Plan, type PlanDraft } from '../runner/plan.ts';
import { makePlan } from '../runner/make-plan.ts';
import { resultJson, type Comparison, type Environment, type Result } from '../result/result.ts';
import { checkWhole, whereItLeads, whyNoFile, writeWhole } from '../files.ts';
import type { RunEvents, RunOutcome } from '../runner/run.ts';
import { isConfigured, loadOf, networkOf, pageOf, programOf } from '../scenario/variants.ts';
import { writeReasons } from '../runner/results-folder.ts';
import { typed } from '../setup/paths.ts';
import { failIfCode } from './fail-if.ts';
import type { ExportFlag, Exports, RunOptions } from './run-options.ts';

/** What stands above the table, with the time estimated. */
export function headingOf(plan: Plan, environment: Environment): Heading {
  const { scenario, variants } = plan;
  const { fewest, most } = expectedRounds(plan);
  const named = (atAddress: boolean): string[] => [
    ...new Set(
      variants.flatMap(({ variant: { server } }) =>
        (server.name === 'address') === atAddress
          ? [
              isConfigured(server)
                ? `${server.name} ${environment.versions[server.name] ?? ''}`.trim()
                : programOf(server),
            ]
          : [],
      ),
    ),
  ];
  return {
    scenario: scenario.name,
    load: listed(variants.map(({ variant, load }) => loadText(loadOf(scenario, variant), load))),
    bodyBytes: [...new Set(variants.map(({ variant }) => pageOf(scenario, variant).bodyBytes))],
    pages: variants.map(
      ({ variant }) => Object.keys(pageOf(scenario, variant).weights ?? {}).length || 1,
    ),
    protocol: listed(variants.map(({ load }) => load.protocol)),
    network: networksText(variants.map(({ variant }) => networkOf(scenario, variant))),
    rounds: fewest,
    seconds: estimatedSeconds(plan, fewest),
    estimated: true,
    ...(most === fewest ? {} : { atMost: { rounds: most, seconds: estimatedSeconds(plan, most) } }),
    server: named(false).join(', '),
    addresses: named(true),
    ...whereRun(environment),
  };
}

/** A run longer than this says how to make it shorter. */
const longSeconds = 300;

/** How to make a long run shorter; nothing for a short one. `ownWays`: those of the command, in words. */
export function shorterLine(
  plan: PlanDraft,
  options: RunOptions,
  ownWays: readonly string[],
): string[] {
  if (estimatedSeconds(plan) <= longSeconds) return [];
  // The plan's scenario is at its rates already.
  const { rates: _, ...others } = options;
  const quick = makePlan(plan.scenario, plan.shown, plan.cores, {
    ...others,
    quick: true,
    exact: plan.exact,
  });
  // With rounds and seconds that the person has set, it is hardly shorter; with two flags it does not go.
  const isQuickest =
    plan.quick ||
    plan.exact ||
    plan.precision !== undefined ||
    estimatedSeconds(quick) > 0.9 * estimatedSeconds(plan);
  const first = isQuickest ? [] : [`--quick (about ${duration(estimatedSeconds(quick))})`];
  const fewer = plan.precision === undefined ? 'fewer --rounds' : 'a wider --precision';
  return [
    `To make it shorter: ${[...first, ...(plan.rounds > 1 ? [fewer, plan.maxTimeSeconds === undefined ? 'a --max-time' : 'a shorter --max-time'] : []), ...ownWays].join(', ')}.`,
  ];
}

/** Tells the person what goes on. */
export function progressEvents(plan: Plan, progress: RunProgress): RunEvents {
  const roundOf = (round: number): string => {
    const look = plan.looks.find((one) => one >= round) ?? plan.rounds;
    return `round ${round} of ${look}${look === plan.rounds ? '' : ` to ${plan.rounds}`}`;
  };
  const { within } = plan;
  let step = '';
  return {
    load({ round, variants, rps, comparisons, secondsLeft }) {
      progress.running({
        what: roundOf(round),
        seen: [seenSoFar(variants, rps, comparisons), ...(step === '' ? [] : [step])].join(' · '),
        secondsLeft,
      });
    },
    stepped({ round, steps }) {
      step = steps
        .map(
          ({ variant, rate, kept, why, latencyMs }) =>
            `${variant} ${whole(rate)}/s: ${kept && within !== undefined ? `${within.metric} ${scaledTime(latencyMs[within.metric])}` : `no, ${why}`}`,
        )
        .join(', ');
      progress.finished(`${roundOf(round)} · ${step}`);
    },
    measured({ round, variant, outcome: { phases, search } }) {
      const ratio = successRatioOf(phases) ?? 0;
      const hung = total(phases, (phase) => phase.hung);
      const errors = `${counts(
        total(phases, (phase) => phase.errors.total),
        'error',
      )}${hung === 0 ? '' : `, ${whole(hung)} hung`}${ratio === 1 ? '' : `, ${success(ratio)} succeeded`}`;
      const rate = `${search?.found.atLeast === true ? 'at least ' : ''}${whole(search?.found.rate ?? roundRps(phases))} requests/s`;
      progress.finished(`${roundOf(round)} · ${variant} · ${rate} · ${errors}`);
      step = '';
    },
    repeated({ round, why, whole }) {
      progress.say(
        `round ${round} is ${whole ? 'measured again' : 'dropped and repeated'}: ${why}`,
      );
    },
    undecided({ rounds, variants, next }) {
      progress.say(
        `after ${rounds} rounds ${variants.join(', ')} ${variants.length === 1 ? 'is' : 'are'} inconclusive: going on to ${next}`,
      );
    },
    timeOver({ rounds }) {
      progress.say(
        `after ${rounds} ${rounds === 1 ? 'round' : 'rounds'} there is no time for another one (--max-time)`,
      );
    },
  };
}

/** The ratios, once there are two rounds; before that, and for who is alone, requests/s. */
function seenSoFar(
  variants: readonly string[],
  rps: number | null,
  comparisons: readonly Comparison[],
): string {
  const ratios = comparisons
    .filter(({ roundRatios }) => roundRatios.length > 1)
    .map(
      ({ metric, variant, ratio, ci95 }) => `${variant} ${metricMark(metric)}${times(ratio, ci95)}`,
    );
  if (variants.length > 1 && ratios.length > 0) return ratios.join(', ');
  return `${variants.join(', ')}${rps === null ? '' : ` · ${whole(rps)} requests/s now`}`;
}

/**
 * Prints the result, writes its files, and judges it. Returns the exit code.
 * @param lines to print instead of the tables and sentences; --json then prints no result
 * @throws the error that ended the run early; UserError if no request of a row succeeded
 */
export async function report(
  { result, ended, folder }: RunOutcome & { folder: string },
  options: RunOptions,
  lines?: readonly string[],
): Promise<number> {
  // A search that was ended in its first round has steps.
  const measured = wholeRounds(result.variants) > 0 || (result.search?.steps ?? []).length > 0;
  if (measured) {
    const stored = `${storedLine(result.integrity)} · ${await htmlPage(folder, result)}`;
    const terminal = terminalOf(options);
    say(
      options,
      [
        '',
        ...(lines === undefined
          ? terminalReport(result, [stored], terminal)
          : [...lines, ...wrapLines([stored], terminal.width)]),
      ],
      Infinity,
    );
    const failed = (
      await Promise.allSettled([
        writeWhole(join(folder, 'table.md'), markdownReport(result)),
        ...writeExports(options.exports, result),
      ])
    ).find((file): file is PromiseRejectedResult => file.status === 'rejected');
    // After a failed run, e.g. on a full disk, the run's own error is the one to show.
    if (failed !== undefined && ended === undefined) throw failed.reason;
    if (options.json && lines === undefined) process.stdout.write(resultJson(result));
  }
  if (ended !== undefined) throw ended;
  const silent = nothingLines(result);
  if (measured && silent.length > 0) {
    const isAll =
      silent.length === result.variants.filter(({ rounds }) => rounds.length > 0).length;
    throw new UserError(
      `${isAll ? 'nothing was compared' : 'a side was not measured'}: ${silent.join(' ').slice(0, -1)}`,
    );
  }
  return options.failIf === undefined ? 0 : failIfCode(result, options.failIf, console.error);
}

/** Prints lines, wrapped to `width`: on stdout, or with --json on stderr. */
export function say(
  options: RunOptions,
  lines: readonly string[],
  width = terminalOf(options).width,
): void {
  if (lines.length > 0)
    (options.json ? console.error : console.log)(wrapLines(lines, width).join('\n'));
}

/** How the person's terminal shows text. */
export function terminalOf({ json, verbose }: RunOptions): TerminalReportOptions {
  const stream = json ? process.stderr : process.stdout;
  // Some terminals report 0 columns.
  const width = stream.isTTY ? stream.columns || Infinity : Infinity;
  return {
    width,
    colour: width !== Infinity && process.env['NO_COLOR'] === undefined,
    verbose: verbose === true,
  };
}

/** Writes report.html and returns its path; that of the folder when it cannot be written: a run is not lost for its page. */
async function htmlPage(folder: string, result: Result): Promise<string> {
  try {
    return await writeHtmlReport(folder, result);
  } catch (error) {
    console.error(
      `report.html was not written: ${messageOf(error)}; make it again with: ${typed('report')} ${folder}`,
    );
    return folder;
  }
}

const textOf: Readonly<Record<ExportFlag, (result: Result) => string>> = {
  'export-markdown': markdownReport,
  'export-json': resultJson,
  'export-csv': csvReport,
};

/** Makes sure that they can be written, and leaves everything as it was. @throws UserError (exit code 2) */
export async function checkExports(exports: Exports): Promise<void> {
  for (const { flag, file } of exports) {
    const why = await whyNoFile(file);
    if (why !== undefined) throw new UserError(`--${flag} ${file}: ${why}`, 2);
    await explained(flag, file, 2, checkWhole);
  }
}

/** Begins to write them, each whole or not at all. They reject with UserError. */
export function writeExports(exports: Exports, result: Result): Promise<void>[] {
  return exports.map(({ flag, file }) =>
    explained(flag, file, 1, (target) => writeWhole(target, textOf[flag](result))),
  );
}

async function explained(
  flag: ExportFlag,
  file: string,
  exitCode: 1 | 2,
  write: (target: string) => Promise<void>,
): Promise<void> {
  try {
    await write(await whereItLeads(file));
  } catch (error) {
    const { code = '', message } = error as NodeJS.ErrnoException;
    throw new UserError(
      `--${flag} ${file} cannot be written: ${code === 'ENOENT' ? 'its folder is not there' : (writeReasons[code] ?? message)}`,
      exitCode,
    );
  }
}
