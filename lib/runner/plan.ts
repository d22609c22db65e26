// A run: its plan (variants, groups of each round), and what its rounds get and return.
import { createHash } from 'node:crypto';
import type { Look } from '../analysis/looks.ts';
import type { MeasuredVariant } from '../analysis/verdict.ts';
import type { PhaseOutcome } from '../k6/load-plan.ts';
import type { Cores } from '../machine/cores.ts';
import type { Contribute } from '../report/contribution.ts';
import type { AnyTemplates } from '../report/finding-words.ts';
import type { AnyFinding, Finding } from '../result/finding.ts';
import type {
  FoundRate,
  KernelSetting,
  Metric,
  Phase,
  RateStep,
  Result,
  VariantResult,
} from '../result/result.ts';
import type { ServerFigures, ServerMetric } from '../result/server-metrics.ts';
import { isAtRate, type FitOptions, type Load } from '../scenario/load.ts';
import type { Scenario, Variant } from '../scenario/model.ts';
import { pageOf, type RunnableVariant } from '../scenario/variants.ts';
import type { Answer, RunningServer } from '../servers/index.ts';
import type { ServerName } from '../setup/servers.ts';
import type { Enclosure, PlannedEnclosure } from './enclosure.ts';
import type { MachinesInUse } from './machines.ts';
import type { UsageSample } from './samples.ts';
import type { ToolName } from '../setup/tools.ts';

export type PlannedVariant = ReturnType<typeof plannedVariant>;

/** A variant that is run: its load as fitted to this machine, its page, and its enclosure unless it is on loopback. */
export function plannedVariant(
  scenario: Scenario,
  variant: RunnableVariant,
  load: Load,
  enclosure?: PlannedEnclosure,
) {
  return { variant, load, page: pageOf(scenario, variant), enclosure };
}

export interface Plan {
  /** The run's folder, and tag `run` of its points. */
  run: string;
  scenario: Scenario;
  /** All rows of the table, in the scenario's order; some may be published only. */
  shown: readonly Variant[];
  /** The rows that are run. */
  variants: readonly PlannedVariant[];
  /** The same variants, as each round loads them. */
  groups: readonly Group[];
  cores: Cores;
  /** The most rounds that the run may have. */
  rounds: number;
  /** Ascending; the last is after `rounds`. */
  looks: readonly Look[];
  /** The number of runs that share the chance of a false verdict: those of an article. Default: this run alone. */
  together?: number;
  /** No round begins that would not end within it. */
  maxTimeSeconds?: number;
  /** The run goes on until each interval is within this of its ratio (0.01: 1 %), or within a tenth of its effect. */
  precision?: number;
  /** See Result. */
  sameWithin: number;
  /** Metric of the verdicts, instead of the load's default. */
  metric?: Metric;
  /** Other metrics of servers that conditions of the exit code name (--fail-if). */
  alsoAsked?: readonly ServerMetric[];
  /** Default: the scenario's phases. */
  stepped?: SteppedLoad;
  quick: boolean;
  exact: boolean;
  /** Each side's server and load are in a loopback of the side's own, instead of the machine's. */
  ownLoopbacks?: true;
  /** A command for the shell before the servers start, in each round. */
  prepare?: string;
  /** How long a lone answer took, by variant. Default: unknown. */
  answerSeconds?: ReadonlyMap<string, number>;
  /** load.json has credentials and bodies as they are sent. */
  keepSecrets?: true;
}

/** A plan without its run's name, which has the start time. */
export type PlanDraft = Omit<Plan, 'run'>;

