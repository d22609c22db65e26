// npm run scenario -- 000: runs an article's scenarios, and writes its page.
import { join } from 'node:path';
import { messageOf, unknownWord, usageError, UserError } from '../errors.ts';
import { writeWhole } from '../writing.ts';
import { duration, enumeration } from '../format.ts';
import { total } from '../analysis/statistics.ts';
import { Interrupted } from '../signals.ts';
import {
  articleMarkdown,
  articleTitle,
  claimsLines,
  claimsTable,
  type ArticleRun,
} from '../report/article.ts';
import { decidingRuns, keyOfResult } from '../report/claims.ts';
import { articlePage } from '../report/html/article-page.ts';
import { terminalTable, wrapLines } from '../report/table.ts';
import type { Result } from '../result/result.ts';
import { runName } from '../runner/make-plan.ts';
import { estimatedSeconds } from '../runner/times.ts';
import { giveToCaller } from '../process.ts';
import { checkResultsFolder, createRunFolder } from '../runner/results-folder.ts';
import { findVariants } from '../scenario/catalogue.ts';
import type { Article } from '../scenario/article.ts';
import type { Scenario } from '../scenario/model.ts';
import { allNames, repeated } from '../present.ts';
import { baselineName } from '../scenario/variants.ts';
import { failIfCode } from './fail-if.ts';
import { findScenario } from './find-scenario.ts';
import {
  leftOutLine,
  localDraft,
  possibleVariants,
  mostSeconds,
  runScenario,
  type AskedOptions,
  type ScenarioOptions,
} from './run-scenario.ts';
import { findDone } from './stored-results.ts';
import { print, say, terminalOf } from './run-output.ts';

/**
 * The article of a file with a list of scenarios. All of them are its scenarios if it names none.
 * @throws UserError if they do not share one, or a claim rests on what none of them has
 */
export function articleOf(scenarios: readonly Scenario[]): Article {
  const [{ article } = {}] = scenarios;
  if (article === undefined || scenarios.some((other) => other.article?.id !== article.id))
    throw new UserError('a list of scenarios is an article: give all of them the same `article`');
  const names = allNames(scenarios);
  const twice = repeated(names);
  if (twice !== undefined) throw new UserError(`two scenarios have the name ${twice}`);
  const known = (word: string, all: readonly string[], what: string) => {
    if (!all.includes(word)) throw unknownWord(what, word, all);
  };
  const named = article.scenarios ?? names;
  for (const name of named) known(name, names, 'scenario in the list');
  const unnamed = names.find((name) => !named.includes(name));
  if (unnamed !== undefined)
    throw new UserError(`the article's \`scenarios\` lack ${unnamed}: name all, or leave them out`);
  for (const { text, rests } of article.claims ?? [])
    for (const { scenario: name, variant, against, is } of rests) {
      known(name, names, `scenario for the claim "${text}"`);
      const scenario = scenarios.find((one) => one.name === name);
      if (scenario === undefined) continue;
      for (const one of [variant, against])
        known(one, allNames(scenario.variants), `variant for the claim "${text}"`);
      if (is !== undefined && !areCompared(scenario, variant, against))
        throw new UserError(
          `the claim "${text}": ${name} does not compare ${variant} with ${against}: swap them, or name them in its \`alsoCompare\``,
        );
    }
  return { ...article, scenarios: named };
}

function areCompared(scenario: Scenario, variant: string, against: string): boolean {
  const { variants, alsoCompare = [] } = scenario;
  return (
    variants.some((one) => one.name === variant && baselineName(scenario, one) === against) ||
    alsoCompare.some((pair) => pair.variant === variant && pair.against === against)
  );
}

/** The time without --max-time. Scenarios run however long they take; claims that are still open get more runs only within this time. */
const usualSeconds = 600;
/** How long starts, and each side alone after the rounds, take in a run for a claim. */
const besideRoundsSeconds = 25;

/** An article that is being run. */
interface Sitting {
  article: Article;
  options: ScenarioOptions;
  /** Scenarios of a file; others are shipped ones. */
  own: readonly Scenario[];
  /** The results by keyOfResult. */
  results: Map<string, Result>;
  /** A line for each scenario that could not be run. */
  missing: string[];
  /** performance.now() */
  endsAtMs: number;
  /** The highest so far. */
  code: number;
}

/** A run for an open claim. */
interface ClaimRun {
  key: string;
  scenario: Scenario;
  asked: Partial<AskedOptions>;
  seconds: number;
}

/**
 * Runs the article's scenarios in order, long ones with --quick. Then runs the sides of each open claim with as many rounds as it needs,
 * the claim that takes longest last, as far as the time goes. Writes article.html, and article.md with the main tables. Prints which
 * scenarios cannot run on this machine, and how long it would take to decide the claims that are left.
 * @param own scenarios of a file; others are shipped ones
 * @returns the highest exit code, or 1 if a scenario could not run
 * @throws UserError (exit code 2) for flags of a single scenario; Interrupted, after writing the page of the results so far
 */
