// requests/s over the time of a run, from k6's records.
import { extent, total } from '../../analysis/statistics.ts';
import { perSecond } from '../../format.ts';
import type { Phase, Result } from '../../result/result.ts';
import { leftColumn, rightColumn, tableOf } from '../table.ts';
import type { Figure, Timeline } from './figure.ts';

/**
 * Responses of the second (or what is left of one) before that moment, in a load phase of a round of a variant. `seconds`: of them
 * under load; earlier records do not tell, and then it is the time since the sample before.
 */
export interface Sample { variant: string; round: number; phase: number; atMs: number; responses: number; seconds?: number }

/** More than this are drawn as means of several seconds: a plot has no room for them. */
const mostPoints = 4000;

/** A shorter rest of a second has too few requests to say how many there are in one. */
const shortestMs = 100;

/** @param samples in order of time within each phase */
export function timelineFigures(result: Result, samples: readonly Sample[]): Figure[] {
  // Of a search one step of each round is told, and its curve has them all.
  if (result.search !== undefined) return [];
  const beganMs = Date.parse(result.startedAt);
  const perPoint = Math.ceil(samples.length / mostPoints);
  const lines = result.variants.flatMap(({ name, rounds }): Timeline['lines'] => rounds.flatMap(({ round, phases }) => phases.flatMap((phase, index) => {
    const own = samples.filter((sample) => sample.variant === name && sample.round === round && sample.phase === index + 1);
    const points = ratesOf(own, phase, perPoint).map(({ atMs, rps }): [number, number] => [(atMs - beganMs) / 1000, rps]);
    return points.length === 0 ? [] : [{ name, round, points }];
  })));
  if (lines.length === 0) return [];
  const numbers = [...new Set(lines.map(({ round }) => round))].sort((a, b) => a - b);
  const names = [...new Set(lines.map(({ name }) => name))];
  return [{
    title: 'requests/s over time',
    text: `One mark ${perPoint === 1 ? 'a second' : `for ${perPoint} seconds`}, one line per variant and round; numbers above are those of the rounds.`,
    data: {
      kind: 'timeline', names, lines,
      rounds: numbers.map((round) => ({ round, seconds: extent(lines.filter((line) => line.round === round).map(({ points: [first] }) => first?.[0] ?? 0))[0] })),
    },
    tables: [tableOf(numbers, [
      leftColumn('round', String),
      ...names.map((name) => rightColumn(name, (round: number) => {
        const rates = lines.filter((line) => line.name === name && line.round === round).flatMap(({ points }) => points.map(([, rps]) => rps));
        return rates.length === 0 ? '' : extent(rates).map(perSecond).join(' to ');
      }, { group: `lowest to highest ${perPoint === 1 ? 'second' : `${perPoint} seconds`} of` })),
    ])],
  }];
}

/** requests/s of each second, or of `perPoint` of them together. */
function ratesOf(samples: readonly Sample[], { startedAt }: Phase, perPoint: number): { atMs: number; rps: number }[] {
  const rates: { atMs: number; rps: number }[] = [];
  let fromMs = Date.parse(startedAt);
  for (let index = 0; index < samples.length; index += perPoint) {
    const some = samples.slice(index, index + perPoint);
    const atMs = some.at(-1)?.atMs ?? fromMs;
    const told = total(some, ({ seconds = 0 }) => seconds);
    const seconds = told > 0 ? told : (atMs - fromMs) / 1000;
    if (seconds * 1000 >= shortestMs) rates.push({ atMs, rps: total(some, ({ responses }) => responses) / seconds });
    fromMs = atMs;
  }
  return rates;
}
