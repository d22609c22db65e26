// What the run saw of others' use of the machine, said where the reader can do something about it: sides that take turns are
// disturbed alike, and where their verdicts are there nothing is left to do. Not so on the generator's cores: what others take of them
// the server that is faster waits for more.
import { enumeration, percent } from '../format.ts';
import type { Comparison } from '../result/result.ts';
import { serverShareOf, usableCores } from './limit.ts';
import { noiseOf, othersMatter, stealMatters, type RoundNoise } from './noise.ts';
import { extent } from './statistics.ts';
import type { MeasuredVariant, RunFacts } from './measured.ts';

type Side = 'server' | 'generator';

/** `share` is the highest of the rounds named, 0 to 1; `ofRounds` is how many there were. */
export type NoiseWarning =
  | { kind: 'steal'; side: Side; cores: number; share: number; rounds: readonly number[]; ofRounds: number }
  | { kind: 'generator-others'; cores: number; share: number; rounds: readonly number[]; ofRounds: number }
  | { kind: 'others'; upstreams: Upstreams; host: string; cores: number; share: number; rounds: readonly number[]; ofRounds: number }
  | { kind: 'upstream'; cores: number; share: number; rounds: readonly number[]; ofRounds: number };

/** Whether configs pass requests on, and whether what they pass them to is counted apart or, since it could not be told, among the others. */
type Upstreams = 'none' | 'apart' | 'among-others';

/** From this share of the cores that it can use on a server is kept busy: it has no time to wait for the generator. */
const busy = 0.95;

/** `isBusy`: the server was. */
interface Seen { round: number; noise: RoundNoise; isBusy: boolean }

export function noiseWarnings(facts: RunFacts, measured: readonly MeasuredVariant[], comparisons: readonly Comparison[]): NoiseWarning[] {
  const seen = measured.flatMap((variant) => variant.rounds.flatMap((one): Seen[] => {
    const noise = noiseOf(one);
    const usable = usableCores(variant, { server: facts.serverCores, generator: facts.generatorCores }).server;
    return noise === null ? [] : [{ round: one.round, noise, isBusy: (serverShareOf(one, { usable, all: facts.serverCores }) ?? 0) >= busy }];
  }));
  // As groupsOf has it.
  const tookTurns = measured.every(({ network, rounds }) => network === undefined && rounds.every(({ phases }) => phases.length === 1));
  const settled = comparisons.length > 0 && comparisons.every(({ verdict }) => verdict !== 'inconclusive') && tookTurns;
  return [
    ...(settled ? [] : [...stealWarnings(facts, seen, 'server'), ...stealWarnings(facts, seen, 'generator')]),
    ...generatorOthersWarnings(facts, seen),
    ...upstreamWarnings(facts, seen),
    ...(settled ? [] : othersWarnings(facts, seen)),
  ];
}

/** The rounds in which a figure is at least so high, and the highest; null when there is none. */
function worst(seen: readonly Seen[], of: (one: Seen) => number, matters: number): { highest: number; rounds: number[]; ofRounds: number } | null {
  const high = seen.filter((one) => of(one) >= matters);
  if (high.length === 0) return null;
  const numbers = (some: readonly Seen[]): number[] => [...new Set(some.map(({ round }) => round))];
  return { highest: extent(high.map(of))[1], rounds: numbers(high), ofRounds: numbers(seen).length };
}

function stealWarnings({ serverCores, generatorCores }: RunFacts, seen: readonly Seen[], side: Side): NoiseWarning[] {
  const found = worst(seen, side === 'server' ? ({ noise }) => noise.serverStealShare : ({ noise }) => noise.generatorStealShare, stealMatters);
  if (found === null) return [];
  const { highest: share, rounds, ofRounds } = found;
  return [{ kind: 'steal', side, cores: side === 'server' ? serverCores : generatorCores, share, rounds, ofRounds }];
}

/** On shared cores what others use is missing on both sides. */
function generatorOthersWarnings({ sharedCores, generatorCores }: RunFacts, seen: readonly Seen[]): NoiseWarning[] {
  const found = sharedCores ? null : worst(seen, ({ noise, isBusy }) => (isBusy ? 0 : noise.generatorOthersShare), othersMatter);
  return found === null ? [] : [{ kind: 'generator-others', cores: generatorCores, share: found.highest, rounds: found.rounds, ofRounds: found.ofRounds }];
}

/** On shared cores the generator itself is one of the others. */
function othersWarnings(facts: RunFacts, seen: readonly Seen[]): NoiseWarning[] {
  const found = facts.sharedCores ? null : worst(seen, ({ noise }) => noise.serverOthersShare, othersMatter);
  if (found === null) return [];
  const { highest: share, rounds, ofRounds } = found;
  const shares = seen.map(({ noise: { upstreamShare } }) => upstreamShare);
  const upstreams = shares.includes(null) ? 'among-others' : shares.some((one) => one !== undefined) ? 'apart' : 'none';
  return [{ kind: 'others', upstreams, host: facts.serverHost ?? 'this machine', cores: facts.serverCores, share, rounds, ofRounds }];
}

/** What a config passes requests to is part of what is measured, and shares the server's cores where it runs on them. */
function upstreamWarnings(facts: RunFacts, seen: readonly Seen[]): NoiseWarning[] {
  const found = worst(seen, ({ noise }) => noise.upstreamShare ?? 0, othersMatter);
  if (found === null) return [];
  const { highest: share, rounds, ofRounds } = found;
  return [{ kind: 'upstream', cores: facts.serverCores, share, rounds, ofRounds }];
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

function inRounds({ rounds, ofRounds }: { rounds: readonly number[]; ofRounds: number }): string {
  if (rounds.length === ofRounds) return ofRounds === 1 ? 'in the only round' : 'in every round';
  if (rounds.length > 3) return `in ${rounds.length} of ${ofRounds} rounds`;
  return `in ${rounds.length === 1 ? 'round' : 'rounds'} ${enumeration(rounds.toSorted((a, b) => a - b))}`;
}