/** A load in steps, as a feature plans it: k6 chooses each step's rate by earlier outcomes, and one step stands for the round. */
export interface SteppedLoad {
  /** What it does, in messages: "searches for a rate". */
  does: string;
  /** When its verdicts are looked at, unless the user or the scenario gives a number of rounds. */
  looks: readonly Look[];
  /** A step's window and warm-up in seconds, unless the user or the load gives them. */
  step: NonNullable<FitOptions['step']>;
  /** About how many steps a round takes. */
  expectedSteps: number;
  /** Path of the k6 script's source, which takes the place of lib/k6/main.ts. */
  script: string;
  /** @throws UserError (exit code 2) for a plan whose load cannot be made in steps */
  requirePossible(draft: PlanDraft): void;
  /** Limit for all steps of a round, in seconds. */
  longestSeconds(sides: readonly PlannedVariant[]): number;
  /**
   * Returns what the script needs, for LoadPlan.steps.
   * @param known rates found in earlier rounds, in requests/s by variant
   * @param seed of the round
   */
  planFor(
    sides: readonly PlannedVariant[],
    known: ReadonlyMap<string, readonly number[]>,
    seed: string,
  ): unknown;
  /** Returns a side's step in a phase; none once its steps are over. */
  stepsIn(outcome: PhaseOutcome, side: number, variant: string, round: number): RateStep[];
  /** Returns the outcome of a step in a few words. */
  textOf(step: RateStep): string;
  /**
   * Returns the rate that a side found in a round.
   * @throws UserError, which ends the run, or Disturbance
   */
  foundBy(side: SteppedSide): SteppedRound;
  /** Returns its part of the result. @param steps of all rounds, in their order */
  resultOf(
    measured: readonly Pick<MeasuredVariant, 'name' | 'found'>[],
    steps: readonly RateStep[],
  ): Pick<Result, 'search'>;
}

/** A side after a round of its steps. */
export interface SteppedSide {
  planned: Pick<PlannedVariant, 'variant' | 'load'>;
  server: VariantResult['server'];
  /** The side's phases, one for each outcome. */
  phases: readonly Phase[];
  outcomes: readonly PhaseOutcome[];
  /** Its place among the sides. */
  side: number;
  cores: Cores;
  /** Rates found in earlier rounds, in requests/s. */
  known: readonly number[];
  round: number;
}

export interface SteppedRound {
  /** `step` is the index of the phase that stands for the round; `rate`, in requests/s, and `atLeast` as in FoundRate. */
  found: { step: number } & Pick<FoundRate, 'rate' | 'atLeast'>;
  steps: RateStep[];
}

/** Variants that a k6 loads in turns. */
export interface Group {
  sides: readonly PlannedVariant[];
  /** Mean length of a turn; absent: the engine chooses. */
  sliceSeconds?: number;
  /** The sides warm up at the same time. Default: one after the other. */
  warmTogether?: true;
  /** The pages of a mix have no load of their own after that of all. */
  withoutEachPage?: true;
}

export interface GroupLimits {
  /** Open files of a process. */
  files: number;
  /** Free memory of this machine. */
  memoryBytes: number;
}

/** With more sides, each would wait too long for its next turn. */
const mostTogether = 100;
/** File descriptors of k6 besides its connections, as the engine counts them. */
export const otherFiles = 64;
/** Part of the free memory that k6 and the servers may use. */
const usablePart = 0.5;
/** Memory of a server and its part of k6, without connections. */
const baseBytes = 64 * 1024 ** 2;
/** Memory of a connection on both sides: buffers, TLS. */
const connectionBytes = 64 * 1024;

/** Length of a turn on cores that server and generator share: the kernel needs some time to spread their threads anew. */
const sharedSliceSeconds = 0.25;

/** Returns whether the run measures start-up times. */
export function isStartTimed(
  metric: Metric | undefined,
  alsoAsked: readonly ServerMetric[] = [],
): boolean {
  return [metric, ...alsoAsked].includes('startup');
}

/** Returns whether a variant can take turns: not in an enclosure of a feature, which is for one variant, nor with several phases. */
export function isInTurns(
  { phases }: Scenario,
  { enclosure }: Pick<PlannedVariant, 'enclosure'>,
): boolean {
  return phases === undefined && enclosure === undefined;
}

/** Divides the variants into groups: with and without a rate apart, no port twice, and no group beyond the limits. */
export function groupsOf(
  scenario: Scenario,
  variants: readonly PlannedVariant[],
  { files, memoryBytes }: GroupLimits,
): Group[] {
  const inTurns = variants.filter((planned) => isInTurns(scenario, planned));
  const groups = variants.filter((planned) => !inTurns.includes(planned)).map((side) => [side]);
  for (const atRate of [false, true]) {
    let [filesLeft, bytesLeft] = [0, 0];
    for (const planned of inTurns.filter(({ load }) => isAtRate(load) === atRate)) {
      const { connections } = planned.load;
      const bytes = baseBytes + connections * connectionBytes;
      const last = groups.at(-1) ?? [];
      if (connections > filesLeft || bytes > bytesLeft || last.length === mostTogether) {
        groups.push([planned]);
        [filesLeft, bytesLeft] = [files - otherFiles, memoryBytes * usablePart];
      } else last.push(planned);
      filesLeft -= connections;
      bytesLeft -= bytes;
    }
  }
  const slice = scenario.sharedCores ? { sliceSeconds: sharedSliceSeconds } : {};
  return apart(
    groups.map((sides) => ({ sides, ...slice })),
    new Set(portsTaken(variants).map(({ variant }) => variant)),
  );
}

