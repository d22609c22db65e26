// npm run scenario: lists the scenarios, or runs one and prints its table.
import { total } from '../analysis/statistics.ts';
import { usageError } from '../errors.ts';
import { duration } from '../format.ts';
import { present } from '../present.ts';
import { articleTitle } from '../report/article.ts';
import { estimatedSeconds } from '../runner/times.ts';
import { articlesOf, loadScenarios } from '../scenario/catalogue.ts';
import type { Scenario } from '../scenario/model.ts';
import { typed } from '../setup/paths.ts';
import type { Additions } from './feature.ts';
import { findScenario, findScenarios } from './find-scenario.ts';
import { k6ScriptFlag, writeK6Script } from './k6-script.ts';
import { addedFlags, readRunOptions, runFlags } from './run-options.ts';
import { localDraft, mostSeconds, runScenario, type ScenarioOptions } from './run-scenario.ts';
import {
  onlyArgument,
  printGroupedHelp,
  printHelp,
  readArguments,
  type Flag,
} from './arguments.ts';

export const ownFlags = {
  variants: { group: 'request', value: 'a,b', help: 'only these variants' },
  exact: {
    group: 'time',
    help: 'threads, workers, times and counts as published',
  },
  resume: {
    group: 'time',
    help: 'of an article: what is measured in this boot is not run again',
  },
} as const satisfies Record<string, Flag>;

function scenarioFlags({ runParts }: Additions) {
  return { ...runFlags(runParts), ...ownFlags, ...k6ScriptFlag(addedFlags(runParts)) };
}

/**
 * Reads the arguments. Without a name the scenarios are listed.
 * @throws UserError (exit code 2) for arguments that are wrong or do not go together
 */
export function readScenarioOptions(args: readonly string[], additions: Additions) {
  const parsed = readArguments(args, scenarioFlags(additions));
  const { positionals, flags } = parsed;
  const k6Script = flags.has('k6-script') || undefined;
  const [first, ...more] = positionals;
  const file = k6Script && onlyArgument(more, 'file');
  const name = k6Script ? first : onlyArgument(positionals, 'scenario or article');
  return {
    ...readRunOptions(parsed, additions),
    ...present({ name, variants: flags.get('variants')?.split(','), k6Script, file }),
    exact: flags.has('exact'),
    ...present({ resume: flags.has('resume') || undefined }),
  };
}

/** Returns the exit code. Throws UserError and Interrupted. */
export async function scenarioCommand(
  args: readonly string[],
  additions: Additions,
): Promise<number> {
  const options = readScenarioOptions(args, additions);
  const { name } = options;
  if (options.help) {
    printGroupedHelp(help, scenarioFlags(additions), name === 'all');
    return 0;
  }
  if (options.k6Script) {
    if (name === undefined) throw usageError('--k6-script needs a scenario: NAME --k6-script');
    await writeK6Script(await findScenario(name), options, options.file);
    return 0;
  }
  if (name === undefined) {
    printHelp(await overview(options));
    return 0;
  }
  if (/^\d+$|^all$/.test(name)) return runArticles(name, options);
  if (/^[\w-]+(?:,[\w-]+)+$/.test(name)) {
    const each = name.split(',').map((part) => `${typed('scenario')} ${part}`);
    throw usageError(`one scenario or article at a time: ${each.join(' && ')}`);
  }
  const found = await findScenarios(name);
  if (Array.isArray(found)) {
    if (options.resume)
      throw usageError(`--resume is for a shipped article, such as 000: ${name} may have changed`);
    const { articleOf, runArticle } = await import('./article.ts');
    return runArticle(articleOf(found), options, found);
  }
  if (options.resume)
    throw usageError(`--resume is for an article, such as 000, and ${name} is one scenario`);
  return runScenario(found, options, () => undefined);
}

async function runArticles(name: string, options: ScenarioOptions): Promise<number> {
  const articles = articlesOf(await loadScenarios());
  const asked = articles.filter(({ id }) => name === 'all' || id === name);
  const ids = articles.map(({ id }) => id).join(', ');
  if (asked.length === 0)
    throw usageError(`there is no article ${name}: there are ${ids}, and all of them by all`);
  const { runArticle } = await import('./article.ts');
  let code = 0;
  for (const article of asked) code = Math.max(code, await runArticle(article, options));
  return code;
}

const ways = [
  `${typed('scenario')} NAME|FILE.ts [flags]    a scenario, shipped or your own`,
  `${typed('scenario')} NAME --k6-script [FILE]  a k6 script for servers that run already`,
  `${typed('scenario')} 000|all [flags]         an article, or all: their scenarios, and a page on the claims`,
];

const help = [`${typed('scenario')}                         lists scenarios and articles`, ...ways];

async function overview(options: ScenarioOptions): Promise<string[]> {
  const scenarios = await loadScenarios();
  const width = Math.max(...scenarios.map(({ name }) => name.length));
  const secondsOf = (scenario: Scenario, most = Infinity) => {
    const draft = localDraft(scenario, { ...options, mostSeconds: most });
    return draft && estimatedSeconds(draft);
  };
  const lineOf = (scenario: Scenario) => {
    const time = roughTime(secondsOf(scenario)).padStart(7);
    return `  ${scenario.name.padEnd(width)} ${time}  ${scenario.title}`;
  };
  const withoutArticle = scenarios.filter(({ article }) => article === undefined);
  const byArticle = articlesOf(scenarios).flatMap((article) => {
    const listed = (article.scenarios ?? []).flatMap((name) =>
      scenarios.filter((scenario) => scenario.name === name),
    );
    const seconds = total(listed, (scenario) => secondsOf(scenario, mostSeconds) ?? 0);
    const head = `${article.id}  ${articleTitle(article)}, ${roughTime(seconds)}`;
    return ['', head, ...listed.map(lineOf)];
  });
  return [
    ...ways,
    `${typed('scenario')} --help                  the flags`,
    '',
    'Times are what all rounds take here. A run ends earlier if its verdicts are clear.',
    `In an article, scenarios of more than ${duration(mostSeconds)} are run with --quick.`,
    ...byArticle,
    '',
    ...withoutArticle.map(lineOf),
  ];
}

/** "45 s", "12 min"; a dash for a scenario that cannot run here. */
function roughTime(seconds: number | undefined): string {
  if (seconds === undefined) return '–';
  return duration(seconds < 60 ? seconds : 60 * Math.round(seconds / 60));
}
