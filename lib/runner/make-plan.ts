// Makes the plan of a run, before anything is installed or started.
import { loadPlanFor } from './k6-plan.ts';
import { minimumRounds } from '../analysis/verdict.ts';
import { UserError } from '../errors.ts';
import { duration, whole } from '../format.ts';
import { isAtRate } from '../scenario/load.ts';
import type { Arrivals, Scenario, ServerName, ServerSpec, Variant } from '../scenario/model.ts';
import {
  atRates,
  baselineName,
  fitVariantLoad,
  isConfigured,
  isRunnable,
  pageOf,
} from '../scenario/variants.ts';
import { fileLimitFor, hardFilesLimit, requireFiles } from '../servers/rights.ts';
import { generatorCores, type Cores } from '../machine/cores.ts';
import { present } from '../present.ts';
import {
  estimatedSeconds,
  secondsPerRound,
  groupsOf,
  isInTurns,
  otherFiles,
  type GroupLimits,
  type Plan,
  type PlanDraft,
  type PlannedVariant,
} from './plan.ts';
import os from 'node:os';

/** `within`: instead of the scenario's. */
export interface PlanOptions
  extends
    Pick<Plan, 'precision' | 'maxTimeSeconds' | 'metric' | 'within' | 'quick' | 'exact'>,
    Partial<Pick<Plan, 'sameWithin' | 'trustConfig'>> {
  /** Instead of the scenario's, or of the default; absent with `precision`. */
  rounds?: number;
  /** What the person has a run fail for: a plan with too few rounds for a verdict is refused. */
  failIf?: object;
  /** Seconds of a round's measured window instead of the article's. */
  durationSeconds?: number;
  /** Instead of those of the loads' rates. */
  arrivals?: Arrivals;
  /** Each variant at each of these, in requests/s, instead of its own load's. */
  rates?: readonly number[];
}

const defaultRounds = 10;
/** A round of a search has some ten loads in it. */
const searchRounds = 6;
const quickRounds = 4;

/** With `--precision` verdicts are looked at after so many rounds: looking after every one would find effects that are none. */
const precisionLooks = [5, 10, 20, 40, 80];

/** See Result.sameWithin. */
export const defaultSameWithin = 0.01;

/**
 * @param asked as findVariants gives them
 * @param limits of the process that makes the load; files are the hard limit, to which Node and Go raise their own
 * @throws UserError for a load that cannot be fitted, with more connections than files may be open, for a time that no round
 * fits into, or a plan that cannot come to the verdict that is asked about
 */
export function makePlan(
  asWritten: Scenario,
  asked: readonly Variant[],
  cores: Cores,
  options: PlanOptions,
  limits: GroupLimits = {
    files: cores.generatorFiles?.most ?? hardFilesLimit(),
    memoryBytes: os.freemem(),
  },
): PlanDraft {
  const { quick, exact, durationSeconds, rates } = options;
  const hosts = hostsOf(cores);
  const scenario = rates === undefined ? asWritten : atRates(asWritten, asked, rates);
  const shown = rates === undefined ? asked : scenario.variants;
  const within = options.within ?? scenario.within;
  const usual = scenario.rounds ?? (within === undefined ? defaultRounds : searchRounds);
  const variants = shown.filter(isRunnable).map((variant): PlannedVariant => {
    const load = fitVariantLoad(scenario, variant, {
      inTurns: isInTurns(scenario, variant),
      generatorCores: generatorCores(cores),
      exact,
      quick,
      ...present({
        durationSeconds,
        arrivals: options.arrivals,
        searched: within === undefined ? undefined : true,
      }),
    });
    // As many threads on each host.
    return {
      variant,
      load: { ...load, threads: hosts * Math.max(1, Math.floor(load.threads / hosts)) },
    };
  });
  const { serverFiles, generatorFiles } = cores;
  for (const {
    variant: { name, server },
    load: { connections },
  } of variants) {
    const needed = connections + otherFiles;
    // First whoever needs more: who raises the limit for one has raised it for both.
    if (isConfigured(server) && (server.fileLimit ?? Infinity) > needed)
      fileLimitFor(
        `${name}: ${server.name}`,
        server.fileLimit,
        connections,
        serverFiles?.most ?? limits.files,
        serverFiles?.host,
      );
    requireFiles(
      needed,
      limits.files,
      `${name}: ${connections} connections of the load generator need ${needed} open files`,
      generatorFiles?.host,
    );
  }
  const looks =
    options.precision !== undefined
      ? precisionLooks
      : [options.rounds ?? (quick ? Math.min(quickRounds, usual) : usual)];
  const draft: PlanDraft = {
    // What several hosts load together takes no turns: each would end its own at another time.
    groups:
      hosts === 1
        ? groupsOf(scenario, variants, limits)
        : variants.map((planned) => ({ sides: [planned] })),
    scenario,
    shown,
    variants,
    cores,
    looks,
    rounds: looks.at(-1) as number,
    sameWithin: options.sameWithin ?? defaultSameWithin,
    quick,
    exact,
    trustConfig: options.trustConfig === true,
    ...present({
      maxTimeSeconds: options.maxTimeSeconds,
      precision: options.precision,
      metric: options.metric,
      within,
    }),
  };
  requireTime(draft);
  requireMetric(draft);
  requireShort(draft);
  requireSearchable(draft);
  if (options.arrivals !== undefined && !variants.some(({ load }) => isAtRate(load)))
    throw new UserError(
      `--arrivals ${options.arrivals}: are those of a rate, and no load has one: give one such as --load 'vegeta attack -rate=1000 -duration=10s'`,
      2,
    );
  if (options.failIf !== undefined) requireVerdict(draft);
  return draft;
}