/** Returns the groups with the named variants in groups of their own. */
export function apart(groups: readonly Group[], names: ReadonlySet<string>): Group[] {
  return groups.flatMap(({ sides, ...group }) => {
    const alone = sides.filter(({ variant }) => names.has(variant.name));
    const rest = sides.filter((side) => !alone.includes(side));
    return [rest, ...alone.map((side) => [side])]
      .filter(({ length }) => length > 0)
      .map((some) => ({ ...group, sides: some }));
  });
}

/** Commands whose fixed port another has too. */
export function portsTaken(variants: readonly PlannedVariant[]) {
  const findings: Extract<Finding, { code: 'same-port' }>[] = [];
  const taken = new Map<number, string>();
  for (const { variant } of variants) {
    const { name, server } = variant;
    if (server.name !== 'command' || server.port === undefined) continue;
    const { port } = server;
    const other = taken.get(port);
    if (other === undefined) taken.set(port, name);
    else findings.push({ code: 'same-port', variant: name, other, port });
  }
  return findings;
}

/**
 * Returns the order of a round's groups: two alternate (AB, BA, …), more get a random permutation that depends on `seed` and `round`
 * (from 1). Slow changes of the machine then favour no group.
 */
export function orderOfRound<T>(all: readonly T[], round: number, seed: string): T[] {
  if (all.length <= 2) return round % 2 === 1 ? [...all] : all.toReversed();
  return all
    .map((item, index) => ({ item, drawn: drawnBy(`${seed} ${round} ${index}`) }))
    .sort((a, b) => a.drawn - b.drawn)
    .map(({ item }) => item);
}

/** A uniform number in [0, 1), the same for the same seed: 48 bits of its SHA-256. */
export function drawnBy(seed: string): number {
  return createHash('sha256').update(seed).digest().readUIntBE(0, 6) / 2 ** 48;
}

/** What all rounds of a run share. */
export interface RunBase {
  plan: Plan;
  /** results/<run> */
  folder: string;
  /** Where its figures go besides the folder; null: nowhere. */
  sink: Sink | null;
  signal: AbortSignal;
  /** The features' additions to its report. */
  contributionsTo: Contribute;
  /** The sentences of their findings. */
  templates: AnyTemplates;
  /** Found before the rounds. */
  coreFindings?: readonly AnyFinding[];
  /** Answers of variants that were started to make the plan. */
  answers?: ReadonlyMap<string, Answer>;
}

/** Loads a group in a round and returns the outcome of each variant. @param place of the group in the round, from 1 */
export type RunGroup = (
  group: Group,
  place: number,
  attempt: Attempt,
) => Promise<Map<string, VariantRound>>;

export interface RunContext extends RunBase {
  /** Paths of binaries. */
  tools: { k6: string; servers: Partial<Record<ServerName, string>> };
  /** The compiled k6 script. */
  script: string;
  /** They start the servers. */
  machines: MachinesInUse;
  /**
   * Runs the plan's `prepare`.
   * @throws UserError, which ends the run, or the signal's reason
   */
  prepare?: () => Promise<void>;
}

/** A side's server and enclosure, up until `stop`. */
export interface Stage {
  planned: PlannedVariant;
  server: RunningServer;
  /** undefined on the machine's loopback. */
  enclosure: Enclosure | undefined;
  /** The server's start-up time. Absent if it is unknown, or if nobody asked for it: then all sides start at once. */
  startupMs?: number;
  /** Load that it has had in an earlier try at the round, in seconds with the warm-up; absent: none. */
  servedSeconds?: number;
  /** Settles when server or enclosure ends by itself, with a line that says how. */
  died: Promise<string>;
  /** Ends both. Never throws; may be called twice. */
  stop(): Promise<void>;
}

