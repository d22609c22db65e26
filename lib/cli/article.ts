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
import { createRunFolder } from '../runner/results-folder.ts';
import { findVariants } from '../scenario/catalogue.ts';
import type { Article } from '../scenario/article.ts';
import type { Scenario } from '../scenario/model.ts';
import { allNames, repeated } from '../present.ts';
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
  for (const name of article.scenarios ?? []) known(name, names, 'scenario in the list');
  for (const { text, rests } of article.claims ?? [])
    for (const { scenario, variant, against } of rests) {
      known(scenario, names, `scenario for the claim "${text}"`);
      const variants = scenarios.find(({ name }) => name === scenario)?.variants ?? [];
      for (const one of [variant, against])
        known(one, allNames(variants), `variant for the claim "${text}"`);
    }
  return { scenarios: names, ...article };
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
