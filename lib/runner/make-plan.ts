// Makes a run's plan before anything is installed or started; compare completes it by its sides' answers.
import os from 'node:os';
import { helperIfThere } from '../../bin/trust.mjs';
import { onlyLook, preciseLooks, usualLooks, type Look } from '../analysis/looks.ts';
import { responsesNeeded } from '../analysis/latency.ts';
import { isLatency, metricNames } from '../analysis/metrics.ts';
import { extent, minimumRounds, total } from '../analysis/statistics.ts';
import { UserError } from '../errors.ts';
import { counts, duration, enumeration, whole } from '../format.ts';
import { generatorCores, sharesCores, type Cores } from '../machine/cores.ts';
import { firstOf, present } from '../present.ts';
import { metricWords } from '../report/metric-words.ts';
import type { Finding } from '../result/finding.ts';
import type { Metric } from '../result/result.ts';
import { serverMetricNames, type ServerMetric } from '../result/server-metrics.ts';
import { latencyMetrics } from '../scenario/latency-metrics.ts';
import { isAtRate, isCounted, secondsFor, type FitOptions } from '../scenario/load.ts';
import type { Scenario, ServerSpec, Variant } from '../scenario/model.ts';
import {
  baselineName,
  fitVariantLoad,
  isConfigured,
  isRunnable,
  networkOf,
} from '../scenario/variants.ts';
import { fileLimitFor, hardFilesLimit, requireFiles } from '../servers/rights.ts';
import type { ServerName } from '../setup/servers.ts';
import type { PlannedEnclosure } from './enclosure.ts';
import {
  groupsOf,
  isInTurns,
  isStartTimed,
  otherFiles,
  plannedVariant,
  type GroupLimits,
  type Plan,
  type PlanDraft,
  type PlannedVariant,
  type SteppedLoad,
} from './plan.ts';
import { estimatedSeconds, secondsPerRound } from './times.ts';

/** The user's choices. A field that is absent keeps the scenario's value, or the default. */
export interface PlanOptions
  extends
    Pick<
      Plan,
      'together' | 'precision' | 'maxTimeSeconds' | 'metric' | 'quick' | 'exact' | 'prepare'
    >,
    Partial<Pick<Plan, 'sameWithin' | 'keepSecrets'>>,
    Pick<FitOptions, 'durationSeconds' | 'warmupSeconds' | 'arrivals'> {
  /** It cannot be combined with `precision`. */
  rounds?: number;
  /** Conditions of the exit code; a plan with too few rounds for a verdict is then refused. */
  failIf?: { gates?: readonly { metric?: Metric }[] };
  /** Sides that are compared by their start-up stay on the machine's loopback. */
  ownLoopbacks?: boolean;
  /** All servers run already, whatever the scenario says of them. */
  atAddresses?: true;
  /** The flags of the command by name, for the planners. */
  flags?: ReadonlyMap<string, string>;
  /** Default: the plan has only parts of the core. */
  planners?: readonly Planner[];
}

/** A scenario that is about to be planned. */
interface AskedScenario {
  scenario: Scenario;
  /** The variants that the user asked for. */
  shown: readonly Variant[];
  /** The flags of the command, by name. */
  flags: ReadonlyMap<string, string>;
  /** Responses that a verdict needs in each round at a rate. */
  responses: number;
}

/** Plans what the core cannot make. The first planner with an answer decides. */
export interface Planner {
  /** Returns another scenario to run in its place, with all variants; undefined if no flag asks for one. */
  scenario?(asked: AskedScenario): Scenario | undefined;
  /** Returns the load in steps that the scenario or the flags ask for; undefined if they ask for none. */
  steppedLoad?(scenario: Scenario, flags: ReadonlyMap<string, string>): SteppedLoad | undefined;
  /** Returns a place apart from the machine's loopback for the variant's server and load; undefined if it needs none. */
  enclosure?(scenario: Scenario, variant: Variant): PlannedEnclosure | undefined;
}

