// Warnings on other programs and virtual machines that used the cores of a run, and on servers that pause.
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
  /** The server was below its limit, so it may have waited for the generator. */
  hadTime: boolean;
  /** The load sets requests/s. */
  atRate: boolean;
}

/**
 * Warns of disturbances. A side that was disturbed more than another has no verdict (oneSided). So once all verdicts are there, only the
 * generator's cores matter: other programs there lower requests/s and raise latency.
 */
export function noiseWarnings(
  facts: RunFacts,
  measured: readonly MeasuredVariant[],
  comparisons: readonly Comparison[],
): string[] {
  const cores = { server: facts.serverCores, generator: facts.generatorCores };
  const all = variantRounds(measured, cores);
  const unsettled = isSettled(measured, comparisons) ? [] : all;
  // On shared cores the generator is one of the other programs beside the server, and what others use is missing to server and generator
  // alike.
  const apart = (rounds: readonly VariantRound[]) => (facts.sharedCores ? [] : rounds);
  /** Returns "12 % of the server's cores in every round"; undefined if all rounds are below `least`. */
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
  // The backend is part of the measurement, even if it shares the server's cores.
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

/** Returns the share of the generator's cores that other programs used while the server may have waited for the generator. */
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

/** A gap is a pause if it is this many times the median latency: requests that wait for a usual answer also leave gaps. */
const pauseFactor = 10;
/** How many times longer rounds are advised to be: one pause more or less changes a round less by this factor. */
const longer = 10;

/** Says which servers paused in most rounds, with the next step; empty if none did. */
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
