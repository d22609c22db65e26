// Runs the proof's comparisons with the project's runner, in this process.
import { mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { mergedLatency } from '../../lib/analysis/latency.ts';
import { roundRps } from '../../lib/analysis/phases.ts';
import { median, total } from '../../lib/analysis/statistics.ts';
import { UserError } from '../../lib/errors.ts';
import { effect, percent } from '../../lib/format.ts';
import type { Cores } from '../../lib/machine/cores.ts';
import { RoundFailure, orderOfRound, type RunContext, type Plan } from '../../lib/runner/plan.ts';
import { makePlan, type PlanOptions } from '../../lib/runner/make-plan.ts';
import type { Environment, LatencyFigures, Phase, Result } from '../../lib/result/result.ts';
import { runGroup } from '../../lib/runner/round.ts';
import { runRounds, type RunEvents } from '../../lib/runner/run.ts';
import { findVariants } from '../../lib/scenario/catalogue.ts';
import type { Scenario } from '../../lib/scenario/model.ts';
import type { ToolName } from '../../lib/setup/tools.ts';
import type { Failure, Run, TimedRound } from './results.ts';
import { halfWidthOf } from './statistics.ts';

/** The environment that all parts share. */
export interface Lab {
  /** One core on each side. */
  cores: Cores;
  binaries: Partial<Record<ToolName, string>>;
  environment: Environment;
  signal: AbortSignal;
  /** An empty folder; the caller removes it. */
  scratch: string;
  /** The compiled k6 script. */
  script: string;
  /** Repetitions of a part's measurement. */
  repeats: number;
  /** Selects a case by name, or cases by prefix; undefined: all except those on request. */
  only: string | undefined;
  failures: Failure[];
  say(line: string): void;
}

/** More failures in one part are not accidental. */
const mostFailures = 5;

const silent: RunEvents = {
  load() {},
  stepped() {},
  measured() {},
  say() {},
};

/**
 * Does the work. A failure goes to the part's file, and the result is undefined.
 * @throws Interrupted after a signal; the sixth UserError; any other error
 */
export async function noted<T>(
  { failures, signal, say }: Pick<Lab, 'failures' | 'signal' | 'say'>,
  work: () => Promise<T>,
): Promise<T | undefined> {
  try {
    return await work();
  } catch (error) {
    signal.throwIfAborted();
    if (!(error instanceof UserError) || failures.length === mostFailures) throw error;
    say(`failed: ${error.message}`);
    failures.push({ at: new Date().toISOString(), why: error.message });
    return undefined;
  }
}

/** Does the work in a scenario's run context, with a temporary folder. @param variants default: all except those on request */
export async function inContext<T>(
  { scratch, script, signal, cores, binaries }: Lab,
  scenario: Scenario,
  options: Partial<PlanOptions>,
  work: (context: RunContext) => Promise<T>,
  variants?: readonly string[],
): Promise<T> {
  const plan: Plan = {
    ...makePlan(scenario, findVariants(scenario, variants), cores, {
      quick: false,
      exact: false,
      ...options,
    }),
    run: `proof-${scenario.name}`,
  };
  const folder = await mkdtemp(join(scratch, `${scenario.name}-`));
  try {
    return await work({
      plan,
      folder,
      script,
      store: null,
      signal,
      tools: { k6: binaries.k6 as string, delaylink: undefined, servers: binaries },
    });
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Makes a complete run, like `npm run scenario`. @throws UserError, Interrupted */
export async function wholeRun(
  lab: Lab,
  scenario: Scenario,
  options: Partial<PlanOptions> = {},
  variants?: readonly string[],
): Promise<Result> {
  return inContext(
    lab,
    scenario,
    options,
    async (context) => {
      const { result, ended } = await runRounds(
        context,
        (...of) => runGroup(context, ...of),
        lab.environment,
        silent,
        new Date(),
      );
      if (ended !== undefined) throw ended;
      return result;
    },
    variants,
  );
}

/**
 * Returns a run's figures for a variant, by default the first compared variant. @throws UserError if the run has no comparison
 */
export function runOf(result: Result, name = result.comparisons[0]?.variant): Run {
  const comparison = result.comparisons.find(({ variant }) => variant === name);
  const [baseline, other] = [comparison?.baseline, comparison?.variant].map((side) =>
    result.variants.find((candidate) => candidate.name === side),
  );
  if (
    comparison === undefined ||
    comparison.ratio === 0 ||
    baseline?.rps == null ||
    other?.rps == null
  )
    throw new UserError(`nothing was compared: ${comparison?.why ?? 'no comparison'}`);
  const shares = [baseline, other].flatMap(({ rounds }) =>
    rounds.flatMap(({ phases }) => phases.flatMap(({ noise }) => noise?.serverOthersShare ?? [])),
  );
  return {
    startedAt: result.startedAt,
    seconds: (Date.parse(result.endedAt) - Date.parse(result.startedAt)) / 1000,
    rps: [baseline.rps.median, other.rps.median],
    ratio: comparison.ratio,
    ci95: comparison.ci95,
    verdict: comparison.verdict,
    roundRatios: comparison.roundRatios,
    // A repeated round has a new number.
    dropped: (baseline.rounds.at(-1)?.round ?? 0) - baseline.rounds.length,
    othersShare: shares.length === 0 ? null : median(shares),
  };
}

/** e.g. "−2.1 % ±0.9 %, slower, 31 s". */
export function runText(run: Run): string {
  return `${effect(run.ratio)} ±${percent(halfWidthOf(run))}, ${run.verdict}, ${Math.round(run.seconds)} s`;
}

/** Tries per round. */
const tries = 3;

/** Per variant: requests/s, and the share of the generator's core in use, 0 to 1. */
export interface Load {
  rps: ReadonlyMap<string, number>;
  generatorShares: ReadonlyMap<string, number>;
}

/** Runs one round of the plan. `seconds` includes failed tries. @throws UserError if all tries fail, Interrupted */
export async function oneRound(
  context: RunContext,
  round: number,
): Promise<
  Load & {
    latencyMs: ReadonlyMap<string, LatencyFigures>;
    phases: ReadonlyMap<string, Phase[]>;
    startedAt: string;
    seconds: number;
  }
> {
  const [startedAt, beganAtMs] = [new Date().toISOString(), performance.now()];
  for (let tried = 1; ; tried++) {
    try {
      const [rps, generatorShares, latencyMs] = [
        new Map<string, number>(),
        new Map<string, number>(),
        new Map<string, LatencyFigures>(),
      ];
      const all = new Map<string, Phase[]>();
      for (const [index, group] of orderOfRound(
        context.plan.groups,
        round,
        context.plan.run,
      ).entries()) {
        const outcomes = await runGroup(context, group, index + 1, {
          round: (round - 1) * tries + tried,
          onLoad() {},
        });
        for (const [variant, { phases }] of outcomes) {
          all.set(variant, phases);
          rps.set(variant, roundRps(phases));
          latencyMs.set(variant, mergedLatency(phases.map((phase) => phase.latencyMs)));
          generatorShares.set(
            variant,
            total(phases, ({ generatorCpuSeconds }) => generatorCpuSeconds) /
              total(phases, ({ seconds }) => seconds),
          );
        }
      }
      return {
        startedAt,
        seconds: (performance.now() - beganAtMs) / 1000,
        rps,
        generatorShares,
        latencyMs,
        phases: all,
      };
    } catch (error) {
      if (!(error instanceof RoundFailure)) throw error;
      if (tried === tries) throw new UserError(`a round failed ${tries} times: ${error.message}`);
    }
  }
}

/** Ratio of requests/s, variant to baseline. */
export function ratioIn(
  rps: ReadonlyMap<string, number>,
  variant: string,
  baseline: string,
): number {
  return (rps.get(variant) as number) / (rps.get(baseline) as number);
}

/** A round of two sides. */
export async function timedRound(context: RunContext, round: number): Promise<TimedRound> {
  const [baseline, other] = context.plan.variants.map(({ variant }) => variant.name) as [
    string,
    string,
  ];
  const { startedAt, seconds, rps } = await oneRound(context, round);
  return { startedAt, seconds, ratio: ratioIn(rps, other, baseline) };
}
