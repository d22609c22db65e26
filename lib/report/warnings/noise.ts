// Warnings on others' use of the cores, and on servers that pause.
import {
  limit,
  noiseOf,
  othersMatter,
  sharesOf,
  stealMatters,
  type RoundNoise,
} from '../../analysis/limit.ts';
import { hasPaused, phasesIn } from '../../analysis/phases.ts';
import { extent, median } from '../../analysis/statistics.ts';
import type { MeasuredVariant, RunFacts } from '../../analysis/verdict.ts';
import { duration, enumeration, percent, scaledTime, variantsText } from '../../format.ts';
import type { Comparison, Phase, VariantResult } from '../../result/result.ts';
import { allNames } from '../../present.ts';
import { judgedOf } from '../../analysis/comparisons.ts';

/** "every round", "4 of 10 rounds" or "rounds 2 and 4". */
export function roundsText(numbers: readonly number[], all: number): string {
  if (numbers.length === all) return `${all === 1 ? 'the only' : 'every'} round`;
  if (numbers.length > 3) return `${numbers.length} of ${all} rounds`;
  return `${numbers.length === 1 ? 'round' : 'rounds'} ${enumeration(numbers)}`;
}

interface VariantRound {
  name: string;
  round: number;
  noise: RoundNoise;
  /** Below its limit it may have waited for the generator. */
  hadTime: boolean;
  /** The load sets requests/s. */
  atRate: boolean;
}

/**
 * A side that was disturbed more has no verdict (oneSided): with all verdicts, only the generator's cores count, where others make
 * requests/s less and latency more.
 */
export function noiseWarnings(
  facts: RunFacts,
  measured: readonly MeasuredVariant[],
  comparisons: readonly Comparison[],
): string[] {
  const cores = { server: facts.serverCores, generator: facts.generatorCores };
  const all = variantRounds(measured, cores);
  const unsettled = isSettled(measured, comparisons) ? [] : all;
  // On shared cores the generator is among the others, whose time is missing on both sides.
  const apart = (rounds: readonly VariantRound[]) => (facts.sharedCores ? [] : rounds);
  /** "12 % of the server's cores in every round"; undefined if every round has less. */
  const highest = (
    rounds: readonly VariantRound[],
    side: 'server' | 'generator',
    least: number,
    shareOf: (round: VariantRound) => number,
  ): string | undefined => {
    const over = rounds.filter((round) => shareOf(round) >= least);
    if (over.length === 0) return undefined;
    const [, share] = extent(over.map(shareOf));
    const when = roundsText(numbersOf(over), numbersOf(rounds).length);
    return `${percent(share)} of the ${side}'s ${cores[side] === 1 ? 'core' : 'cores'} in ${when}`;
  };
  const warnings: string[] = [];
  for (const side of ['server', 'generator'] as const) {
    const stolen = highest(
      unsettled,
      side,
      stealMatters,
      ({ noise }) => noise[`${side}StealShare`],
    );
    if (stolen !== undefined)
      warnings.push(
        `steal time: the host gave others up to ${stolen}: run again when it is quieter, or on a machine of your own`,
      );
  }
  const besideGenerator = highest(apart(all), 'generator', othersMatter, keptWaiting);
  if (besideGenerator !== undefined) {
    const waited = all.filter((round) => keptWaiting(round) >= othersMatter);
    const waiting = variantsText([...new Set(allNames(waited))], measured.length);
    const slower = all.every(({ atRate }) => atRate) ? '' : 'requests/s are understated; ';
    warnings.push(
      `others used up to ${besideGenerator}, when ${waiting} had time left: ${slower}latency is overstated: end what else runs on this machine and run again`,
    );
  }
  // The backend is part of the measurement, even on the server's cores.
  const backend = highest(all, 'server', othersMatter, ({ noise }) => noise.upstreamShare ?? 0);
  if (backend !== undefined)
    warnings.push(
      `the backend used up to ${backend}: it is not in the server's CPU time; run it on other cores (taskset) to see the server alone`,
    );
  const besideServer = highest(
    apart(unsettled),
    'server',
    othersMatter,
    ({ noise }) => noise.serverOthersShare,
  );
  if (besideServer !== undefined) warnings.push(othersText(besideServer, all, facts));
  return warnings;
}