const quickRounds = 4;
export const defaultSameWithin = 0.01;

/**
 * Makes the plan for the variants `asked`.
 * @param limits of the process that makes the load; `files` is the hard limit
 * @throws UserError for a load that does not fit, and for a plan without a round or a verdict that was asked for
 */
export function makePlan(
  asWritten: Scenario,
  asked: readonly Variant[],
  cores: Cores,
  options: PlanOptions,
  limits: GroupLimits = {
    files: hardFilesLimit(),
    memoryBytes: os.freemem(),
  },
): PlanDraft {
  const subject = subjectOf(asWritten, asked, options);
  const { scenario, stepped } = subject;
  const variants = plannedVariants(subject, cores, options);
  for (const planned of variants) requireOpenFiles(planned, cores, limits);
  const looks = looksOf(options, scenario.rounds, stepped?.looks);
  const { quick, exact, together, precision, maxTimeSeconds, metric, keepSecrets } = options;
  const alsoAsked = alsoAskedBy(options);
  const isTimed = isStartTimed(metric, alsoAsked);
  const planned: PlanDraft = {
    ...subject,
    groups: groupsOf(scenario, variants, limits),
    variants,
    cores,
    looks,
    rounds: Math.max(...looks.map((look) => look.rounds)),
    sameWithin: options.sameWithin ?? defaultSameWithin,
    quick,
    exact,
    ...present({
      together,
      maxTimeSeconds,
      precision,
      metric,
      alsoAsked,
      keepSecrets,
      ownLoopbacks: (options.ownLoopbacks && !isTimed) || undefined,
      prepare: options.prepare ?? scenario.prepare,
    }),
  };
  const endsEarly = precision !== undefined || mayEndEarly(planned);
  const draft = endsEarly ? planned : { ...planned, looks: onlyLook(planned.rounds) };
  requirePossible(draft, options);
  return draft;
}

/** What a run measures: the scenario, those of its variants that are in the table, and its load in steps. */
type Subject = Pick<PlanDraft, 'scenario' | 'shown' | 'stepped'>;

/**
 * Returns the scenario as it is written, or as a planner changes it.
 * @throws UserError (exit code 2) for a search, if no planner searches
 */
function subjectOf(asWritten: Scenario, asked: readonly Variant[], options: PlanOptions): Subject {
  const { planners = [], flags = new Map<string, string>() } = options;
  const given = { scenario: asWritten, shown: asked, flags, responses: responsesFor(options) };
  const other = firstOf(planners, (planner) => planner.scenario?.(given));
  const scenario = other ?? asWritten;
  const stepped = firstOf(planners, (planner) => planner.steppedLoad?.(scenario, flags));
  if (scenario.within !== undefined && stepped === undefined)
    refuse(`${scenario.name} searches for a rate (within), which this bakeoff cannot do`);
  return { scenario, shown: other?.variants ?? asked, ...present({ stepped }) };
}

/** Returns the variants that can be run, with their loads fitted to the cores and the options. */
function plannedVariants(
  { scenario, shown, stepped }: Subject,
  cores: Cores,
  options: PlanOptions,
): PlannedVariant[] {
  const { quick, exact, durationSeconds, warmupSeconds, arrivals, planners = [] } = options;
  const runnable = shown.filter(isRunnable);
  // Servers with a config answer the first request as fast as later ones.
  const isUnknown = options.atAddresses || runnable.some(({ server }) => !isConfigured(server));
  const fit = {
    generatorCores: generatorCores(cores),
    sharesCores: sharesCores(cores),
    exact,
    quick,
    mayBeCold: isUnknown && !exact,
    responses: responsesFor(options) / (scenario.phases?.count ?? 1),
    ...present({ durationSeconds, warmupSeconds, arrivals, step: stepped?.step }),
  };
  return runnable.map((variant): PlannedVariant => {
    const enclosure = enclosureOf(scenario, variant, planners);
    const inTurns = isInTurns(scenario, { enclosure });
    const load = fitVariantLoad(scenario, variant, { ...fit, inTurns });
    return plannedVariant(scenario, variant, load, enclosure);
  });
}

