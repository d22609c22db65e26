// A run: its plan, and what its rounds get and return.
import { createHash } from 'node:crypto';
import type { Look } from '../analysis/looks.ts';
import type { MeasuredVariant } from '../analysis/verdict.ts';
import type { PhaseOutcome } from '../k6/load-plan.ts';
import type { Cores } from '../machine/cores.ts';
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
import type { Scenario, ServerName, Variant } from '../scenario/model.ts';
import { pageOf, type RunnableVariant } from '../scenario/variants.ts';
import type { Answer, RunningServer } from '../servers/index.ts';
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
  /** Rows of the table; some may be published only. */
  shown: readonly Variant[];
  variants: readonly PlannedVariant[];
  /** As each round loads them. */
  groups: readonly Group[];
  cores: Cores;
  rounds: number;
  /** Ascending; the last is after `rounds`. */
  looks: readonly Look[];
  /** So many runs share the chance of a false verdict, as those of an article. */
  together?: number;
  /** No round begins that would not end within it. */
  maxTimeSeconds?: number;
  /** The run goes on until intervals are within this of their ratios (0.01: 1 %), or within a tenth of their effects. */
  precision?: number;
  sameWithin: number;
  /** It judges, instead of the load's default. */
  metric?: Metric;
  /** Conditions of the exit code name them. */
  alsoAsked?: readonly ServerMetric[];
  stepped?: SteppedLoad;
  quick: boolean;
  exact: boolean;
  /** Sides have loopbacks of their own, instead of the machine's. */
  ownLoopbacks?: true;
  /** A command for the shell before the servers start, in each round. */
  prepare?: string;
  /** A lone answer's time, by variant; absent: unknown. */
  answerSeconds?: ReadonlyMap<string, number>;
  /** load.json keeps credentials and bodies. */
  keepSecrets?: true;
}

/** The run's name has the start time. */
export type PlanDraft = Omit<Plan, 'run'>;

/** A load in steps, as a feature plans it: k6 chooses each step's rate by earlier outcomes, and one step stands for the round. */
export interface SteppedLoad {
  /** As a predicate: "searches for a rate". */
  does: string;
  /** They count unless the user or the scenario gives a number of rounds. */
  looks: readonly Look[];
  /** It counts unless the user or the load gives a window and warm-up. */
  step: NonNullable<FitOptions['step']>;
  /** A round takes about so many. */
  expectedSteps: number;
  /** The script's source, in place of lib/k6/main.ts. */
  script: string;
  /** @throws UserError (exit code 2) for a load that cannot be made in steps */
  requirePossible(draft: PlanDraft): void;
  longestSeconds(sides: readonly PlannedVariant[]): number;
  /** Makes LoadPlan.steps. @param known rates found in earlier rounds, in requests/s by variant @param seed of the round */
  planFor(
    sides: readonly PlannedVariant[],
    known: ReadonlyMap<string, readonly number[]>,
    seed: string,
  ): unknown;
  /** None once its steps are over. */
  stepsIn(outcome: PhaseOutcome, side: number, variant: string, round: number): RateStep[];
  /** The outcome in a few words. */
  textOf(step: RateStep): string;
  /** Throws UserError, which ends the run, or Disturbance. */
  foundBy(side: SteppedSide): SteppedRound;
  /** @param steps of all rounds, in order */
  resultOf(
    measured: readonly Pick<MeasuredVariant, 'name' | 'found'>[],
    steps: readonly RateStep[],
  ): Pick<Result, 'search'>;
}

export interface SteppedSide {
  planned: Pick<PlannedVariant, 'variant' | 'load'>;
  server: VariantResult['server'];
  phases: readonly Phase[];
  outcomes: readonly PhaseOutcome[];
  side: number;
  cores: Cores;
  /** Found in earlier rounds, in requests/s. */
  known: readonly number[];
  round: number;
}

export interface SteppedRound {
  /** `step`: the phase that stands for the round; `rate` and `atLeast` as in FoundRate. */
  found: { step: number } & Pick<FoundRate, 'rate' | 'atLeast'>;
  steps: RateStep[];
}

