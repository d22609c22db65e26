// npm run scenario -- 000: runs an article's scenarios, and writes its page.
import { join } from 'node:path';
import { messageOf, unknownWord, usageError, UserError } from '../errors.ts';
import { writeWhole } from '../writing.ts';
import { duration } from '../format.ts';
import { Interrupted } from '../signals.ts';
import { articleMarkdown, articleTitle, claimsTable, type ArticleRun } from '../report/article.ts';
import { articlePage } from '../report/html/article-page.ts';
import { terminalTable, wrapLines } from '../report/table.ts';
import type { Result } from '../result/result.ts';
import { runName } from '../runner/make-plan.ts';
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
          `the claim "${text}": ${name} does not compare ${variant} with ${against}: turn it round, or name them in its \`alsoCompare\``,
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

/**
 * Runs the article's scenarios in order, long ones with --quick, and writes article.html, and article.md with the main tables. Prints
 * which scenarios cannot run on this machine.
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
  const results = new Map<string, Result>();
  const missing: string[] = [];
  const { scenarios = [] } = article;
  let code = 0;
  let interrupted: Interrupted | undefined;
  for (const [index, name] of scenarios.entries()) {
    say(options, [
      `${article.id} · ${articleTitle(article)} · ${index + 1} of ${scenarios.length}: ${name}`,
    ]);
    try {
      const scenario = own.find((one) => one.name === name) ?? (await findScenario(name));
      const asked: AskedOptions & { mostSeconds: number } = {
        ...options,
        mostSeconds,
        together: scenarios.length,
      };
      const possible =
        options.machines !== undefined
          ? undefined
          : await possibleVariants(scenario, findVariants(scenario), () => true);
      if (possible !== undefined) {
        asked.variants = possible.names;
        code = 1;
        missing.push(`${name}: ${possible.why}`);
        console.error(leftOutLine(possible));
      }
      const done =
        options.resume && (await findDone(scenario, asked, (line) => say(options, [line])));
      if (done) {
        results.set(name, done.result);
        say(options, [`it is measured: ${done.folder}`]);
        const { failIf } = options;
        if (failIf) code = Math.max(code, failIfCode(done.result, failIf, console.error));
      } else {
        const exitCode = await runScenario(scenario, asked, (result) => results.set(name, result));
        code = Math.max(code, exitCode);
      }
    } catch (error) {
      if (error instanceof Interrupted) {
        interrupted = error;
        break;
      }
      if (!(error instanceof UserError)) throw error;
      code = Math.max(code, 1);
      missing.push(`${name}: ${messageOf(error)}`);
      console.error(messageOf(error));
    }
    say(options, ['']);
  }
  await writePage({ article, results, missing }, options, startedAt);
  if (interrupted !== undefined) {
    if (own.length === 0)
      say(options, ['to go on where this ended: the same command with --resume']);
    throw interrupted;
  }
  return code;
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

async function writePage(run: ArticleRun, options: ScenarioOptions, startedAt: Date) {
  // Ended before there was anything to say.
  if (run.results.size === 0 && run.missing.length === 0) return;
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
    ...wrapLines([`${articleTitle(run.article)} in ${duration(seconds)} · ${where}`], Infinity),
  ]);
}