export async function runArticle(
  article: Article,
  options: ScenarioOptions,
  own: readonly Scenario[] = [],
): Promise<number> {
  requireNoSingle(options);
  const startedAt = new Date();
  const endsAtMs = performance.now() + (options.maxTimeSeconds ?? usualSeconds) * 1000;
  const sitting = { article, options, own, results: new Map(), missing: [], endsAtMs, code: 0 };
  let left: ClaimRun[] = [];
  let interrupted: Interrupted | undefined;
  try {
    await runScenarios(sitting);
    left = await decideClaims(sitting);
  } catch (error) {
    if (!(error instanceof Interrupted)) throw error;
    interrupted = error;
  }
  await writePage(sitting, left, startedAt);
  if (interrupted !== undefined) {
    if (own.length === 0)
      say(options, ['to go on where this ended: the same command with --resume']);
    throw interrupted;
  }
  return sitting.code;
}

async function runScenarios(sitting: Sitting) {
  const { article, options } = sitting;
  const { scenarios = [] } = article;
  for (const [index, name] of scenarios.entries()) {
    say(options, [
      `${article.id} · ${articleTitle(article)} · ${index + 1} of ${scenarios.length}: ${name}`,
    ]);
    try {
      const scenario = await scenarioOf(sitting, name);
      const share = secondsLeft(sitting) / (scenarios.length - index);
      // An estimate before the first round may be several times too long.
      const asked: Partial<AskedOptions> = { mostSeconds: Math.max(mostSeconds, share) };
      const possible =
        options.machines !== undefined
          ? undefined
          : await possibleVariants(scenario, findVariants(scenario), () => true);
      if (possible !== undefined) {
        asked.variants = possible.names;
        sitting.code = 1;
        sitting.missing.push(`${name}: ${possible.why}`);
        console.error(leftOutLine(possible));
      }
      await measure(sitting, name, scenario, asked);
    } catch (error) {
      if (!(error instanceof UserError)) throw error;
      sitting.code = Math.max(sitting.code, 1);
      sitting.missing.push(`${name}: ${messageOf(error)}`);
      console.error(messageOf(error));
    }
    say(options, ['']);
  }
}

const secondsLeft = ({ endsAtMs }: Sitting): number => (endsAtMs - performance.now()) / 1000;

async function scenarioOf({ own }: Sitting, name: string): Promise<Scenario> {
  return own.find((one) => one.name === name) ?? (await findScenario(name));
}

/**
 * The options of one of its runs. Each run has the same share of the chance of a false verdict: those of the scenarios, and one for each
 * pair of sides that a claim rests on. --max-time is that of all.
 */
function askedOf(sitting: Sitting, more: Partial<AskedOptions>): AskedOptions {
  const { article, options } = sitting;
  const asked = { ...options, together: mostRunsOf(article), ...more };
  if (asked.maxTimeSeconds !== undefined) asked.maxTimeSeconds = secondsLeft(sitting);
  return asked;
}

/** The number of runs that an article may have. */
export function mostRunsOf({ scenarios = [], claims = [] }: Article): number {
  const pairs = claims.flatMap(({ rests }) =>
    rests.map(({ scenario, variant, against }) => keyOfResult(scenario, [against, variant])),
  );
  return scenarios.length + new Set(pairs).size;
}

/** Runs a scenario, or takes the result that it has. @throws UserError and Interrupted */
async function measure(
  sitting: Sitting,
  key: string,
  scenario: Scenario,
  more: Partial<AskedOptions>,
) {
  if (await takeMeasured(sitting, key, scenario, more)) return;
  const asked = askedOf(sitting, more);
  const code = await runScenario(scenario, asked, (result) => sitting.results.set(key, result));
  sitting.code = Math.max(sitting.code, code);
}

/** With --resume, takes the result that there is. @returns whether there is one */
async function takeMeasured(
  sitting: Sitting,
  key: string,
  scenario: Scenario,
  more: Partial<AskedOptions>,
): Promise<boolean> {
  const { options, results } = sitting;
  const done = options.resume && (await findMeasured(scenario, askedOf(sitting, more)));
  if (!done) return false;
  results.set(key, done.result);
  say(options, [`it is measured: ${done.folder}`]);
  const { failIf } = options;
  if (failIf) sitting.code = Math.max(sitting.code, failIfCode(done.result, failIf, console.error));
  return true;
}

/** Finds a run that was made whole, however little time there is now, or else one as it would be made now. */
async function findMeasured(scenario: Scenario, asked: AskedOptions) {
  const { mostSeconds: _1, maxTimeSeconds: _2, ...whole } = asked;
  const tell = (line: string) => say(asked, [line]);
  return (await findDone(scenario, whole, tell)) ?? findDone(scenario, asked, () => undefined);
}