/** That a k6 loads in turns. */
export interface Group {
  sides: readonly PlannedVariant[];
  /** Mean of a turn; absent: the engine chooses. */
  sliceSeconds?: number;
  /** Absent: one after the other. */
  warmTogether?: true;
}

export interface GroupLimits {
  /** Open, of a process. */
  files: number;
  /** Free memory of this machine. */
  memoryBytes: number;
}

/** With more, each waits too long for its next turn. */
const mostTogether = 100;
/** k6's beside its connections, as the engine counts them. */
export const otherFiles = 64;
/** Share of the free memory for k6 and servers. */
const usablePart = 0.5;
/** A server and its part of k6, without connections. */
const baseBytes = 64 * 1024 ** 2;
/** Both sides' buffers and TLS. */
const connectionBytes = 64 * 1024;

/** On shared cores the kernel needs time to spread threads anew. */
const sharedSliceSeconds = 0.25;

/** Not in a feature's enclosure, which is for one variant, nor with several phases. */
export function isInTurns(
  { phases }: Scenario,
  { enclosure }: Pick<PlannedVariant, 'enclosure'>,
): boolean {
  return phases === undefined && enclosure === undefined;
}

/** Keeps loads with and without a rate apart, no port twice, and within the limits. */
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
    new Set(portsTaken(variants).keys()),
  );
}

/** Puts the named variants into groups of their own. */
export function apart(groups: readonly Group[], names: ReadonlySet<string>): Group[] {
  return groups.flatMap(({ sides, ...group }) => {
    const alone = sides.filter(({ variant }) => names.has(variant.name));
    const rest = sides.filter((side) => !alone.includes(side));
    return [rest, ...alone.map((side) => [side])]
      .filter(({ length }) => length > 0)
      .map((some) => ({ ...group, sides: some }));
  });
}

/** Commands whose fixed port another has too, with the reason as a clause. */
export function portsTaken(variants: readonly PlannedVariant[]): Map<string, string> {
  const why = new Map<string, string>();
  const taken = new Map<number, string>();
  for (const { variant } of variants) {
    const { name, server } = variant;
    if (server.name !== 'command' || server.port === undefined) continue;
    const other = taken.get(server.port);
    if (other === undefined) taken.set(server.port, name);
    else
      why.set(
        name,
        `it listens on port ${server.port}, as ${other} does (write {port} where it can be told one)`,
      );
  }
  return why;
}

/** Two alternate (AB, BA, …), more are permuted at random by `seed` and `round` (from 1): slow changes of the machine favour none. */
export function orderOfRound<T>(all: readonly T[], round: number, seed: string): T[] {
  if (all.length <= 2) return round % 2 === 1 ? [...all] : all.toReversed();
  return all
    .map((item, index) => ({ item, drawn: drawnBy(`${seed} ${round} ${index}`) }))
    .sort((a, b) => a.drawn - b.drawn)
    .map(({ item }) => item);
}

/** Uniform in [0, 1): 48 bits of the seed's SHA-256. */
export function drawnBy(seed: string): number {
  return createHash('sha256').update(seed).digest().readUIntBE(0, 6) / 2 ** 48;
}

export interface RunBase {
  plan: Plan;
  /** results/<run> */
  folder: string;
  /** Takes figures besides the folder. */
  sink: Sink | null;
  signal: AbortSignal;
  /** Variants that were started to make the plan have some. */
  answers?: ReadonlyMap<string, Answer>;
}

/** @param place of the group in the round, from 1 */
export type RunGroup = (
  group: Group,
  place: number,
  attempt: Attempt,
) => Promise<Map<string, VariantRound>>;

export interface RunContext extends RunBase {
  tools: { k6: string; servers: Partial<Record<ServerName, string>> };
  script: string;
  machines: MachinesInUse;
  /** Throws UserError, which ends the run, or the signal's reason. */
  prepare?: () => Promise<void>;
}

