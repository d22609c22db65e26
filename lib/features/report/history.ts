// One effect over several runs, and the part of it that differs between boots.
import { metricWords } from '../../report/metric-words.ts';
import type { Result } from '../../result/result.ts';
import {
  alphaOf,
  exponential,
  groupedBy,
  mean,
  minimumRounds,
  ratioInterval,
  studentQuantile,
  total,
  variance,
  type RatioInterval,
} from '../../analysis/statistics.ts';
import { effect, percent, whole } from '../../format.ts';
import { leftColumn, type Part, rightColumn, tableOf } from '../../report/table.ts';

/** A run's comparison of two variants. */
export interface KeptEffect {
  run: string;
  /** A machine's boot. */
  boot: string;
  /** Ratios of its rounds, at least minimumRounds. */
  roundRatios: readonly number[];
}

/** Commits as sides have their hashes in the title: runs of other commits are no measurements of the same effect. */
const ofCommits = /\([0-9a-f]{9}[ )]/;

/** Returns the comparisons of all runs, by what they compare. Runs with too few rounds have none, nor have those without a verdict. */
export function effectsOf(results: readonly Result[]): Map<string, KeptEffect[]> {
  const all = results.flatMap(({ run, title, environment, comparisons }) =>
    comparisons
      .filter(
        ({ verdict, roundRatios }) => verdict !== 'none' && roundRatios.length >= minimumRounds,
      )
      .map(({ variant, baseline, metric, roundRatios }) => ({
        what: [
          `${variant} against ${baseline}, ${metricWords[metric].name}`,
          ...(ofCommits.test(title) ? [title] : []),
        ].join(': '),
        effect: { run, boot: environment.bootId, roundRatios },
      })),
  );
  const groups = groupedBy(all, ({ what }) => what);
  return new Map([...groups].map(([what, list]) => [what, list.map(({ effect }) => effect)]));
}

/** A mean on the logarithmic scale with its variance. */
interface Estimate {
  mean: number;
  variance: number;
}

interface Pooled extends RatioInterval {
  /** Number of boots; of a single boot the number is that of its runs. */
  units: number;
  unit: 'boot' | 'run';
  /** Standard deviation between the units, as a share: 0.05 is ±5 %. */
  between: number;
}

/** The variance of a run whose rounds are all alike, as a search's may be, so that its weight is finite. */
const leastVariance = 1e-12;

/** An effect's logarithms as the mean of a run. */
function estimateOf({ roundRatios }: KeptEffect): Estimate {
  const logs = roundRatios.map(Math.log);
  return { mean: mean(logs), variance: Math.max(leastVariance, variance(logs) / logs.length) };
}

/** The mean of estimates of the same effect, each by its weight. */
function combined(estimates: readonly Estimate[]): Estimate {
  const weight = total(estimates, ({ variance }) => 1 / variance);
  return {
    mean: total(estimates, ({ mean, variance }) => mean / variance) / weight,
    variance: 1 / weight,
  };
}

/**
 * Returns the mean effect with a 95 % interval for another boot's mean of such effects: a random-effects model whose variance between
 * boots is that of DerSimonian and Laird (Control. Clin. Trials 7, 1986), with the interval of Hartung and Knapp (Stat. Med. 20, 2001),
 * never narrower than without their factor (Röver, Knapp and Friede, BMC Med. Res. Methodol. 15, 2015). The runs of one boot count as
 * one; if there is only one boot, each of its runs counts.
 * @param effects at least two
 */
export function pooled(effects: readonly KeptEffect[]): Pooled {
  const boots = groupedBy(effects, ({ boot }) => boot);
  const unit = boots.size > 1 ? 'boot' : 'run';
  const estimates =
    unit === 'boot'
      ? [...boots.values()].map((runs) => combined(runs.map(estimateOf)))
      : effects.map(estimateOf);
  return { ...randomEffects(estimates), units: estimates.length, unit };
}

function randomEffects(estimates: readonly Estimate[]): RatioInterval & { between: number } {
  const k = estimates.length;
  const fixed = combined(estimates);
  const weights = estimates.map(({ variance }) => 1 / variance);
  const heterogeneity = total(
    estimates,
    ({ mean, variance }) => (mean - fixed.mean) ** 2 / variance,
  );
  const sum = total(weights, (weight) => weight);
  const scale = sum - total(weights, (weight) => weight ** 2) / sum;
  const betweenVariance = Math.max(0, (heterogeneity - (k - 1)) / scale);
  const wider = estimates.map((estimate) => ({
    ...estimate,
    variance: estimate.variance + betweenVariance,
  }));
  const middle = combined(wider);
  const factor =
    total(wider, ({ mean, variance }) => (mean - middle.mean) ** 2 / variance) / (k - 1);
  const half =
    studentQuantile(1 - alphaOf() / 2, k - 1) * Math.sqrt(middle.variance * Math.max(1, factor));
  return {
    ratio: Math.exp(middle.mean),
    interval: exponential({ middle: middle.mean, half }),
    between: Math.exp(Math.sqrt(betweenVariance)) - 1,
  };
}

/** Returns a run's own effect, with the interval of its rounds. */
export function ofRun({ roundRatios }: KeptEffect): RatioInterval {
  return ratioInterval(
    roundRatios.map(() => 1),
    roundRatios,
  );
}

/**
 * Returns a part for each pair of variants that was compared.
 * @param results of one scenario, the oldest first
 */
export function historyParts(results: readonly Result[]): Part[] {
  return [...effectsOf(results)].map(([what, effects]) => {
    const boots = [...new Set(effects.map(({ boot }) => boot))];
    const table = tableOf(effects, [
      leftColumn('run', ({ run }) => run),
      rightColumn('boot', ({ boot }) => whole(boots.indexOf(boot) + 1)),
      rightColumn('rounds', ({ roundRatios }) => whole(roundRatios.length)),
      rightColumn('effect', (keptEffect) => {
        const { ratio, interval } = ofRun(keptEffect);
        return effect(ratio, interval);
      }),
    ]);
    return { title: `${what}:`, tables: [table], below: [pooledLine(effects)] };
  });
}

function pooledLine(effects: readonly KeptEffect[]): string {
  if (effects.length < 2)
    return 'One run: what differs between boots of this machine is in no interval.';
  const { ratio, interval, between, unit, units } = pooled(effects);
  const mean = `Over ${units} ${unit}s: ${effect(ratio, interval)}`;
  const spread = `${unit}s differ by ±${percent(between)} (standard deviation) more than their rounds explain`;
  if (unit === 'boot') return `${mean}; ${spread}.`;
  return `${mean}; ${spread}. All are of one boot: what differs between boots is in no interval.`;
}