/**
 * Runs the sides of open claims, those that take least first.
 * @returns the runs for which there is no time
 * @throws Interrupted
 */
async function decideClaims(sitting: Sitting): Promise<ClaimRun[]> {
  const { options, results, missing } = sitting;
  const cannotRun = [...missing];
  if (options.quick || options.exact || options.machines !== undefined) return [];
  // What is there needs no time.
  for (const { key, scenario, asked } of await openRuns(sitting, cannotRun))
    await takeMeasured(sitting, key, scenario, asked);
  const tried = new Set<string>();
  for (;;) {
    const open = (await openRuns(sitting, cannotRun)).filter(({ key }) => !tried.has(key));
    const [next] = open;
    if (next === undefined || next.seconds > secondsLeft(sitting)) return open;
    tried.add(next.key);
    const { key, scenario, asked } = next;
    const sides = enumeration(asked.variants ?? []);
    say(options, [`${sides} alone, about ${duration(next.seconds)}, to decide a claim`]);
    try {
      await measure(sitting, key, scenario, asked);
    } catch (error) {
      if (!(error instanceof UserError)) throw error;
      sitting.code = Math.max(sitting.code, 1);
      missing.push(`${scenario.name}: ${sides} alone: ${messageOf(error)}`);
      console.error(messageOf(error));
    } finally {
      // Ended early, it decides nothing.
      if (results.get(key)?.state === 'partial') results.delete(key);
    }
    say(options, ['']);
  }
}

/** The runs that would decide open claims, those that take least first. @param cannotRun "SCENARIO: why" */
async function openRuns(sitting: Sitting, cannotRun: readonly string[]): Promise<ClaimRun[]> {
  const { article, results } = sitting;
  const runs = new Map<string, ClaimRun>();
  for (const claim of article.claims ?? [])
    for (const run of decidingRuns(claim, article, results)) {
      const { variants, rounds } = run;
      const key = keyOfResult(run.scenario, variants);
      // One run for a claim shares the chance of error; a second one would not. A side that cannot run decides nothing.
      if (results.has(key) || cannotRun.some((line) => line.startsWith(`${run.scenario}: `)))
        continue;
      const scenario = await scenarioOf(sitting, run.scenario);
      const asked: Partial<AskedOptions> = { variants };
      if (rounds !== undefined) asked.rounds = rounds;
      const { maxTimeSeconds: _, ...whole } = askedOf(sitting, asked);
      const draft = localDraft(scenario, whole);
      if (draft === undefined) continue;
      const seconds = estimatedSeconds(draft) + besideRoundsSeconds;
      runs.set(key, { key, scenario, asked, seconds });
    }
  return [...runs.values()].sort((a, b) => a.seconds - b.seconds);
}

function requireNoSingle({ json, exports, variants }: ScenarioOptions): void {
  const given = [
    ...(json ? ['json'] : []),
    ...exports.map((exported) => exported.flag),
    ...(variants === undefined ? [] : ['variants']),
  ];
  const [flag] = given;
  if (flag !== undefined)
    throw usageError(`--${flag} is of one scenario, and an article has several: leave it out`);
}

async function writePage(sitting: Sitting, left: readonly ClaimRun[], startedAt: Date) {
  const { article, results, missing, options } = sitting;
  const run: ArticleRun = { article, results, missing };
  // Ended before there was anything to say.
  if (results.size === 0 && missing.length === 0) return;
  // A run that was refused has not made it.
  await checkResultsFolder(options.out, 0);
  const folder = await createRunFolder(
    options.out,
    runName(`article-${run.article.id}`, startedAt),
  );
  await writeWhole(join(folder.path, 'article.md'), articleMarkdown(run));
  await writeWhole(
    join(folder.path, 'article.html'),
    await articlePage(run, options.contributionsTo),
  );
  await giveToCaller(folder.path);
  const seconds = (Date.now() - startedAt.getTime()) / 1000;
  const where = join(folder.name, 'article.html');
  print(options, [
    ...terminalTable(claimsTable(run), terminalOf(options)),
    '',
    ...claimsLines(run),
    ...leftLines(sitting, left, seconds),
    ...wrapLines([`${articleTitle(run.article)} in ${duration(seconds)} · ${where}`], Infinity),
  ]);
}

/** Says how long the claims would take for which there was no time. @param tookSeconds so far, which a run without --resume takes again */
function leftLines({ own }: Sitting, left: readonly ClaimRun[], tookSeconds: number): string[] {
  if (left.length === 0) return [];
  const resumes = own.length === 0;
  const seconds = total(left, (run) => run.seconds);
  const minutes = Math.ceil((seconds + (resumes ? 0 : tookSeconds)) / 60) + 1;
  const needed = left.length === 1 ? 'one more run' : `${left.length} more runs`;
  return [
    `What is not decided needs ${needed}, about ${duration(seconds)}: the same command with ${resumes ? '--resume ' : ''}--max-time ${minutes}m.`,
    '',
  ];
}
