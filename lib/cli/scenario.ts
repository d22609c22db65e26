// npm run scenario: lists the scenarios, or runs one and prints its table.
import { unknownWord } from '../errors.ts';
import { present } from '../present.ts';
import { articleTitle } from '../report/article.ts';
import { articlesOf, findScenario, loadScenarios } from '../scenario/catalogue.ts';
import type { Scenario } from '../scenario/model.ts';
import { typed } from '../setup/paths.ts';
import { runArticle } from './article.ts';
import { readRunOptions, runFlags } from './run-options.ts';
import { runScenario } from './run-scenario.ts';
import { onlyWord, printHelp, readWords, type Flag } from './words.ts';

export const scenarioFlags = {
  ...runFlags,
  variants: { value: 'a,b', help: 'only these variants' },
  exact: { help: 'threads, workers, times and counts as published, not fitted to this machine' },
} as const satisfies Record<string, Flag>;

/** Without a name the scenarios are listed. @throws UserError (exit code 2) for words that are wrong or do not go together */
export function readScenarioOptions(args: readonly string[]) {
  const words = readWords(args, scenarioFlags);
  const { positionals, flags } = words;
  const name = onlyWord(positionals, 'scenario');
  return {
    ...readRunOptions(words),
    ...present({ name, variants: flags.get('variants')?.split(',') }),
    exact: flags.has('exact'),
  };
}

/** Returns the exit code. Throws UserError and Interrupted. */
export async function scenarioCommand(args: readonly string[]): Promise<number> {
  const options = readScenarioOptions(args);
  const { name } = options;
  if (name === undefined || options.help) {
    printHelp(await overview(), scenarioFlags);
    return 0;
  }
  if (!/^\d+$|^all$/.test(name))
    return runScenario(await findScenario(name), options, () => undefined);
  const articles = articlesOf(await loadScenarios());
  const asked = articles.filter(({ id }) => name === 'all' || id === name);
  if (asked.length === 0)
    throw unknownWord(
      'article',
      name,
      articles.map(({ id }) => id),
    );
  let code = 0;
  for (const article of asked) code = Math.max(code, await runArticle(article, options));
  return code;
}

async function overview(): Promise<string[]> {
  const scenarios = await loadScenarios();
  const width = Math.max(...scenarios.map(({ name }) => name.length));
  const articles = articlesOf(scenarios);
  const lineOf = ({ name, title }: Scenario) => `  ${name.padEnd(width)}  ${title}`;
  const own = scenarios.filter(({ article }) => article === undefined);
  return [
    `${typed('scenario')} NAME|FILE.ts [flags]`,
    `${typed('scenario')} ${articles[0]?.id ?? ''}|all [flags]    all scenarios of an article, or of all, with a page on its claims`,
    ...articles.flatMap((article) => [
      '',
      `${article.id}  ${articleTitle(article)}`,
      ...(article.scenarios ?? []).flatMap((name) =>
        scenarios.filter((one) => one.name === name).map(lineOf),
      ),
    ]),
    '',
    ...own.map(lineOf),
  ];
}
