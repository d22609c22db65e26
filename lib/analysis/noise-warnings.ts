// What the run saw of others' use of the machine, said where it matters to the figures.
import { enumeration, percent, short, times, whole } from '../format.ts';
import type { Comparison, Round } from '../runner/result.ts';
import { atLimit, generatorShareOf, usableCores } from './limit.ts';
import { roundLatenessMs, toleratedLatenessMs } from './network.ts';
import { clockMatters, noiseOf, othersMatter, stealMatters, type RoundNoise } from './noise.ts';
import { extent, median } from './statistics.ts';
import type { MeasuredVariant, RunFacts } from './summarise.ts';

type Side = 'server' | 'generator';

/** `share` is the highest of the rounds named, 0 to 1; `ofRounds` is how many there were. */
export type NoiseWarning =
  | { kind: 'steal'; side: Side; cores: number; share: number; rounds: readonly number[]; ofRounds: number }
  | { kind: 'others'; upstreams: Upstreams; cores: number; share: number; rounds: readonly number[]; ofRounds: number }
  | { kind: 'upstream'; cores: number; share: number; rounds: readonly number[]; ofRounds: number }
  | { kind: 'clock'; lowestMhz: number; highestMhz: number }
  | { kind: 'busy-rounds'; perMinute: number; own: number; rounds: readonly number[]; ofRounds: number }
  | { kind: 'outlier'; variants: readonly string[]; baseline: string; round: number; ratios: OutlierRatios; noise: string };

/** Whether configs pass requests on, and whether what they pass them to is counted apart or, since it could not be told, among the others. */
type Upstreams = 'none' | 'apart' | 'among-others';

/** That of the round and the extremes of the rounds that do not lie apart; of the first variant. */
interface OutlierRatios { ratio: number; lowest: number; highest: number }

/** A load average above this many per core, beside what the run itself comes to, is worth a warning. */
export const busyPerCore = 0.5;

/** k6's threads beside the engine's, the runner and InfluxDB come to less than one that always runs. */
const ownOthers = 1;

/** Those of the link of a network of the run's own. */
const linkThreads = 2;

interface Seen { round: number; noise: RoundNoise }

export function noiseWarnings(facts: RunFacts, measured: readonly MeasuredVariant[], comparisons: readonly Comparison[]): NoiseWarning[] {
  const seen = measured.flatMap(({ rounds }) => rounds.flatMap((one): Seen[] => {
    const noise = noiseOf(one);
    return noise === null ? [] : [{ round: one.round, noise }];
  }));
  return [
    ...stealWarnings(facts, seen, 'server'),
    ...stealWarnings(facts, seen, 'generator'),
    ...upstreamWarnings(facts, seen),
    ...othersWarnings(facts, seen),
    ...clockWarnings(seen),
    ...busyWarnings(facts, measured, seen),
    ...outlierWarnings(facts, measured, comparisons),
  ];
}

/** The rounds in which a figure is at least so high, and the highest; null when there is none. */
function worst(seen: readonly Seen[], of: (noise: RoundNoise) => number, matters: number): { highest: number; rounds: number[]; ofRounds: number } | null {
  const high = seen.filter(({ noise }) => of(noise) >= matters);
  if (high.length === 0) return null;
  const numbers = (some: readonly Seen[]): number[] => [...new Set(some.map(({ round }) => round))];
  return { highest: extent(high.map(({ noise }) => of(noise)))[1], rounds: numbers(high), ofRounds: numbers(seen).length };
}

function stealWarnings({ serverCores, generatorCores }: RunFacts, seen: readonly Seen[], side: Side): NoiseWarning[] {
  const found = worst(seen, side === 'server' ? (noise) => noise.serverStealShare : (noise) => noise.generatorStealShare, stealMatters);
  if (found === null) return [];
  const { highest: share, rounds, ofRounds } = found;
  return [{ kind: 'steal', side, cores: side === 'server' ? serverCores : generatorCores, share, rounds, ofRounds }];
}

/** On shared cores the generator itself is one of the others. */
function othersWarnings(facts: RunFacts, seen: readonly Seen[]): NoiseWarning[] {
  const found = facts.sharedCores ? null : worst(seen, (noise) => noise.serverOthersShare, othersMatter);
  if (found === null) return [];
  const { highest: share, rounds, ofRounds } = found;
  const shares = seen.map(({ noise: { upstreamShare } }) => upstreamShare);
  const upstreams = shares.includes(null) ? 'among-others' : shares.some((one) => one !== undefined) ? 'apart' : 'none';
  return [{ kind: 'others', upstreams, cores: facts.serverCores, share, rounds, ofRounds }];
}