/** Returns the variant's enclosure; undefined on loopback. @throws UserError (exit code 2) for a network, if no planner makes one */
export function enclosureOf(
  scenario: Scenario,
  variant: Variant,
  planners: readonly Planner[],
): PlannedEnclosure | undefined {
  const planned = firstOf(planners, ({ enclosure }) => enclosure?.(scenario, variant));
  if (planned === undefined && networkOf(scenario, variant) !== undefined)
    refuse(`${scenario.name} has networks of its own, which this bakeoff cannot make`);
  return planned;
}

/** @throws UserError for what no run of the plan could do */
function requirePossible(draft: PlanDraft, { arrivals, failIf }: PlanOptions): void {
  requireTime(draft);
  requireMetric(draft, failIf);
  requireShort(draft);
  draft.stepped?.requirePossible(draft);
  if (arrivals !== undefined && !draft.variants.some(({ load }) => isAtRate(load)))
    refuse(
      `--arrivals ${arrivals} needs a load at a rate: give one such as --load 'vegeta attack -rate=1000 -duration=10s'`,
    );
  if (failIf !== undefined) requireVerdict(draft, failIf);
}

/** Responses that a round at a rate needs for its verdict, of all its phases together. */
function responsesFor({ metric = 'p99' }: Pick<PlanOptions, 'metric'>): number {
  return isLatency(metric) ? responsesNeeded[metric] : 0;
}

/** Lines to print before the load if rates make too few requests for a verdict. They say what would be enough. */
export function fewAnswersLines(plan: PlanDraft): string[] {
  const { metric = 'p99', scenario, variants, stepped } = plan;
  if (stepped !== undefined || !isCompared(plan)) return [];
  const phases = scenario.phases?.count ?? 1;
  const needed = responsesFor(plan);
  const few = variants.filter(
    ({ load: { rate, requests = 0 } }) => rate !== undefined && requests * phases < needed,
  );
  const [first] = few;
  if (first === undefined) return [];
  const sides = enumeration(few.map(({ variant }) => variant.name));
  const requests = few.map(({ load: { requests = 0 } }) => requests * phases);
  const rates = few.map(({ load: { rate = 1 } }) => rate);
  const seconds = Math.ceil(secondsFor(needed, Math.min(...rates)) / phases);
  const mayBeP50 = metric !== 'p50' && Math.min(...requests) >= responsesNeeded.p50;
  const other = !mayBeP50 ? '' : `, or --metric p50, which needs ${responsesNeeded.p50}`;
  return [
    `No verdict is possible on ${sides}: ${metric} needs ${whole(needed)} responses in each round, and there are ${rangeText(requests)} requests: give a --duration of ${seconds} s${other}.`,
  ];
}

/** Lines to print before the load if there are fewer rounds, or if the time limit leaves fewer, than a verdict needs. */
export function fewRoundsLines(plan: PlanDraft): string[] {
  const { rounds, maxTimeSeconds = Infinity } = plan;
  if (rounds === 0 || !isCompared(plan)) return [];
  if (rounds < minimumRounds)
    return [`No verdict is possible in ${counts(rounds, 'round')}: it takes ${minimumRounds}.`];
  const needed = estimatedSeconds(plan, minimumRounds);
  if (needed <= maxTimeSeconds) return [];
  return [
    `No verdict is likely within --max-time ${duration(maxTimeSeconds)}: ${minimumRounds} rounds take about ${duration(needed)}. Give a longer one.`,
  ];
}

/** "40", "40 to 200". */
function rangeText(numbers: readonly number[]): string {
  const [least, most] = extent(numbers);
  return least === most ? whole(least) : `${whole(least)} to ${whole(most)}`;
}

