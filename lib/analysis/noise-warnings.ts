// Warnings of others' use of the machine. Sides in turns are disturbed alike, so there is none once all verdicts are there, except for
// the generator's cores: a program there costs the faster server more.
import { enumeration, percent } from '../format.ts';
import type { Comparison } from '../result/result.ts';
import { serverShareOf } from './limit.ts';
import { noiseOf, othersMatter, stealMatters, type RoundNoise } from './noise.ts';
import { extent } from './statistics.ts';
import type { MeasuredVariant, RunFacts } from './measured.ts';

type Side = 'server' | 'generator';

/** The rounds in which a share of 0 to 1 of a side's cores was too high, of how many, and the highest of them. */
interface High {
  cores: number;
  share: number;
  rounds: readonly number[];
  ofRounds: number;
}

/** Whether configs pass requests on, and whether what they pass them to is counted apart or, since it could not be told, among the others. */
type Upstreams = 'none' | 'apart' | 'among-others';

/** A kind of warning is what its words are made of. */
export type WarningOf<Texts extends Record<string, (about: never) => string>> = {
  [Kind in keyof Texts]: { kind: Kind } & Parameters<Texts[Kind]>[0];
}[keyof Texts];

/** Each kind in words, with the next step. `cores` is how many the side has whose share it is. */
export const noiseTexts = {
  steal: ({ side, ...seen }: High & { side: Side }) =>
    `steal time: the host gave others up to ${shareOf(side, seen)}: run again when it is quieter, or on a machine of your own`,
  'generator-others': (seen: High) =>
    `others used up to ${shareOf('generator', seen)}, and the server had time left: ` +
    'requests/s and their differences come out too small, and latencies too long (CPU per request is right): end what else runs on this machine and run again',
  others: ({ upstreams, host, ...seen }: High & { upstreams: Upstreams; host: string }) => {
    const used = `used up to ${shareOf('server', seen)}`;
    if (upstreams === 'none') return `others ${used}: end what else runs on ${host} and run again`;
    return upstreams === 'apart'
      ? `others ${used}: end what else runs on ${host}, but not the backend, and run again`
      : `the backend and other programs ${used}: bakeoff cannot tell them apart here; run the backend on other cores (taskset), or bakeoff as the backend's user`;
  },
  upstream: (seen: High) =>
    `the backend used up to ${shareOf('server', seen)}: it is not in the server's CPU time; run it on other cores (taskset) to see the server alone`,
};

/** "12 % of the server's cores in every round". */
function shareOf(side: Side, { share, cores, rounds, ofRounds }: High): string {
  return `${percent(share)} of the ${side}'s ${cores === 1 ? 'core' : 'cores'} ${inRounds(rounds, ofRounds)}`;
}

function inRounds(rounds: readonly number[], ofRounds: number): string {
  if (rounds.length === ofRounds) return ofRounds === 1 ? 'in the only round' : 'in every round';
  if (rounds.length > 3) return `in ${rounds.length} of ${ofRounds} rounds`;
  return `in ${rounds.length === 1 ? 'round' : 'rounds'} ${enumeration(rounds.toSorted((a, b) => a - b))}`;
}

/** From this share of the cores that it can use on a server is kept busy: it has no time to wait for the generator. */
const busy = 0.95;

/** What a round of a variant saw; `isBusy`: the server was. */
interface VariantRound {
  round: number;
  noise: RoundNoise;
  isBusy: boolean;
}

export function noiseWarnings(
  facts: RunFacts,
  measured: readonly MeasuredVariant[],
  comparisons: readonly Comparison[],
): WarningOf<typeof noiseTexts>[] {
  const { serverCores, generatorCores, sharedCores, serverHost: host = 'this machine' } = facts;
  const all = measured.flatMap((variant) =>
    variant.rounds.flatMap((one): VariantRound[] => {
      const noise = noiseOf(one);
      const share = serverShareOf(one, variant, { server: serverCores, generator: generatorCores });
      return noise === null ? [] : [{ round: one.round, noise, isBusy: (share ?? 0) >= busy }];
    }),
  );
  const tookTurns = measured.every(({ rounds }) =>
    rounds.every(({ phases }) => phases.every(({ turns }) => (turns?.count ?? 0) > 1)),
  );
  const verdicts = comparisons
    .map(({ verdict }) => verdict)
    .filter((verdict) => verdict !== 'none');
  const settled = verdicts.length > 0 && !verdicts.includes('inconclusive') && tookTurns;
  const unsettled = settled ? [] : all;
  // On shared cores the generator itself is one of the server's others, and what others use is missing on both sides.
  const apart = (rounds: readonly VariantRound[]): readonly VariantRound[] =>
    sharedCores ? [] : rounds;
  return [
    ...warningOn(unsettled, ({ noise }) => noise.serverStealShare, stealMatters, {
      kind: 'steal',
      side: 'server',
      cores: serverCores,
    }),
    ...warningOn(unsettled, ({ noise }) => noise.generatorStealShare, stealMatters, {
      kind: 'steal',
      side: 'generator',
      cores: generatorCores,
    }),
    ...warningOn(
      apart(all),
      ({ noise, isBusy }) => (isBusy ? 0 : noise.generatorOthersShare),
      othersMatter,
      { kind: 'generator-others', cores: generatorCores },
    ),
    // The backend is part of the measurement, and shares the server's cores if it runs on them.
    ...warningOn(all, ({ noise }) => noise.upstreamShare ?? 0, othersMatter, {
      kind: 'upstream',
      cores: serverCores,
    }),
    ...warningOn(apart(unsettled), ({ noise }) => noise.serverOthersShare, othersMatter, {
      kind: 'others',
      upstreams: upstreamsOf(all),
      host,
      cores: serverCores,
    }),
  ];
}

/** One where a share is at least so high in a round. */
function warningOn<const Seen>(
  all: readonly VariantRound[],
  of: (one: VariantRound) => number,
  matters: number,
  seen: Seen,
): (Seen & Omit<High, 'cores'>)[] {
  const high = all.filter((one) => of(one) >= matters);
  const numbers = (some: readonly VariantRound[]): number[] => [
    ...new Set(some.map(({ round }) => round)),
  ];
  return high.length === 0
    ? []
    : [
        {
          ...seen,
          share: extent(high.map(of))[1],
          rounds: numbers(high),
          ofRounds: numbers(all).length,
        },
      ];
}

function upstreamsOf(all: readonly VariantRound[]): Upstreams {
  const shares = all.map(({ noise: { upstreamShare } }) => upstreamShare);
  return shares.includes(null)
    ? 'among-others'
    : shares.some((one) => one !== undefined)
      ? 'apart'
      : 'none';
}