/** A variant's part of a round. */
export interface VariantRound extends ServerFigures {
  server: NonNullable<VariantResult['server']>;
  /** For a load in steps, only the step that stands for the round. */
  phases: Phase[];
  stepped?: SteppedRound;
  /** All requests that k6 made. */
  requests: number;
  /** Findings about the server's log and answers, its enclosure, and points that were not stored. */
  findings: AnyFinding[];
  /** Last line of the server's log, if requests failed. */
  describeEnd?: string | undefined;
  /** Kernel settings of its enclosure. */
  settings?: Omit<KernelSetting, 'variants'>[];
  /** k6's record with the samples of the whole group; undefined: none. */
  recordFile: string | undefined;
  /** k6 sent its samples nowhere: only its record has them. */
  unsent: boolean;
}

/** The samples of a side's server in a round. */
export interface ServerSamples {
  planned: PlannedVariant;
  round: number;
  samples: readonly UsageSample[];
}

/** A round that counts, with an outcome for every variant. */
export interface KeptRound {
  round: number;
  outcomes: ReadonlyMap<string, VariantRound>;
}

/** Where k6 sends its samples: values of --out, and environment variables. */
export interface SampleOutput {
  out: readonly string[];
  env: Readonly<Record<string, string>>;
}

/** A sink that the flags ask for, opened before the first round. */
export interface PlannedSink {
  /** Programs that this machine must have. */
  tools: readonly ToolName[];
  /** @throws UserError if there is no space for so many bytes */
  requireSpace(bytes: number): Promise<void>;
  /**
   * @param tools paths of its programs
   * @param cpus cores for them
   * @param folder for its data, instead of the one that all runs share; the sink must then start at once
   * @throws UserError, or the signal's reason
   */
  open(asked: {
    tools: Partial<Record<ToolName, string>>;
    cpus: readonly number[];
    signal: AbortSignal;
    folder?: string;
  }): Promise<Sink>;
}

/**
 * Where a run's figures go besides its folder. A finding that a method returns says why something was not stored, which must not cost a
 * round.
 */
export interface Sink {
  /** Versions of its programs by name. */
  versions: Readonly<Record<string, string>>;
  /** How k6 sends its samples there, asked before each load; null if they must wait for the check at the end. */
  k6Output(): Promise<SampleOutput | null>;
  /** Stores the samples of a side's server. */
  afterLoad(plan: Plan, load: ServerSamples): Promise<AnyFinding | null>;
  /** Stores the result so far, at the run's begin, after each round that is kept, and at the end. */
  after(
    run: RunBase,
    result: Result,
    kept: readonly KeptRound[],
    ended: boolean,
  ): Promise<AnyFinding | null>;
  /** Deletes a round that no longer counts. */
  forget(plan: Plan, round: number): Promise<AnyFinding | null>;
  /** Stores the result with the findings of features. */
  found(run: RunBase, result: Result, kept: readonly KeptRound[]): Promise<AnyFinding | null>;
  /** Checks at the end of a run that all kept rounds are stored, and writes missing points again. Returns the result with the counts. */
  settle(run: RunBase, result: Result, kept: readonly KeptRound[]): Promise<Result>;
  /** May be called twice. */
  close(): Promise<void>;
}

/** A try at a round. */
export interface Attempt {
  /** Its number in folders and tags. */
  round: number;
  /** First answers by variant; the round adds its own. Default: none is a first start. */
  answers?: Map<string, Answer>;
  /** Called before the load of servers that were started for the first time. */
  onAnswers?(): void;
  /** Servers of the only group, and enclosures, which were still cold in the last try. The round uses and ends them. */
  open?: readonly Stage[];
  /** The result of warmCosts for the rounds so far. */
  warmCosts?: ReadonlyMap<string, number>;
  /** For a load in steps: the rates found in earlier rounds, in requests/s by variant. */
  known?: ReadonlyMap<string, readonly number[]>;
  /** Called after each step. */
  onStep?(steps: readonly RateStep[]): void;
  /** Called about twice a second with the group's responses in the last second; null before the first. */
  onLoad(rps: number | null): void;
}