/** How many machines make each load together. */
function hostsOf({ generatorHosts }: Cores): number {
  return generatorHosts?.names.length ?? 1;
}

function requireTime(draft: PlanDraft): void {
  const { maxTimeSeconds = Infinity } = draft;
  const needed = secondsPerRound(draft);
  if (maxTimeSeconds < needed)
    throw new UserError(
      `--max-time ${duration(maxTimeSeconds)} is shorter than one round, which takes about ${duration(needed)}: give more, or a shorter --duration`,
      2,
    );
}

/** k6 gets the plan in an environment variable, which may have 128 KiB (MAX_ARG_STRLEN), and its name and tags are in that. */
const mostPlanBytes = 126_000;

/** A body is in the plan once for each side and phase. */
function requireShort({ scenario, cores, groups, within }: PlanDraft): void {
  for (const group of groups) {
    const targets = group.sides.map(({ variant }) => ({
      url: `https://127.0.0.1:65535${pageOf(scenario, variant).path}`,
    }));
    const bytes = Buffer.byteLength(
      JSON.stringify(
        loadPlanFor({ run: '', scenario, cores, ...present({ within }) }, group, 1, targets),
      ),
    );
    if (bytes <= mostPlanBytes) continue;
    const who =
      group.sides.length === 1
        ? (group.sides[0] as PlannedVariant).variant.name
        : `${group.sides.length} variants that take turns`;
    throw new UserError(
      `the requests of ${who} come to ${whole(bytes)} bytes with their headers and bodies, and k6 takes ${whole(mostPlanBytes)}: give a shorter body or fewer variants`,
      2,
    );
  }
}

function requireMetric({ metric, variants }: PlanDraft): void {
  const open = variants.find(({ load }) => load.rate !== undefined);
  if (metric === 'rps' && open !== undefined)
    throw new UserError(
      `--metric rps: ${open.load.command} sets requests/s itself: take p50, p90, p99 or cpu, or a load without a rate`,
      2,
    );
  const there = variants.flatMap(({ variant: { server } }) =>
    server.name === 'address' ? [server.origin] : [],
  )[0];
  if (metric === 'cpu' && there !== undefined)
    throw new UserError(
      `--metric cpu: how much CPU what runs at ${there} uses is not known: take ${open === undefined ? 'rps, ' : ''}p50, p90 or p99`,
      2,
    );
}

function requireSearchable({ scenario, variants, within, metric, cores }: PlanDraft): void {
  if (within === undefined) return;
  const hosts = hostsOf(cores);
  if (hosts > 1)
    throw new UserError(
      `--within searches from one host, and the load would be made by ${hosts}: name one --generator-host, or leave --within out`,
      2,
    );
  if (scenario.phases !== undefined)
    throw new UserError(
      `--within: ${scenario.name} has ${scenario.phases.count} load phases on one server, and a search has steps of its own: take another scenario`,
      2,
    );
  const other = variants.find(({ variant }) => (pageOf(scenario, variant).status ?? 200) >= 300);
  if (other !== undefined)
    throw new UserError(
      `--within: ${other.variant.name} is to answer with ${pageOf(scenario, other.variant).status}, and a search takes what is answered with 2xx alone`,
      2,
    );
  if (metric !== undefined)
    throw new UserError(
      `--metric ${metric} and --within: a search compares the rates that it finds: leave --metric out`,
      2,
    );
}

function requireVerdict(draft: PlanDraft): void {
  const {
    scenario: { alsoCompare = [] },
    maxTimeSeconds = Infinity,
  } = draft;
  const isRun = (name: string | undefined): boolean =>
    draft.variants.some(({ variant }) => variant.name === name);
  const isCompared =
    draft.variants.some(({ variant }) => isRun(baselineName(draft.scenario, variant))) ||
    alsoCompare.some(({ variant, against }) => isRun(variant) && isRun(against));
  if (!isCompared)
    throw new UserError(
      '--fail-if asks for a verdict, and nothing is compared: name a variant and its baseline with --variants',
      2,
    );
  if (draft.rounds < minimumRounds)
    throw new UserError(
      `--fail-if asks for a verdict, which takes ${minimumRounds} rounds: --rounds ${minimumRounds} or more`,
      2,
    );
  const needed = estimatedSeconds(draft, minimumRounds);
  if (maxTimeSeconds < needed)
    throw new UserError(
      `--fail-if asks for a verdict, which takes ${minimumRounds} rounds, about ${duration(needed)}: give a --max-time above that`,
      2,
    );
}

/** e.g. 2026-11-20T08-15-30-nginx-open-file-cache, in UTC. @param scenario its name */
export function runName(scenario: string, startedAt: Date): string {
  return `${startedAt.toISOString().slice(0, 19).replaceAll(':', '-')}-${scenario}`;
}

/** Those that have to be on the machine, since nobody brings a build of them, each once. */
export function serversOf(servers: readonly ServerSpec[]): ServerName[] {
  return [
    ...new Set(
      servers.flatMap((server) =>
        isConfigured(server) && server.binary === undefined ? [server.name] : [],
      ),
    ),
  ];
}
