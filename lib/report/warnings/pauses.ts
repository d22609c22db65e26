// Servers that pause, in pairs whose requests/s are not decided.
import { hasPaused, phasesIn } from '../../analysis/phases.ts';
import { median } from '../../analysis/statistics.ts';
import { duration, enumeration, scaledTime } from '../../format.ts';
import type { Comparison, Phase, VariantResult } from '../../result/result.ts';

/** Requests that wait for an answer are no pause: a pause is this much longer than most answers take. */
const pauseFactor = 10;
/** The part of a round that a pause more or less changes is smaller by the factor by which rounds are longer. */
const longer = 10;

/** A sentence on the servers that paused in most rounds, with the next step; none if none did. */
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
  const names = enumeration(pausing.map(({ name }) => name));
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