/** What a config passes requests to is part of what is measured, and shares the server's cores where it runs on them. */
function upstreamWarnings(facts: RunFacts, seen: readonly Seen[]): NoiseWarning[] {
  const found = worst(seen, (noise) => noise.upstreamShare ?? 0, othersMatter);
  if (found === null) return [];
  const { highest: share, rounds, ofRounds } = found;
  return [{ kind: 'upstream', cores: facts.serverCores, share, rounds, ofRounds }];
}

function clockWarnings(seen: readonly Seen[]): NoiseWarning[] {
  const clocks = seen.flatMap(({ noise: { mhz } }) => mhz ?? []);
  const [lowestMhz, highestMhz] = [extent(clocks.map(({ lowest }) => lowest))[0], extent(clocks.map(({ highest }) => highest))[1]];
  return 1 - lowestMhz / highestMhz >= clockMatters ? [{ kind: 'clock', lowestMhz, highestMhz }] : [];
}

/** One minute's average holds the variant before as well: what the busiest of them keeps running is the run's own. */
function busyWarnings({ cores }: RunFacts, measured: readonly MeasuredVariant[], seen: readonly Seen[]): NoiseWarning[] {
  const own = ownOthers + Math.max(0, ...measured.map(({ server, load, network }) => (
    server === null ? 0 : server.workers + load.threads + (network === undefined ? 0 : linkThreads)
  )));
  const found = worst(seen, ({ loadAverage }) => loadAverage, own + busyPerCore * cores);
  if (found === null) return [];
  const { highest: perMinute, rounds, ofRounds } = found;
  return [{ kind: 'busy-rounds', perMinute, own, rounds, ofRounds }];
}

/** One per round and baseline: what disturbs the baseline is seen in all that are compared with it. */
function outlierWarnings(facts: RunFacts, measured: readonly MeasuredVariant[], comparisons: readonly Comparison[]): NoiseWarning[] {
  const roundsOf = (name: string): number[] => measured.find((one) => one.name === name)?.rounds.map(({ round }) => round) ?? [];
  const found = new Map<string, Omit<NoiseWarning & { kind: 'outlier' }, 'kind' | 'noise'>>();
  for (const { variant, baseline, roundRatios, outliers } of comparisons) {
    const numbers = roundsOf(variant);
    const others = roundRatios.filter((_, index) => !outliers.includes(numbers[index] as number));
    for (const round of outliers) {
      const [lowest, highest] = extent(others);
      const ratios = { ratio: roundRatios[numbers.indexOf(round)] as number, lowest, highest };
      const { variants, ...first } = found.get(`${baseline} ${round}`) ?? { variants: [], baseline, round, ratios };
      found.set(`${baseline} ${round}`, { ...first, variants: [...variants, variant] });
    }
  }
  return [...found.values()].map((one): NoiseWarning => {
    const sides = measured.filter(({ name }) => name === one.baseline || one.variants.includes(name));
    return { kind: 'outlier', ...one, noise: noiseOfRound(facts, sides, one.round) };
  });
}

/** The noise by which the round differs most from the others of the same variant, in words; '' where there was none. */
function noiseOfRound(facts: RunFacts, sides: readonly MeasuredVariant[], round: number): string {
  const causes = sides.flatMap((side) => causesIn(facts, side, round));
  return causes.filter(({ weight }) => weight >= 1).toSorted((a, b) => b.weight - a.weight)[0]?.words ?? '';
}

/** `weight`: how much more than in the other rounds, divided by what is worth a word. */
interface Cause { weight: number; words: string }