export interface Stage {
  planned: PlannedVariant;
  server: RunningServer;
  /** undefined on the machine's loopback. */
  enclosure: Enclosure | undefined;
  /** Absent if unknown, or not asked for: all sides then start at once. */
  startupMs?: number;
  /** Load with the warm-up, in an earlier try at the round. */
  servedSeconds?: number;
  /** A line, when server or enclosure ends by itself. */
  died: Promise<string>;
  /** Never throws; may be called twice. */
  stop(): Promise<void>;
}

export interface VariantRound extends ServerFigures {
  server: NonNullable<VariantResult['server']>;
  /** A load in steps has the one that stands for the round. */
  phases: Phase[];
  stepped?: SteppedRound;
  /** All that k6 made. */
  requests: number;
  /** Warnings on the server's log, its answers, its enclosure, and what was not stored. */
  notes: string[];
  /** Last line of the server's log, if requests failed. */
  describeEnd?: string | undefined;
  settings?: Omit<KernelSetting, 'variants'>[];
  /** k6's, with the samples of the whole group. */
  recordFile: string | undefined;
  /** k6 sent its samples nowhere. */
  unsent: boolean;
}

/** The samples of a side's server in a round. */
export interface ServerSamples {
  planned: PlannedVariant;
  round: number;
  samples: readonly UsageSample[];
}

export interface KeptRound {
  round: number;
  outcomes: ReadonlyMap<string, VariantRound>;
}

/** Values of --out, and environment variables. */
export interface SampleOutput {
  out: readonly string[];
  env: Readonly<Record<string, string>>;
}

/** A sink that the flags ask for, opened before the first round. */
export interface PlannedSink {
  /** That this machine must have. */
  tools: readonly ToolName[];
  /** Throws UserError without space for so many bytes. */
  requireSpace(bytes: number): Promise<void>;
  /**
   * @param tools paths of its programs @param cpus cores for them
   * @param folder for data of its own, instead of all runs'; it must then start at once @throws UserError, or the signal's reason
   */
  open(asked: {
    tools: Partial<Record<ToolName, string>>;
    cpus: readonly number[];
    signal: AbortSignal;
    folder?: string;
  }): Promise<Sink>;
}

/** Where figures go besides the folder. A returned line says what was not stored, which must not cost a round. */
export interface Sink {
  /** By program. */
  versions: Readonly<Record<string, string>>;
  /** Asked before each load; null if k6's samples must wait for the check at the end. */
  k6Output(): Promise<SampleOutput | null>;
  /** Stores the samples of a server. */
  afterLoad(plan: Plan, load: ServerSamples): Promise<string | null>;
  /** Called at the run's begin, after each kept round, and at the end. */
  after(
    run: RunBase,
    result: Result,
    kept: readonly KeptRound[],
    ended: boolean,
  ): Promise<string | null>;
  /** Deletes a round that no longer counts. */
  forget(plan: Plan, round: number): Promise<string | null>;
  /** Stores the findings of features. */
  found(run: RunBase, result: Result, kept: readonly KeptRound[]): Promise<string | null>;
  /** Counts what is stored of kept rounds, and writes missing points again. Returns the result with the counts. */
  settle(run: RunBase, result: Result, kept: readonly KeptRound[]): Promise<Result>;
  close(): Promise<void>;
}

export interface Attempt {
  /** Number in folders and tags. */
  round: number;
  /** First answers by variant, to which the round adds; absent: none is a first start. */
  answers?: Map<string, Answer>;
  /** Before the load of first starts. */
  onAnswers?(): void;
  /** Stages of the only group, still cold in the last try. The round uses and ends them. */
  open?: readonly Stage[];
  warmCosts?: ReadonlyMap<string, number>;
  /** Rates that steps found in earlier rounds, in requests/s by variant. */
  known?: ReadonlyMap<string, readonly number[]>;
  onStep?(steps: readonly RateStep[]): void;
  /** About twice a second, of the last second; null before the first. */
  onLoad(rps: number | null): void;
}
