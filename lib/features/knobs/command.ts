// npm run knobs: finds out which of the usual advice does anything for a config, on this machine.
import { usageError, UserError, unknownWord } from '../../errors.ts';
import { effect, enumeration } from '../../format.ts';
import { candidatesOf, readKnobs, valueNames, whyNot, type Candidate } from './catalogue.ts';
import {
  gain,
  helpful,
  nothingHelpsLine,
  planOf,
  product,
  ranked,
  rankingTable,
  rightAsItIs,
  worthACloserLook,
  type AsItIs,
  type Tested,
  type Effect,
} from './ranking.ts';
import type { Cores } from '../../machine/cores.ts';
import {
  featureLines,
  limitLines,
  partialLines,
  redirectionLines,
  scopeLines,
  warningLines,
} from '../../report/sentences.ts';
import { measuredChange } from '../../report/comparison-sentences.ts';
import { terminalTable, wrapLines } from '../../report/table.ts';
import type { Comparison, Result } from '../../result/result.ts';
import type { PlanDraft } from '../../runner/plan.ts';
import { serverNames, type ConfiguredServer, type ServerName } from '../../scenario/model.ts';
import { requestsOf } from '../../scenario/pages.ts';
import { serverBuild, type OwnConfig } from '../../servers/index.ts';
import { changeLines } from '../../servers/own/changes.ts';
import { layable, type Layable } from '../../servers/own/own-config.ts';
import { typed } from '../../setup/paths.ts';
import { getTools, runPlan, takeMachine, withRun, type ReadyRun } from '../../cli/run.ts';
import { rateFlags, readRunOptions, runFlags, type RunOptions } from '../../cli/run-options.ts';
import { report, say, terminalOf } from '../../cli/run-output.ts';
import { askedFlags, readAsked } from '../../cli/asked.ts';
import { sidesOf, type Side } from '../../cli/side-loads.ts';
import { namesOf, readSource, type Source } from '../../cli/sides.ts';
import { tryOnce } from '../../cli/start-sides.ts';
import {
  onlyWord,
  printGroupedHelp,
  printHelp,
  readWords,
  type Flag,
  type Words,
} from '../../cli/words.ts';

/** These flags would have another meaning in each of the three parts of the run, or none. */
const {
  precision: _1,
  'max-time': _2,
  'fail-if': _3,
  'export-markdown': _4,
  'export-json': _5,
  'export-csv': _6,
  host: _7,
  prepare: _8,
  ...ofAllParts
} = runFlags;
const sharedFlags: Record<string, Flag> = { ...ofAllParts };
for (const name of rateFlags) delete sharedFlags[name];

const knobFlags = {
  ...askedFlags,
  knobs: { value: 'a,b,c', help: 'only these of the catalogue, which --list prints' },
  list: { help: 'the catalogue, and what people claim' },
  ...sharedFlags,
  rounds: { group: 'time', value: 'N', help: 'rounds of each part (10)' },
  duration: {
    group: 'time',
    value: '1s',
    help: 'measured time of each in a round (0.3s at the first look, 0.5s at the closer one, then 1s)',
  },
} as const satisfies Record<string, Flag>;

/** Measured seconds per round. In a look, more rounds help more than longer ones: with few rounds the t quantile is large. */
const lookSeconds = { first: 0.3, closer: 0.5 };
/** Warm-up of both measurements; twice as long over TLS, for the handshakes. */
const lookWarmupSeconds = 0.2;
/** A closer look at more knobs would take as long as the first. */
const mostCloser = 5;

const help = [
  `${typed('knobs')} nginx.conf [flags]`,
  '',
  'Finds out which of the usual advice has an effect on this config (nginx, h2o or nghttpd) on this machine. Each knob runs ' +
    'against the config as it is, in turns. Then the promising knobs run again, and all that help run together in fresh rounds. ' +
    'Prints the lines that help, to paste. The file is not changed.',
];