/** @param written number of rounds of the scenario; undefined: as verdicts need @param usual for those */
function looksOf(
  { precision, rounds, quick }: PlanOptions,
  written: number | undefined,
  usual = usualLooks,
): readonly Look[] {
  if (precision !== undefined) return preciseLooks;
  if (rounds !== undefined) return onlyLook(rounds);
  if (quick) return onlyLook(Math.min(quickRounds, written ?? quickRounds));
  return written === undefined ? usual : onlyLook(written);
}

/**
 * Returns whether verdicts may end the run. They may not if there are none, if the run measures the noise floor, or if the time limit
 * comes first; then the single look has the full 5 %.
 */
function mayEndEarly(plan: PlanDraft): boolean {
  return (
    plan.scenario.control !== true &&
    isCompared(plan) &&
    estimatedSeconds(plan, plan.rounds) <= (plan.maxTimeSeconds ?? Infinity)
  );
}

function isCompared({ scenario, variants }: PlanDraft): boolean {
  const isRun = (name: string | undefined) => variants.some(({ variant }) => variant.name === name);
  const besides = scenario.alsoCompare ?? [];
  return (
    variants.some(({ variant }) => isRun(baselineName(scenario, variant))) ||
    besides.some(({ variant, against }) => isRun(variant) && isRun(against))
  );
}

/** Name of a run in UTC, e.g. 2026-11-20T08-15-30-nginx-open-file-cache. */
export function runName(scenario: string, startedAt: Date): string {
  return `${startedAt.toISOString().slice(0, 19).replaceAll(':', '-')}-${scenario}`;
}

/** Returns the servers that must be installed, each once: all but the user's own builds. */
export function serversOf(servers: readonly ServerSpec[]): ServerName[] {
  return [
    ...new Set(
      servers.flatMap((server) =>
        isConfigured(server) && server.binary === undefined ? [server.name] : [],
      ),
    ),
  ];
}

function refuse(why: string): never {
  throw new UserError(why, 2);
}

function requireOpenFiles(
  { variant: { name, server }, load: { connections } }: PlannedVariant,
  { serverFiles }: Cores,
  { files }: GroupLimits,
): void {
  const needed = connections + otherFiles;
  // The higher requirement comes first, because raising the limit for it satisfies both.
  if (isConfigured(server) && (server.fileLimit ?? Infinity) > needed)
    fileLimitFor(
      `${name}: ${server.name}`,
      server.fileLimit,
      connections,
      serverFiles?.most ?? files,
      serverFiles?.host,
    );
  requireFiles(
    needed,
    files,
    `${name}: ${connections} connections of the load generator need ${needed} open files`,
  );
}

function requireTime(draft: PlanDraft): void {
  const { maxTimeSeconds = Infinity } = draft;
  const needed = secondsPerRound(draft);
  if (maxTimeSeconds < needed)
    refuse(
      `--max-time ${duration(maxTimeSeconds)} is shorter than one round, which takes about ${duration(needed)}: give more, or a shorter --duration`,
    );
}

/** k6 gets its load plan in an environment variable of at most 128 KiB (MAX_ARG_STRLEN); the rest is for other options. */
const mostRequestBytes = 100_000;

function requireShort({ groups }: PlanDraft): void {
  for (const { sides } of groups) {
    const bytes = total(sides, ({ load: { headers, body } }) =>
      Buffer.byteLength(JSON.stringify({ headers, body })),
    );
    if (bytes > mostRequestBytes)
      refuse(
        `the requests of ${sides.map(({ variant }) => variant.name).join(', ')} come to ${whole(bytes)} bytes with their headers and bodies, and k6 takes ${whole(mostRequestBytes)}: give a shorter body or fewer variants`,
      );
  }
}

/** Metrics of servers that conditions of the exit code name; undefined without any. */
function alsoAskedBy({ failIf }: PlanOptions): ServerMetric[] | undefined {
  const asked = serverMetricNames.filter((name) =>
    failIf?.gates?.some(({ metric }) => metric === name),
  );
  return asked.length === 0 ? undefined : asked;
}

