// Findings on other programs and virtual machines that used the cores of a run, and on servers that pause.
import { allNames, present } from '../present.ts';
import type { CoreUse, Finding } from '../result/finding.ts';
import type { Phase, VariantResult } from '../result/result.ts';
import { judgedOf } from './comparisons.ts';
import type { Judgement } from './judgement.ts';
import { limit, noiseOf, othersMatter, sharesOf, stealMatters } from './limit.ts';
import { hasPaused, phasesIn } from './phases.ts';
import { extent, median } from './statistics.ts';
import type { MeasuredVariant, RunFacts } from './verdict.ts';

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
  const all = measured.flatMap((variant) => roundsOf(variant, cores));
  const unsettled = isSettled(measured, comparisons) ? [] : all;
  // On shared cores the generator is one of the other programs beside the server, and what others use is missing to server and generator
  // alike.
  const apart = (rounds: readonly VariantRound[]) => (facts.sharedCores ? [] : rounds);
  const findings: Finding[] = [];
  /** Adds a finding unless all rounds are below `least`. */
  const look = (
    rounds: readonly VariantRound[],
    side: 'server' | 'generator',
    least: number,
    shareOf: (round: VariantRound) => number,
    findingOn: (use: CoreUse, over: readonly VariantRound[]) => Finding,
  ) => {
    const over = rounds.filter((round) => shareOf(round) >= least);
    if (over.length === 0) return;
    const [, share] = extent(over.map(shareOf));
    const [numbers, allRounds] = [numbersOf(over), numbersOf(rounds).length];
    findings.push(findingOn({ share, cores: cores[side], rounds: numbers, allRounds }, over));
  };
  for (const of of ['server', 'generator'] as const) {
    const stolen = ({ noise }: VariantRound) => noise[`${of}StealShare`];
    look(unsettled, of, stealMatters, stolen, (use) => ({ code: 'steal', of, ...use }));
  }
  const waitedFor = ({ waitedShare }: VariantRound) => waitedShare;
  look(apart(all), 'generator', othersMatter, waitedFor, (use, over) => ({
    code: 'others-beside-generator',
    variants: [...new Set(allNames(over))],
    isAtRate: all.every((round) => round.isAtRate),
    ...(backendIn(all) !== 'none' && { hasBackend: true }),
    ...use,
  }));
  // The backend is part of the measurement, even if it shares the server's cores.
  const upstream = ({ noise }: VariantRound) => noise.upstreamShare ?? 0;
  look(all, 'server', othersMatter, upstream, (use) => ({ code: 'busy-backend', ...use }));
  const others = ({ noise }: VariantRound) => noise.serverOthersShare;
  look(apart(unsettled), 'server', othersMatter, others, (use) => ({
    code: 'others-beside-server',
    backend: backendIn(all),
    ...present({ host: facts.serverHost }),
    ...use,
  }));
  return findings;
}

type VariantRound = ReturnType<typeof roundsOf>[number];

/**
 * The rounds with known noise. `waitedShare`: of the generator's cores, what other programs used while the server was below its limit, so
 * that it may have waited for the generator.
 */
function roundsOf(variant: MeasuredVariant, cores: { server: number; generator: number }) {
  const { name, load } = variant;
  return variant.rounds.flatMap((round) => {
    const noise = noiseOf(round);
    if (noise === null) return [];
    const { serverShare } = sharesOf(round, variant, cores);
    const waitedShare = (serverShare ?? 0) < limit ? noise.generatorOthersShare : 0;
    return [{ name, round: round.round, noise, waitedShare, isAtRate: load['rate'] !== undefined }];
  });
}

/** Returns whether all verdicts are there, on sides that took turns. */
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
