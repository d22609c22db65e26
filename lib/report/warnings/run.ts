// Warnings on how a run went, each with a next step.
import type { RatioInterval } from '../../analysis/statistics.ts';
import { counts, effect, whole } from '../../format.ts';
import type { DroppedRound, VariantResult } from '../../result/result.ts';

export const warning = {
  timeOver: (rounds: number, most: number) =>
    `--max-time ended the run after ${rounds} of at most ${most} rounds`,
  alone: (variant: string, why: string) =>
    `${variant} was loaded alone, and not in turns with the others: ${why}; the machine's noise is in its figures`,
  withoutWarmup: (variants: string) =>
    `${variants}: the load counts requests, and has no warm-up: a server that compiles its code or fills caches meanwhile is measured cold, and may differ much from itself. For a warm one give a time instead (--duration 2s, or -D 5 with h2load, -t 5 with ab)`,
  withoutSs: (variants: string) =>
    `ss is missing: whether other programs kept ${variants} waiting for a core is not known: install it (package iproute2)`,
  notInTurns: (variant: string, ratio: RatioInterval, rounds: number) =>
    `${variant}: requests/s in turns against continuous load are ${effect(ratio.ratio, ratio.interval)}, as where a rate limit or a quota recovers during the turns of others; so ${counts(rounds, 'round')} were dropped and the sides loaded one after the other: the machine's noise is in their ratios`,
  quotaInTurns: (variant: string, quota: string) =>
    `a CPU quota of its own held ${variant} back for ${quota}, and it recovers in the turns of others; so the sides are loaded one after the other: the machine's noise is in their ratios`,
  worksOutOfTurn: (variant: string, share: string) =>
    `${variant} uses ${share} of a core in the turns of others, as servers that poll or have jobs of their own do; so the sides are loaded one after the other, each with no other server alive: the machine's noise is in their ratios`,
  sideAsBackend: (variant: string, backend: string, port: number) =>
    `the config of ${variant} has the server of ${backend} (port ${port}) as a backend, and could load it in the turns of ${backend}; so the sides are loaded one after the other: the machine's noise is in their ratios`,
  turnsDiffer: (variant: string, ratio: RatioInterval) =>
    `${variant}: requests/s in turns against continuous load are ${effect(ratio.ratio, ratio.interval)}, and there was no time to load the sides one after the other: give more --max-time, and do not trust these figures`,
  serverAlarm: (variant: string, line: string) => `${variant}: the server's log says: ${line}`,
  logOfFailures: (variant: string, line: string) =>
    `${variant}: the last line of its log after requests had failed: ${line}`,
  otherBodies: (variant: string) =>
    `${variant}: under load the bodies had another length on average than when the server was started: part of what is seen is theirs`,
} as const;

/**
 * Returns a sentence on each failed round, with the requests/s that differed most from those of the rounds that count.
 * @param attempts rounds begun
 */
export function droppedTexts(
  dropped: readonly DroppedRound[],
  variants: readonly VariantResult[],
  attempts: number,
): string[] {
  const failed = dropped.filter(({ counted }) => counted === undefined);
  return failed.map((round) => {
    const repeated = round.round < attempts ? ` and repeated as round ${round.round + 1}` : '';
    return `round ${round.round} was dropped${repeated}: ${round.why}${figureOf(round, variants)}`;
  });
}

function figureOf({ rps }: DroppedRound, variants: readonly VariantResult[]): string {
  const known = variants.flatMap(({ name, rps: others }) => {
    const here = rps[name];
    return here === undefined || others === null ? [] : [{ name, here, others: others.median }];
  });
  const distance = ({ here, others }: (typeof known)[number]) => Math.abs(Math.log(here / others));
  const [farthest] = known.toSorted((a, b) => distance(b) - distance(a));
  if (farthest === undefined) return '';
  const { name, here, others } = farthest;
  return `; ${name} had ${whole(here)} requests/s in it, ${whole(others)} in the others`;
}
