// npm run knobs: finds out which of the usual advice has an effect on a config, on this machine.
import { usageError, UserError, unknownWord } from '../../errors.ts';
import { askedFlags, readAsked } from '../../cli/asked.ts';
import type { Additions, RunPart } from '../../cli/feature.ts';
import { getTools, runPlan, takeMachine, withRun } from '../../cli/run.ts';
import { readRunOptions, runFlags, type RunOptions } from '../../cli/run-options.ts';
import { print, printJson, reportRun, say, terminalOf } from '../../cli/run-output.ts';
import { sidesWithLoads, type Side } from '../../cli/side-loads.ts';
import { namesOf, readSource, type Source } from '../../cli/sides.ts';
import {
  flagsWith,
  onlyArgument,
  printGroupedHelp,
  printHelp,
  readArguments,
  type Flag,
  type Arguments,
} from '../../cli/arguments.ts';
import type { Cores } from '../../machine/cores.ts';
import { scopeLines } from '../../report/sentences.ts';
import { wrapLines } from '../../report/table.ts';
import { allNames } from '../../present.ts';
import type { Result } from '../../result/result.ts';
import type { PlanDraft } from '../../runner/plan.ts';
import type { ConfiguredServer } from '../../scenario/model.ts';
import type { OwnConfig } from '../../servers/index.ts';
import { changeLines } from '../../servers/own/changes.ts';
import { typed } from '../../setup/paths.ts';
import { anyServer, serverNames, type ServerName } from '../../setup/servers.ts';
import { candidatesOf, readKnobs, valueNames, type Candidate } from './catalogue.ts';
import { helpful, nothingHelpsLine, ranked, worthACloserLook, type Effect } from './ranking.ts';
import {
  aroundLines,
  knobsJson,
  lookLines,
  candidateNames,
  trialLines,
  verifiedLines,
  type Verified,
} from './report.ts';
import { PartsTime } from './time.ts';
import { tryKnobs, type KnobsAsked, type Trial } from './trial.ts';

/** The flags of runs but those that would have another meaning in each of the three parts of the command, or none. */
function sharedFlags(parts: readonly RunPart[]): Record<string, Flag> {
  const {
    precision: _1,
    'fail-if': _2,
    'export-markdown': _3,
    'export-json': _4,
    'export-csv': _5,
    host: _6,
    prepare: _7,
    ...ofAllParts
  } = runFlags(parts);
  const shared: Record<string, Flag> = { ...ofAllParts };
  for (const name of flagsWith('setsRate', shared)) delete shared[name];
  return shared;
}

const ownFlags = {
  knobs: { value: 'a,b,c', help: 'only these of the catalogue, which --list prints' },
  list: { help: 'the catalogue, and what people claim' },
} as const satisfies Record<string, Flag>;

const lengthFlags = {
  rounds: { group: 'time', value: 'N', help: 'rounds of each part (10)' },
  duration: {
    group: 'time',
    value: '1s',
    help: 'measured time of each in a round (0.3s at the first look, 0.5s at the closer one, then 1s)',
  },
  'max-time': {
    group: 'time',
    value: '5m',
    help: 'end all three parts in about this time, with fewer rounds; a part without time is left out',
  },
} as const satisfies Record<string, Flag>;

function knobFlags(parts: readonly RunPart[]): Record<string, Flag> {
  return { ...askedFlags(parts), ...ownFlags, ...sharedFlags(parts), ...lengthFlags };
}

/** Measured seconds per round. In a look, more rounds help more than longer ones, because the t quantile of few rounds is large. */
const lookSeconds = { first: 0.3, closer: 0.5 };
/** A closer look at more knobs would take as long as the first. */
const mostCloser = 5;

const help = [
  `${typed('knobs')} nginx.conf [flags]`,
  '',
  `Finds out which of the usual advice has an effect on this config (${anyServer}) on this machine. Each knob runs ` +
    'against the config as it is, in turns. Then the promising knobs run again, and all that help run together in fresh rounds. ' +
    'Prints the lines that help, to paste. The file is not changed.',
];

/** Returns the exit code; without arguments prints the help and returns 2. Throws UserError and Interrupted. */
export async function knobsCommand(args: readonly string[], additions: Additions): Promise<number> {
  const known = knobFlags(additions.runParts);
  const parsed = readArguments(args, known);
  const options = readRunOptions(parsed, additions);
  if (options.help || args.length === 0) {
    printGroupedHelp(help, known, parsed.positionals.includes('all'));
    return options.help ? 0 : 2;
  }
  if (parsed.flags.has('list')) {
    printHelp(catalogueLines());
    return 0;
  }
  const config = await readConfig(parsed, options);
  return withRun(options, [], {}, async (run) => {
    const asked = await readKnobsAsked(parsed, config, run.cores, additions.runParts);
    const ready = await getTools(run, [asked.server], options);
    const time = new PartsTime(options.maxTimeSeconds);
    const trial = await tryKnobs(ready, asked, options);
    say(options, trialLines(trial));
    const all = [...trial.changed.values()];
    if (all.length === 0)
      throw new UserError(
        `no knob of the catalogue applies to ${asked.side.given} under this load: nothing is compared`,
      );

    const title = 'The usual advice, each alone, on';
    const part = { name: 'knobs', title, some: all, lookSeconds: lookSeconds.first };
    const firstPlan = time.requireFirst((seconds) => trial.plan(part, seconds));
    const { secondsLeft } = time;
    const storing = await takeMachine(ready, firstPlan, options);
    time.goesOnWith(secondsLeft);
    const measure: Measure = (plan, examined = 'none') =>
      runPlan(storing, plan, { ...options, examined }, ['fewer --knobs']);
    const first = await measure(firstPlan, 'decided');
    const looked = ranked([...trial.changed.keys()], first.result);
    await reportRun(first, options, lookLines(first.result, looked, trial, options));
    const closer = await lookCloser(looked, { trial, measure, time }, options);
    const effects = ranked([...trial.changed.keys()], first.result, closer);
    const verified = await verifyTogether(effects, { trial, measure, time }, options);
    if (options.json) {
      const runs = [first.result, closer, verified.result].flatMap((result) => result?.run ?? []);
      const json = knobsJson(config.file, runs, effects, trial.leftOut, verified);
      const remedy = 'run again with stdout to a file';
      await printJson(`${JSON.stringify(json, undefined, 2)}\n`, remedy);
    }
    return 0;
  });
}

