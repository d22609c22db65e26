// Reports large differences in the servers' memory, and in their start-up time, which results of older versions have. Nobody has to ask
// for them.
import { measuredComparisons, sidesOf } from '../analysis/comparisons.ts';
import { askedOf, figuresPerRound, typicalOf } from '../analysis/metrics.ts';
import { sideWithWrongAnswers } from '../analysis/bodies.ts';
import { minimumRounds } from '../analysis/statistics.ts';
import { counts, effect, percent } from '../format.ts';
import type { Comparison, Result } from '../result/result.ts';
import { factsOf, serverMetricNames, type ServerMetric } from '../result/server-metrics.ts';

/** In each round one side has at least this multiple of the other's figure. */
const leastTimes = 1.1;
/** Lines per metric. */
const mostLines = 3;

/** Returns a line for each such difference. They need no share of the run's error probability: all rounds have to agree, by a margin. */
export function serverLines(result: Result): string[] {
  if (result.control === true) return [];
  const asked = askedOf(result);
  const others = serverMetricNames.filter((metric) => !asked.includes(metric));
  return others.flatMap((metric) => {
    const lines = measuredComparisons(result).flatMap(
      (comparison) => serverLine(comparison, metric, result) ?? [],
    );
    const more = lines.length - mostLines;
    if (more <= 0) return lines;
    return [
      ...lines.slice(0, mostLines),
      `${counts(more, 'more comparison')} ${more === 1 ? 'differs' : 'differ'} as clearly in ${factsOf(metric).name}: --metric ${metric} shows all.`,
    ];
  });
}

function serverLine(
  comparison: Comparison,
  metric: ServerMetric,
  result: Result,
): string | undefined {
  const { variant, baseline } = comparison;
  const { text, unit, tells, sentence, timesSentence } = factsOf(metric);
  const variants = sidesOf(comparison, result);
  const sides = variants.map(({ rounds }) => rounds);
  // Wrong answers, and other numbers of requests at a time, say nothing about the server.
  const loads = variants.map(({ load: { connections, streams } }) => `${connections} ${streams}`);
  if (sideWithWrongAnswers(variants) !== undefined || new Set(loads).size > 1) return undefined;
  const [before, now] = sides.map((rounds) => figuresPerRound(metric, rounds) ?? []);
  const [usual, typical] = sides.map((rounds) => typicalOf(metric, rounds));
  if (now === undefined || before === undefined) return undefined;
  if (typical === undefined || usual === undefined || now.length < minimumRounds) return undefined;
  const isLess = typical < usual;
  const isClear = now.every((figure, round) => {
    const [low, high] = isLess ? [figure, before[round] ?? 0] : [before[round] ?? Infinity, figure];
    return high >= leastTimes * low && high - low >= tells;
  });
  if (!isClear) return undefined;
  const ratio = typical / usual;
  const change = `${percent(Math.abs(ratio - 1))} ${isLess ? 'less' : 'more'}`;
  const claim =
    ratio < 2
      ? sentence(variant, baseline, change)
      : timesSentence(variant, baseline, effect(ratio));
  return `${claim}: ${text(typical)} against ${text(usual)} ${unit}, in all ${now.length} rounds.`;
}