/** Returns the exit code; without words prints the help and returns 2. Throws UserError and Interrupted. */
export async function knobsCommand(args: readonly string[]): Promise<number> {
  const words = readWords(args, knobFlags);
  const options = readRunOptions(words);
  if (options.help || args.length === 0) {
    printGroupedHelp(help, knobFlags, words.positionals.includes('all'));
    return options.help ? 0 : 2;
  }
  if (words.flags.has('list')) {
    printHelp(catalogueLines());
    return 0;
  }
  const config = await readConfig(words, options);
  return withRun(options, [], {}, async (run) => {
    const asked = await readKnobsAsked(words, config, run.cores);
    const ready = await getTools(run, [asked.server], options);
    const trial = await tryKnobs(ready, asked, options);
    say(options, trialLines(trial));
    const all = [...trial.changed.values()];
    if (all.length === 0)
      throw new UserError(
        `no knob of the catalogue applies to ${asked.side.given} under this load: nothing is compared`,
      );

    const title = 'The usual advice, each alone, on';
    const firstPlan = trial.plan('knobs', title, all, lookSeconds.first);
    const storing = await takeMachine(ready, firstPlan, options);
    const measure: Measure = (plan, examined = 'none') =>
      runPlan(storing, plan, { ...options, examined }, ['fewer --knobs']);
    const first = await measure(firstPlan, 'decided');
    const looked = ranked([...trial.changed.keys()], first.result);
    await report(first, options, lookLines(first.result, looked, trial, options));
    const closer = await lookCloser(looked, trial, measure, options);
    const effects = ranked([...trial.changed.keys()], first.result, closer);
    const verified = await verifyTogether(effects, trial, measure, options);
    if (options.json) {
      const runs = [first.result, closer, verified.result].flatMap((one) => one?.run ?? []);
      const json = knobsJson(config.file, runs, effects, trial.leftOut, verified);
      process.stdout.write(`${JSON.stringify(json, undefined, 2)}\n`);
    }
    return 0;
  });
}

type Measure = (plan: PlanDraft, examined?: RunOptions['examined']) => ReturnType<typeof runPlan>;

async function lookCloser(
  looked: readonly Effect[],
  trial: Trial,
  measure: Measure,
  options: RunOptions,
): Promise<Result | undefined> {
  const close = worthACloserLook(looked, mostCloser);
  if (close.length === 0) return undefined;
  say(options, ['', `A closer look at ${namesIn(close)}:`]);
  const changed = close.map((one) => trial.changed.get(one) as Tested);
  const outcome = await measure(
    trial.plan('knobs-closer', 'A closer look at knobs on', changed, lookSeconds.closer),
  );
  const { result } = outcome;
  await report(outcome, options, lookLines(result, ranked(close, result), trial, options));
  return result;
}

/** The knobs that help, their lines in the config, and the result of all together; absent if no knob helps. */
interface Verified {
  chosen: readonly Candidate[];
  changes: ReturnType<Layable['lay']>['changes'];
  result?: Result;
}

async function verifyTogether(
  effects: readonly Effect[],
  trial: Trial,
  measure: Measure,
  options: RunOptions,
): Promise<Verified> {
  const { chosen, said } = helpful(effects, {
    asItIs: trial.asItIs.page.bodyBytes,
    of: (one) => (trial.changed.get(one) as Tested).page.bodyBytes,
  });
  say(options, ['', ...said]);
  const { changes } = trial.lay(chosen);
  if (chosen.length === 0) {
    say(options, [nothingHelpsLine(effects)]);
    return { chosen, changes };
  }
  say(
    options,
    [
      'What helps, together, in fresh rounds, since the best of many has had luck, too:',
      ...chosen.map(({ name, laid: { lines } }) => `  ${name}: ${lines}`),
    ],
    Infinity,
  );
  const outcome = await measure(
    trial.plan('knobs-together', 'What helps, together, on', [trial.withKnobs('together', chosen)]),
  );
  const { result } = outcome;
  const verified = verifiedLines(result, chosen, effects, trial.asItIs.given);
  await report(outcome, options, [
    ...wrapLines(
      [...aroundLines(result), ...verified, ...scopeLines(result)],
      terminalOf(options).width,
    ),
    ...(result.comparisons[0]?.verdict === 'faster'
      ? ['', 'To paste:', ...changeLines(changes)]
      : []),
  ]);
  return { chosen, changes, result };
}