type Measure = (plan: PlanDraft, examined?: RunOptions['examined']) => ReturnType<typeof runPlan>;

interface Measuring {
  trial: Trial;
  measure: Measure;
  time: PartsTime;
}

async function lookCloser(
  looked: readonly Effect[],
  { trial, measure, time }: Measuring,
  options: RunOptions,
): Promise<Result | undefined> {
  const close = worthACloserLook(looked, mostCloser);
  if (close.length === 0) return undefined;
  const title = 'A closer look at knobs on';
  const some = close.flatMap((candidate) => trial.changed.get(candidate) ?? []);
  const part = { name: 'knobs-closer', title, some, lookSeconds: lookSeconds.closer };
  const plan = time.planned('closer look', (seconds) => trial.plan(part, seconds));
  if (plan === undefined) {
    say(options, ['', `No time for a closer look at ${candidateNames(close)} (--max-time).`]);
    return undefined;
  }
  say(options, ['', `A closer look at ${candidateNames(close)}:`]);
  const outcome = await measure(plan);
  const { result } = outcome;
  await reportRun(outcome, options, lookLines(result, ranked(close, result), trial, options));
  return result;
}

async function verifyTogether(
  effects: readonly Effect[],
  { trial, measure, time }: Measuring,
  options: RunOptions,
): Promise<Verified> {
  const { chosen, sentences } = helpful(effects, {
    asItIs: trial.asItIs.page.bodyBytes,
    of: (candidate) => (trial.changed.get(candidate) ?? trial.asItIs).page.bodyBytes,
  });
  say(options, ['', ...sentences]);
  const { changes } = trial.overlay(chosen);
  if (chosen.length === 0) {
    say(options, [nothingHelpsLine(effects)]);
    return { chosen, changes };
  }
  const title = 'What helps, together, on';
  const part = { name: 'knobs-together', title, some: [trial.withKnobs('together', chosen)] };
  const plan = time.planned('verification', (seconds) => trial.plan(part, seconds));
  if (plan === undefined) {
    say(options, [
      `No time to verify ${candidateNames(chosen)} (--max-time): the best of many is partly luck. To verify: --knobs ${allNames(chosen).join(',')}`,
    ]);
    return { chosen, changes };
  }
  print(options, [
    'What helps, together, in fresh rounds, since the best of many has had luck, too:',
    ...chosen.map(({ name, overlay: { lines } }) => `  ${name}: ${lines}`),
  ]);
  const outcome = await measure(plan);
  const { result } = outcome;
  const verified = verifiedLines(result, chosen, effects, trial.asItIs.given);
  await reportRun(outcome, options, [
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
  { positionals, flags }: Arguments,
  options: RunOptions,
): Promise<OwnConfig & { given: string }> {
  const given = onlyArgument(positionals, 'config');
  if (given === undefined) throw usageError(`knobs wants a config: ${typed('knobs')} nginx.conf`);
  if (options.machines !== undefined)
    throw usageError(
      `knobs tries values on this machine: leave ${options.machines.flag} out, and compare the config with the lines that help on the other host`,
    );
  const source = await readSource(given, flags.get('in'));
  if (source.kind !== 'config')
    throw usageError(`knobs wants a config of ${anyServer}, and ${given} is not one`);
  return { ...source.config, given };
}

async function readKnobsAsked(
  parsed: Arguments,
  { given, ...config }: OwnConfig & { given: string },
  cores: Cores,
  parts: readonly RunPart[],
): Promise<KnobsAsked> {
  const source: Source = { kind: 'config', config };
  const [name = ''] = namesOf([{ source }]);
  const sides = [{ name, given, source }];
  const [side] = sidesWithLoads(sides, await readAsked(parsed, sides, parts), cores) as [Side];
  // Knobs of listen lines are laid over those of TCP.
  if (side.load.protocol === 'h3')
    throw usageError(`${side.load.command}: knobs are tried over HTTP/1.1 and HTTP/2 only`);
  return {
    config,
    side,
    server: side.server as ConfiguredServer,
    wanted: wantedCandidates(config.server, parsed.flags.get('knobs'), cores),
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
  const known = all.flatMap(({ name, knob }) => [name, knob.name]);
  for (const name of wanted)
    if (!known.includes(name))
      throw unknownWord(`knob of ${server}`, name, known, '--list prints them');
  return all.filter(({ name, knob }) => wanted.includes(name) || wanted.includes(knob.name));
}
