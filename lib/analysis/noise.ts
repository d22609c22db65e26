// Findings on other programs and virtual machines that used the cores of a run, and on servers that pause.
import { allNames, present } from '../present.ts';
import type { CoreUse, Finding } from '../result/finding.ts';
import type { Phase, VariantResult } from '../result/result.ts';
import { judgedOf } from './comparisons.ts';
import type { Judgement } from './judgement.ts';
import { limit, noiseOf, othersMatter, sharesOf, stealMatters, type RoundNoise } from './limit.ts';
import { hasPaused, phasesIn } from './phases.ts';
import { extent, median } from './statistics.ts';
import type { MeasuredVariant, RunFacts } from './verdict.ts';

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
 * Finds disturbances. A side that was disturbed more than another has no verdict (oneSided). So once all verdicts are there, only the
 * generator's cores matter: other programs there lower requests/s and raise latency.
 */
export function noiseFindings(
  facts: RunFacts,
  measured: readonly MeasuredVariant[],
  comparisons: readonly Judgement[],
): Finding[] {
  const cores = { server: facts.serverCores, generator: facts.generatorCores };
  const all = variantRounds(measured, cores);
  const unsettled = isSettled(measured, comparisons) ? [] : all;
  // On shared cores the generator is one of the other programs beside the server, and what others use is missing to server and generator
  // alike.
  const apart = (rounds: readonly VariantRound[]) => (facts.sharedCores ? [] : rounds);
  /** undefined if all rounds are below `least`. */
  const highest = (
    rounds: readonly VariantRound[],
    side: 'server' | 'generator',
    least: number,
    shareOf: (round: VariantRound) => number,
  ): CoreUse | undefined => {
    const over = rounds.filter((round) => shareOf(round) >= least);
    if (over.length === 0) return undefined;
    const [, share] = extent(over.map(shareOf));
    return {
      share,
      cores: cores[side],
      rounds: numbersOf(over),
      allRounds: numbersOf(rounds).length,
    };
  };
  const findings: Finding[] = [];
  for (const of of ['server', 'generator'] as const) {
    const use = highest(unsettled, of, stealMatters, ({ noise }) => noise[`${of}StealShare`]);
    if (use !== undefined) findings.push({ code: 'steal', of, ...use });
  }
  const besideGenerator = highest(apart(all), 'generator', othersMatter, keptWaiting);
  if (besideGenerator !== undefined) {
    const waited = all.filter((round) => keptWaiting(round) >= othersMatter);
    findings.push({
      code: 'others-beside-generator',
      variants: [...new Set(allNames(waited))],
      isAtRate: all.every(({ atRate }) => atRate),
      ...besideGenerator,
    });
  }
  // The backend is part of the measurement, even if it shares the server's cores.
  const backend = highest(all, 'server', othersMatter, ({ noise }) => noise.upstreamShare ?? 0);
  if (backend !== undefined) findings.push({ code: 'busy-backend', ...backend });
  const besideServer = highest(
    apart(unsettled),
    'server',
    othersMatter,
    ({ noise }) => noise.serverOthersShare,
  );
  if (besideServer !== undefined)
    findings.push({
      code: 'others-beside-server',
      backend: backendIn(all),
      ...present({ host: facts.serverHost }),
      ...besideServer,
    });
  return findings;
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
  comparisons: readonly Judgement[],
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

function backendIn(rounds: readonly VariantRound[]): 'none' | 'apart' | 'unknown' {
  const upstreams = rounds.map(({ noise: { upstreamShare } }) => upstreamShare);
  if (upstreams.includes(null)) return 'unknown';
  return upstreams.some((upstream) => upstream !== undefined) ? 'apart' : 'none';
}

const numbersOf = (rounds: readonly VariantRound[]): number[] =>
  [...new Set(rounds.map(({ round }) => round))].sort((a, b) => a - b);

/** A gap is a pause if it is this many times the median latency: requests that wait for a usual answer also leave gaps. */
const pauseFactor = 10;
/** How many times longer rounds are advised to be: one pause more or less changes a round less by this factor. */
const longer = 10;

/** Finds servers that paused in most rounds, if that left a verdict open. */
export function pauseFindings(
  variants: readonly VariantResult[],
  comparisons: readonly Judgement[],
): Finding[] {
  const undecided = comparisons.filter(
    ({ verdict, metric }) => verdict === 'inconclusive' && metric === 'rps',
  );
  const compared = new Set(undecided.flatMap(({ baseline, variant }) => [baseline, variant]));
  const pausing = variants.filter((variant) => compared.has(variant.name) && pausesOften(variant));
  const loadSeconds = pausing[0]?.load.durationSeconds;
  if (loadSeconds === undefined) return [];
  const gaps = pausing.flatMap(({ rounds }) => phasesIn(rounds).map((phase) => phase.longestGapMs));
  return [
    {
      code: 'pauses',
      variants: allNames(pausing),
      usualMs: median(gaps),
      loadSeconds,
      neededSeconds: Math.ceil(longer * loadSeconds),
    },
  ];
}

function pausesOften({ rounds }: VariantResult): boolean {
  const phases = phasesIn(rounds);
  return phases.filter(isPause).length > phases.length / 2;
}

function isPause(phase: Phase): boolean {
  return hasPaused(phase) && phase.longestGapMs > pauseFactor * phase.latencyMs.p50;
}