function causesIn(facts: RunFacts, { name, server, load, network, rounds }: MeasuredVariant, round: number): Cause[] {
  const its = rounds.find((one) => one.round === round);
  const others = rounds.filter((one) => one.round !== round);
  if (its === undefined || others.length === 0) return [];
  const cores = usableCores({ server, load }, { server: facts.serverCores, generator: facts.generatorCores });
  const generatorShare = (one: Round): number => generatorShareOf(one, { usable: cores.generator, all: facts.generatorCores });
  const share = generatorShare(its);
  const generator = atLimit(share)
    ? [{ weight: (share - median(others.map(generatorShare))) / othersMatter, words: `the generator was at ${percent(share)} of what it can use then (${name})` }]
    : [];
  const lateMs = roundLatenessMs(its);
  const link = network === undefined ? [] : [{
    weight: (lateMs - median(others.map(roundLatenessMs))) / Math.max(toleratedLatenessMs(network, 'toServer'), toleratedLatenessMs(network, 'toClient')),
    words: `packets left the link later then: p99 +${short(lateMs)} ms (${name})`,
  }];
  const noise = noiseOf(its);
  const usual = others.flatMap((one) => noiseOf(one) ?? []);
  if (noise === null || usual.length === 0) return [...generator, ...link];
  const more = (of: (one: RoundNoise) => number, matters: number, words: string): Cause => (
    { weight: (of(noise) - median(usual.map(of))) / matters, words: `${words} then (${name})` }
  );
  const steal = (side: Side, count: number, of: (one: RoundNoise) => number): Cause => (
    more(of, stealMatters, `${percent(of(noise))} of the ${coresOf(side, count)} were stolen`)
  );
  const clock = noise.mhz?.lowest;
  const usualClock = usual.flatMap(({ mhz }) => mhz?.lowest ?? []);
  return [
    ...generator,
    ...link,
    steal('server', facts.serverCores, (one) => one.serverStealShare),
    steal('generator', facts.generatorCores, (one) => one.generatorStealShare),
    ...(facts.sharedCores ? [] : [more(
      (one) => one.serverOthersShare, othersMatter, `others used ${percent(noise.serverOthersShare)} of the ${coresOf('server', facts.serverCores)}`,
    )]),
    ...(clock === undefined || usualClock.length === 0 ? [] : [{
      weight: Math.abs(1 - clock / median(usualClock)) / clockMatters,
      words: `the server's cores ran at ${whole(clock)} MHz then, otherwise at ${whole(median(usualClock))} (${name})`,
    }]),
    more((one) => one.loadAverage, busyPerCore * facts.cores, `the load average was ${noise.loadAverage.toFixed(1)}`),
  ];
}

/** The warning in words, with the next step where there is one. */
export function noiseText(warning: NoiseWarning): string {
  switch (warning.kind) {
    case 'steal':
      return `steal time: the host gave others up to ${percent(warning.share)} of the ${coresOf(warning.side, warning.cores)} ${inRounds(warning)}: `
        + 'run again when it is quieter, or on a machine of your own';
    case 'others': {
      const used = `used up to ${percent(warning.share)} of the ${coresOf('server', warning.cores)} ${inRounds(warning)}`;
      if (warning.upstreams === 'none') return `others ${used}: end what else runs on this machine and run again`;
      return warning.upstreams === 'apart' ? `others ${used}: end what else runs on this machine, what the config passes requests to aside, and run again`
        : `others, and what the config passes requests to, ${used}: which of them it was cannot be told here; run that on other cores (taskset), or bakeoff as the user that it belongs to`;
    }
    case 'upstream':
      return `what the config passes requests to used up to ${percent(warning.share)} of the ${coresOf('server', warning.cores)} ${inRounds(warning)}: `
        + 'it is not in the server\'s CPU time; run it on other cores (taskset) to see the server alone';
    case 'clock':
      return `the server's cores ran at ${whole(warning.lowestMhz)} to ${whole(warning.highestMhz)} MHz: `
        + 'the clock is part of the differences between rounds; hold it with `cpupower frequency-set -g performance`';
    case 'busy-rounds':
      return `load average ${warning.perMinute.toFixed(1)} ${inRounds(warning)}, of which the run itself explains ${warning.own}: `
        + 'something else used the machine; run again to be sure';
    case 'outlier': {
      const { variants, baseline, round, ratios: { ratio, lowest, highest }, noise } = warning;
      const others = times(lowest) === times(highest) ? times(lowest) : `${times(lowest)} to ${times(highest)}`;
      const where = variants.length === 1 ? `${variants[0]}: round ${round} lies apart: ${times(ratio)}, the others ${others}`
        : `round ${round} lies apart in ${variants.length} comparisons with ${baseline} (${variants.join(', ')})`;
      return `${where}; ${noise === '' ? 'nothing that was watched explains it, and it counts like all others' : noise}`;
    }
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