type FailIf = NonNullable<PlanOptions['failIf']>;

function requireMetric(draft: PlanDraft, { gates = [] }: FailIf = {}): void {
  const { metric, variants, cores } = draft;
  const open = variants.find(({ load }) => load.rate !== undefined);
  const ofProcesses = metricNames.filter((name) => metricWords[name].ofProcesses !== undefined);
  if (metric === 'rps' && open !== undefined)
    refuse(
      `--metric rps: ${open.load.command} sets requests/s itself: take ${enumeration([...latencyMetrics, ...ofProcesses], 'or')}, or a load without a rate`,
    );
  const addresses = variants.flatMap(({ variant: { server } }) =>
    server.name === 'address' ? [server] : [],
  );
  const others = open === undefined ? ['rps', ...latencyMetrics] : latencyMetrics;
  const asked = [{ flag: '--metric', name: metric }];
  for (const gate of gates) asked.push({ flag: '--fail-if', name: gate.metric });
  for (const { flag, name } of asked) {
    if (name === undefined) continue;
    const what = metricWords[name].ofProcesses;
    const unknown = addresses.find(({ cgroup }) => name !== 'cpu' || cgroup === undefined);
    const place = unknown?.origin ?? (name !== 'cpu' && cores.serverHost);
    const instead = flag === '--metric' ? `take ${enumeration(others, 'or')}` : 'leave it out';
    const remedy = name === 'cpu' ? `name its control group with --cgroup, or ${instead}` : instead;
    if (what && place)
      refuse(`${flag} ${name}: the ${what} of the server at ${place} is not known: ${remedy}`);
  }
}

/** Names the servers that may get faster and are measured without a warm-up. */
export function coldFindings({ variants }: Pick<PlanDraft, 'variants'>): Finding[] {
  const cold = variants.filter(
    ({ load, variant }) =>
      isCounted(load) && load.warmupSeconds === 0 && !isConfigured(variant.server),
  );
  if (cold.length === 0) return [];
  return [{ code: 'no-warm-up', variants: cold.map(({ variant }) => variant.name) }];
}

/** Names the commands that may starve unseen: only ss tells whether a command waits for a backend or for its cores. */
export function unseenWaitsFindings(
  { variants, cores }: Pick<PlanDraft, 'variants' | 'cores'>,
  hasSs = helperIfThere('ss') !== undefined,
): Finding[] {
  const commands = variants.filter(({ variant }) => variant.server.name === 'command');
  const areUnknown = sharesCores(cores) || cores.serverHost !== undefined;
  if (hasSs || areUnknown || commands.length === 0) return [];
  return [{ code: 'no-ss', variants: commands.map(({ variant }) => variant.name) }];
}

function requireVerdict(draft: PlanDraft, { gates = [] }: FailIf): void {
  const { rounds, maxTimeSeconds = Infinity } = draft;
  if (!isCompared(draft))
    refuse(
      '--fail-if asks for a verdict, and nothing is compared: name a variant and its baseline with --variants',
    );
  if (rounds < minimumRounds)
    refuse(
      `--fail-if asks for a verdict, which takes ${minimumRounds} rounds: --rounds ${minimumRounds} or more`,
    );
  const needed = estimatedSeconds(draft, minimumRounds);
  if (maxTimeSeconds < needed)
    refuse(
      `--fail-if asks for a verdict, which takes ${minimumRounds} rounds, about ${duration(needed)}: give a --max-time above that`,
    );
  if (gates.length === 0) return;
  const asked = gates.flatMap(({ metric }) => metric ?? []);
  for (const metric of [draft.metric, ...asked.filter(isLatency)]) {
    const [few] = fewAnswersLines({ ...draft, ...present({ metric }) });
    if (few !== undefined) refuse(`--fail-if: ${few.replace(/^No/, 'no').replace(/\.$/, '')}`);
  }
}
