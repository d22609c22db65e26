// What the run saw of others' use of the machine, said where the reader can do something about it: sides that take turns are
// disturbed alike, and where their verdicts are there nothing is left to do. Not so on the generator's cores: what others take of them
// the server that is faster waits for more.
import { enumeration, percent } from '../format.ts';
import type { Comparison } from '../result/result.ts';
import { serverShareOf } from './limit.ts';
import { noiseOf, othersMatter, stealMatters, type RoundNoise } from './noise.ts';
import { extent } from './statistics.ts';
import type { MeasuredVariant, RunFacts } from './measured.ts';

type Side = 'server' | 'generator';

/** The rounds in which a share of 0 to 1 was too high, of how many, and the highest of them. */
interface High { share: number; rounds: readonly number[]; ofRounds: number }

/** What that share is of: `cores` is how many the side has. */
type Seen = { cores: number } & (
  | { kind: 'steal'; side: Side }
  | { kind: 'generator-others' | 'upstream' }
  | { kind: 'others'; upstreams: Upstreams; host: string }
);

export type NoiseWarning = Seen & High;

/** Whether configs pass requests on, and whether what they pass them to is counted apart or, since it could not be told, among the others. */
type Upstreams = 'none' | 'apart' | 'among-others';

/** From this share of the cores that it can use on a server is kept busy: it has no time to wait for the generator. */
const busy = 0.95;

/** What a round of a variant saw; `isBusy`: the server was. */
interface VariantRound { round: number; noise: RoundNoise; isBusy: boolean }

export function noiseWarnings(facts: RunFacts, measured: readonly MeasuredVariant[], comparisons: readonly Comparison[]): NoiseWarning[] {
  const { serverCores, generatorCores, sharedCores, serverHost: host = 'this machine' } = facts;
  const all = measured.flatMap((variant) => variant.rounds.flatMap((one): VariantRound[] => {
    const noise = noiseOf(one);
    const share = serverShareOf(one, variant, { server: serverCores, generator: generatorCores });
    return noise === null ? [] : [{ round: one.round, noise, isBusy: (share ?? 0) >= busy }];
  }));
  // As groupsOf has it.
  const tookTurns = measured.every(({ network, rounds }) => network === undefined && rounds.every(({ phases }) => phases.length === 1));
  const verdicts = comparisons.map(({ verdict }) => verdict).filter((verdict) => verdict !== 'none');
  const settled = verdicts.length > 0 && !verdicts.includes('inconclusive') && tookTurns;
  const unsettled = settled ? [] : all;
  // On shared cores the generator itself is one of the server's others, and what others use is missing on both sides.
  const apart = (rounds: readonly VariantRound[]): readonly VariantRound[] => (sharedCores ? [] : rounds);
  return [
    ...warningOn(unsettled, ({ noise }) => noise.serverStealShare, stealMatters, { kind: 'steal', side: 'server', cores: serverCores }),
    ...warningOn(unsettled, ({ noise }) => noise.generatorStealShare, stealMatters, { kind: 'steal', side: 'generator', cores: generatorCores }),
    ...warningOn(apart(all), ({ noise, isBusy }) => (isBusy ? 0 : noise.generatorOthersShare), othersMatter, { kind: 'generator-others', cores: generatorCores }),
    // What a config passes requests to is part of what is measured, and shares the server's cores where it runs on them.
    ...warningOn(all, ({ noise }) => noise.upstreamShare ?? 0, othersMatter, { kind: 'upstream', cores: serverCores }),
    ...warningOn(apart(unsettled), ({ noise }) => noise.serverOthersShare, othersMatter, { kind: 'others', upstreams: upstreamsOf(all), host, cores: serverCores }),
  ];
}

/** One where a share is at least so high in a round. */
function warningOn(all: readonly VariantRound[], of: (one: VariantRound) => number, matters: number, seen: Seen): NoiseWarning[] {
  const high = all.filter((one) => of(one) >= matters);
  const numbers = (some: readonly VariantRound[]): number[] => [...new Set(some.map(({ round }) => round))];
  return high.length === 0 ? [] : [{ ...seen, share: extent(high.map(of))[1], rounds: numbers(high), ofRounds: numbers(all).length }];
}

function upstreamsOf(all: readonly VariantRound[]): Upstreams {
  const shares = all.map(({ noise: { upstreamShare } }) => upstreamShare);
  return shares.includes(null) ? 'among-others' : shares.some((one) => one !== undefined) ? 'apart' : 'none';
}

/** The warning in words, with the next step. */
export function noiseText(warning: NoiseWarning): string {
  switch (warning.kind) {
    case 'steal':
      return `steal time: the host gave others up to ${percent(warning.share)} of the ${coresOf(warning.side, warning.cores)} ${inRounds(warning)}: `
        + 'run again when it is quieter, or on a machine of your own';
    case 'generator-others':
      return `others used up to ${percent(warning.share)} of the ${coresOf('generator', warning.cores)} ${inRounds(warning)}, and the server had time left: `
        + 'requests/s and their differences come out too small, and latencies too long (CPU per request is right): end what else runs on this machine and run again';
    case 'others': {
      const used = `used up to ${percent(warning.share)} of the ${coresOf('server', warning.cores)} ${inRounds(warning)}`;
      if (warning.upstreams === 'none') return `others ${used}: end what else runs on ${warning.host} and run again`;
      return warning.upstreams === 'apart' ? `others ${used}: end what else runs on ${warning.host}, what the config passes requests to aside, and run again`
        : `others, and what the config passes requests to, ${used}: which of them it was cannot be told here; run that on other cores (taskset), or bakeoff as the user that it belongs to`;
    }
    case 'upstream':
      return `what the config passes requests to used up to ${percent(warning.share)} of the ${coresOf('server', warning.cores)} ${inRounds(warning)}: `
        + 'it is not in the server\'s CPU time; run it on other cores (taskset) to see the server alone';
  }
}

function coresOf(side: Side, count: number): string {
  return `${side}'s ${count === 1 ? 'core' : 'cores'}`;
}

function inRounds({ rounds, ofRounds }: High): string {
  if (rounds.length === ofRounds) return ofRounds === 1 ? 'in the only round' : 'in every round';
  if (rounds.length > 3) return `in ${rounds.length} of ${ofRounds} rounds`;
  return `in ${rounds.length === 1 ? 'round' : 'rounds'} ${enumeration(rounds.toSorted((a, b) => a - b))}`;
}
