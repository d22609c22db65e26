// Warnings on other programs and the hypervisor, which used the cores of a run.
import { enumeration, percent } from '../format.ts';
import type { Comparison } from '../result/result.ts';
import { limit, noiseOf, othersMatter, sharesOf, stealMatters, type RoundNoise } from './limit.ts';
import { extent } from './statistics.ts';
import type { MeasuredVariant, RunFacts } from './verdict.ts';

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
  /** The server was below its limit, so that it may have waited for the generator. */
  hadTime: boolean;
  /** The load sets requests/s. */
  atRate: boolean;
}

/**
 * Sides in turns are disturbed alike, so once all verdicts are there only the generator's cores count:
 * a program there costs the faster server more.
 */
export function noiseWarnings(
  facts: RunFacts,
  measured: readonly MeasuredVariant[],
  comparisons: readonly Comparison[],
): string[] {
  const cores = { server: facts.serverCores, generator: facts.generatorCores };
  const all = measured.flatMap((variant) =>
    variant.rounds.flatMap((one): VariantRound[] => {
      const noise = noiseOf(one);
      const { serverShare } = sharesOf(one, variant, cores);
      const hadTime = (serverShare ?? 0) < limit;
      const atRate = variant.load['rate'] !== undefined;
      return noise === null
        ? []
        : [{ name: variant.name, round: one.round, noise, hadTime, atRate }];
    }),
  );
  const tookTurns = measured.every(({ rounds }) =>
    rounds.every(({ phases }) => phases.every(({ turns }) => (turns?.count ?? 0) > 1)),
  );
  const verdicts = comparisons.flatMap(({ verdict }) => (verdict === 'none' ? [] : verdict));
  const settled = verdicts.length > 0 && !verdicts.includes('inconclusive') && tookTurns;
  const unsettled = settled ? [] : all;
  // On shared cores the generator is one of the server's others, and others' time is missing on both sides.
  const apart = (rounds: readonly VariantRound[]) => (facts.sharedCores ? [] : rounds);
  /** A list item, such as "12 % of the server's cores in every round". */
  const high = (
    rounds: readonly VariantRound[],
    side: 'server' | 'generator',
    least: number,
    of: (one: VariantRound) => number,
  ): string[] => {
    const over = rounds.filter((one) => of(one) >= least);
    if (over.length === 0) return [];
    const [highest, numbers] = [extent(over.map(of))[1], numbersOf(over)];
    const when = roundsText(numbers, numbersOf(rounds).length);
    return [
      `${percent(highest)} of the ${side}'s ${cores[side] === 1 ? 'core' : 'cores'} in ${when}`,
    ];
  };
  const keptWaiting = ({ noise, hadTime }: VariantRound) =>
    hadTime ? noise.generatorOthersShare : 0;
  const waited = all.filter((one) => keptWaiting(one) >= othersMatter);
  const waiting = enumeration([...new Set(waited.map(({ name }) => name))]);
  const upstreams = all.map(({ noise: { upstreamShare } }) => upstreamShare);
  const host = facts.serverHost ?? 'this machine';
  const butBackend = upstreams.some((one) => one !== undefined) ? ', but not the backend,' : '';
  const slower = all.every((one) => one.atRate)
    ? ''
    : 'requests/s are understated, those of the faster side most; ';
  return [
    ...(['server', 'generator'] as const)
      .flatMap((side) =>
        high(unsettled, side, stealMatters, ({ noise }) => noise[`${side}StealShare`]),
      )
      .map(
        (share) =>
          `steal time: the host gave others up to ${share}: run again when it is quieter, or on a machine of your own`,
      ),
    ...high(apart(all), 'generator', othersMatter, keptWaiting).map(
      (share) =>
        `others used up to ${share}, when ${waiting} had time left: ${slower}latency is overstated, CPU per request is right: end what else runs on this machine and run again`,
    ),
    // The backend is part of the measurement, even if it shares the server's cores.
    ...high(all, 'server', othersMatter, ({ noise }) => noise.upstreamShare ?? 0).map(
      (share) =>
        `the backend used up to ${share}: it is not in the server's CPU time; run it on other cores (taskset) to see the server alone`,
    ),
    ...high(apart(unsettled), 'server', othersMatter, ({ noise }) => noise.serverOthersShare).map(
      (share) =>
        upstreams.includes(null)
          ? `the backend and other programs used up to ${share}: bakeoff cannot tell them apart here; run the backend on other cores (taskset), or bakeoff as the backend's user`
          : `others used up to ${share}: end what else runs on ${host}${butBackend} and run again`,
    ),
  ];
}

const numbersOf = (rounds: readonly VariantRound[]): number[] =>
  [...new Set(rounds.map(({ round }) => round))].sort((a, b) => a - b);