async function readConfig(
  { positionals, flags }: Words,
  options: RunOptions,
): Promise<OwnConfig & { given: string }> {
  const given = onlyWord(positionals, 'config');
  if (given === undefined) throw usageError(`knobs wants a config: ${typed('knobs')} nginx.conf`);
  if (options.machines !== undefined)
    throw usageError(
      `knobs tries values on this machine: leave ${options.machines.flags} out, and compare the config with the lines that help on the other host`,
    );
  const source = await readSource(given, flags.get('in'));
  if (source.kind !== 'config')
    throw usageError(`knobs wants a config of nginx, h2o or nghttpd, and ${given} is none`);
  return { ...source.config, given };
}

type KnobsAsked = Awaited<ReturnType<typeof readKnobsAsked>>;

async function readKnobsAsked(
  words: Words,
  { given, ...config }: OwnConfig & { given: string },
  cores: Cores,
) {
  const source: Source = { kind: 'config', config };
  const sides = [{ name: namesOf([{ source }])[0] as string, given, source }];
  const [side] = sidesOf(sides, await readAsked(words, sides), cores) as [Side];
  // Knobs of listen lines are laid over those of TCP.
  if (side.load.protocol === 'h3')
    throw usageError(`${side.load.command}: knobs are tried over HTTP/1.1 and HTTP/2 only`);
  return {
    config,
    side,
    server: side.server as ConfiguredServer,
    wanted: wantedCandidates(config.server, words.flags.get('knobs'), cores),
  };
}

function catalogueLines(): string[] {
  return serverNames.flatMap((server) =>
    readKnobs(server).flatMap((knob) => [
      `${server}: ${knob.name} (${valueNames(knob).join(', ')})`,
      `  ${knob.claim} ${knob.source}; since ${knob.since}.`,
    ]),
  );
}

function wantedCandidates(
  server: ServerName,
  names: string | undefined,
  cores: Cores,
): Candidate[] {
  const all = readKnobs(server).flatMap((knob) => candidatesOf(knob, cores.serverCpus.length));
  if (names === undefined) return all;
  const wanted = names.split(',').map((name) => name.trim());
  const known = all.flatMap((one) => [one.name, one.knob.name]);
  for (const name of wanted)
    if (!known.includes(name)) throw unknownWord(`knob of ${server}`, name, known);
  return all.filter((one) => wanted.includes(one.name) || wanted.includes(one.knob.name));
}

/** The config as it is and with each knob that can be measured, after each was started once. */
type Trial = Awaited<ReturnType<typeof tryKnobs>>;

async function tryKnobs(
  run: ReadyRun,
  { config: own, side, server, wanted }: KnobsAsked,
  options: RunOptions,
) {
  const { listen, given, load } = side;
  const { signal } = run;
  const coreCount = run.cores.serverCpus.length;
  const tried = await tryOnce(side, run);
  const page: Tested['page'] = { ...side.page, bodyBytes: Math.round(tried.answer.bytes) };
  const asItIs: AsItIs = { given, server, load, page };
  const config = await layable(own, {
    port: listen.port,
    paths: requestsOf(side.page).map(({ target }) => target),
    cores: coreCount,
  });
  const lay = (chosen: readonly Candidate[]) => config.lay(chosen.map(({ laid }) => laid));
  const withKnobs = (name: string, chosen: readonly Candidate[]): Tested => {
    const asIs = { ...server.asIs, laid: chosen.map(({ laid }) => laid) };
    return { name, server: { ...server, workers: lay(chosen).workers, asIs }, page };
  };
  const binary = server.binary ?? (run.tools.servers[own.server] as string);
  const here = {
    facts: config.facts,
    listen,
    load,
    bodyBytes: tried.answer.bytes,
    workers: server.workers === 'server-cores' ? coreCount : server.workers,
    build: await serverBuild(own.server, binary, signal),
  };
  const changed = new Map<Candidate, Tested>();
  const leftOut: { name: string; why: string }[] = [];
  for (const candidate of wanted) {
    const { name } = candidate;
    const why = whyNot(candidate, here, (laid) => config.lay(laid));
    if (why !== undefined) {
      leftOut.push({ name, why });
      continue;
    }
    const one = withKnobs(name, [candidate]);
    try {
      const { answer } = await tryOnce({ ...side, server: one.server }, run);
      changed.set(candidate, { ...one, page: { ...page, bodyBytes: Math.round(answer.bytes) } });
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof UserError)) throw error;
      const words = /does not accept it: (.*)$/m.exec(error.message)?.[1] ?? error.message;
      leftOut.push({ name, why: words });
    }
  }
  return {
    asItIs,
    redirections: tried.redirections,
    changed,
    leftOut,
    lay,
    withKnobs,
    /** @param lookSeconds of a look, if the load sets no rate; absent: the usual time */
    plan(name: string, title: string, some: readonly Tested[], lookSeconds?: number): PlanDraft {
      const isLook = lookSeconds !== undefined && load.rate === undefined;
      const warmupSeconds = lookWarmupSeconds * (listen.tls ? 2 : 1);
      return planOf(
        name,
        title,
        isLook ? { ...asItIs, load: { ...load, warmupSeconds } } : asItIs,
        some,
        run.cores,
        { ...(isLook ? { durationSeconds: lookSeconds } : {}), ...options, exact: false },
      );
    },
  };
}