function variantRounds(
  measured: readonly MeasuredVariant[],
  cores: { server: number; generator: number },
): VariantRound[] {
  const rounds: VariantRound[] = [];
  for (const variant of measured)
    for (const round of variant.rounds) {
      const noise = noiseOf(round);
      if (noise === null) continue;
      const { serverShare } = sharesOf(round, variant, cores);
      const hadTime = (serverShare ?? 0) < limit;
      const atRate = variant.load['rate'] !== undefined;
      rounds.push({ name: variant.name, round: round.round, noise, hadTime, atRate });
    }
  return rounds;
}

/** Whether all verdicts are there, on sides that took turns. */
function isSettled(
  measured: readonly MeasuredVariant[],
  comparisons: readonly Comparison[],
): boolean {
  const phases = measured.flatMap(({ rounds }) => phasesIn(rounds));
  const judged = judgedOf(comparisons);
  return (
    judged.length > 0 &&
    judged.every(({ verdict }) => verdict !== 'inconclusive') &&
    phases.every(({ turns }) => (turns?.count ?? 0) > 1)
  );
}

/** Others' share of the generator's cores while the server may have waited for it. */
function keptWaiting({ noise, hadTime }: VariantRound): number {
  return hadTime ? noise.generatorOthersShare : 0;
}

/** The warning on other programs on the server's cores. */
function othersText(share: string, rounds: readonly VariantRound[], facts: RunFacts): string {
  const upstreams = rounds.map(({ noise: { upstreamShare } }) => upstreamShare);
  if (upstreams.includes(null))
    return `the backend and other programs used up to ${share}: bakeoff cannot tell them apart here; run the backend on other cores (taskset), or bakeoff as the backend's user`;
  const host = facts.serverHost ?? 'this machine';
  const hasBackend = upstreams.some((upstream) => upstream !== undefined);
  const butBackend = hasBackend ? ', but not the backend,' : '';
  return `others used up to ${share}: end what else runs on ${host}${butBackend} and run again`;
}

const numbersOf = (rounds: readonly VariantRound[]): number[] =>
  [...new Set(rounds.map(({ round }) => round))].sort((a, b) => a - b);

/** A pause takes this much longer than most answers, as waiting requests are none. */
const pauseFactor = 10;
/** Longer rounds make a pause matter less by the same factor. */
const longer = 10;

/** Says which servers paused in most rounds, and the next step. */
export function pauseTexts(
  variants: readonly VariantResult[],
  comparisons: readonly Comparison[],
): string[] {
  const undecided = comparisons.filter(
    ({ verdict, metric }) => verdict === 'inconclusive' && metric === 'rps',
  );
  const compared = new Set(undecided.flatMap(({ baseline, variant }) => [baseline, variant]));
  const pausing = variants.filter((variant) => compared.has(variant.name) && pausesOften(variant));
  const seconds = pausing[0]?.load.durationSeconds;
  if (seconds === undefined) return [];
  const gaps = pausing.flatMap(({ rounds }) => phasesIn(rounds).map((phase) => phase.longestGapMs));
  const usual = scaledTime(median(gaps));
  const names = enumeration(allNames(pausing));
  return [
    `${names} paused for about ${usual} at a time, and a round of ${duration(seconds)} with one pause more has fewer requests: longer rounds even that out (--duration ${Math.ceil(longer * seconds)}s)`,
  ];
}

function pausesOften({ rounds }: VariantResult): boolean {
  const phases = phasesIn(rounds);
  return phases.filter(isPause).length > phases.length / 2;
}

function isPause(phase: Phase): boolean {
  return hasPaused(phase) && phase.longestGapMs > pauseFactor * phase.latencyMs.p50;
}