function trialLines({ asItIs, redirections, leftOut }: Trial): string[] {
  const whys = new Map<string, string[]>();
  for (const { name, why } of leftOut) whys.set(why, [...(whys.get(why) ?? []), name]);
  return [
    ...redirectionLines([{ name: asItIs.given, redirections }]),
    ...[...whys].map(([why, names]) => `left out, ${why}: ${names.join(', ')}`),
  ];
}

const aroundLines = (result: Result): string[] =>
  [partialLines, warningLines, limitLines].flatMap((lines) => lines(result));

function lookLines(
  result: Result,
  effects: readonly Effect[],
  { leftOut }: Trial,
  options: RunOptions,
): string[] {
  const terminal = terminalOf(options);
  const had = new Set(
    leftOut.flatMap(({ name, why }) => (why.startsWith('already so') ? [name] : [])),
  );
  const right = rightAsItIs(effects, had).map(
    ({ candidate: { name, knob }, comparison }) =>
      `${knob.name} is right as it is: ${name} is ${measuredChange(comparison)}.`,
  );
  return [
    ...terminalTable(rankingTable(effects, result), terminal),
    '',
    ...wrapLines([...aroundLines(result), ...right, ...featureLines(result)], terminal.width),
  ];
}

const namesIn = (chosen: readonly Candidate[]): string =>
  enumeration(chosen.map(({ name }) => name));

function verifiedLines(
  { comparisons: [comparison] }: Result,
  chosen: readonly Candidate[],
  effects: readonly Effect[],
  given: string,
): string[] {
  if (comparison === undefined) return [];
  const { verdict, why } = comparison;
  const names = namesIn(chosen);
  if (verdict === 'none') return [`${names}: not verified, ${why}.`];
  const expected =
    chosen.length < 2
      ? ''
      : ` Their single effects, multiplied, are ${effect(product(effects, chosen))}.`;
  const words = {
    faster: 'Verified',
    slower: 'They harm together',
    same: 'Not verified, the same',
    inconclusive: 'Not verified, undecided',
  }[verdict];
  return [
    `${words}: with ${names} it is ${measuredChange(comparison)} against ${given} as it is.${expected}`,
  ];
}

function figuresOf({ ratio, ci95, verdict, why, metric, cpu, latency, roundsNeeded }: Comparison) {
  return { metric, ratio, ci95, verdict, why, cpu, p99: latency.p99, roundsNeeded };
}

function knobsJson(
  config: string,
  runs: readonly string[],
  effects: readonly Effect[],
  leftOut: Trial['leftOut'],
  { chosen, changes, result }: Verified,
): object {
  const [comparison] = result?.comparisons ?? [];
  return {
    schema: 1,
    config,
    runs,
    knobs: effects.map(({ candidate: { name, knob, laid }, comparison, closer }) => ({
      name,
      claim: knob.claim,
      source: knob.source,
      ...laid,
      gain: gain(comparison),
      closer,
      ...figuresOf(comparison),
    })),
    leftOut,
    together:
      comparison === undefined
        ? null
        : { knobs: chosen.map(({ name }) => name), changes, ...figuresOf(comparison) },
  };
}
