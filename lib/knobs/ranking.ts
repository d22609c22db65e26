// From the runs' comparisons to what helps, what does nothing here, and what harms.
import { parse as parseYaml } from 'yaml';
import { comparisonOf, hasRatio } from '../analysis/comparisons.ts';
import { lessIsBetter } from '../analysis/latency.ts';
import { halfWidth } from '../analysis/statistics.ts';
import { percent, times, tolerance, whole } from '../format.ts';
import { metricMark } from '../report/verdict-words.ts';
import { type Cell, type Table, tableOf } from '../report/table.ts';
import type { Comparison, Result } from '../result/result.ts';
import type { LaidLines } from '../scenario/model.ts';
import { composeFlags } from '../servers/nghttpd.ts';
import { parseConfig } from '../servers/nginx-config.ts';
import { type Candidate, valueNames } from './catalogue.ts';

/** What became of one candidate. */
export interface Effect {
  candidate: Candidate;
  comparison: Comparison;
  /** It was measured a second time, after it was chosen. */ closer: boolean;
}

/** By what they bring, the best first: the ratio's gain. What was measured more closely takes the place of the first look. */
export function ranked(candidates: readonly Candidate[], first: Result, closer?: Result): Effect[] {
  const found = candidates.flatMap((candidate): Effect[] => {
    const [again, once] = [closer, first].map(
      (result) => result && comparisonOf(result, candidate.name),
    );
    const comparison = again ?? once;
    return comparison === undefined ? [] : [{ candidate, comparison, closer: again !== undefined }];
  });
  return found.sort((a, b) => gain(b.comparison) - gain(a.comparison));
}

/** How many times better; below 1 it is worse. */
export function gain({ metric, ratio }: Comparison): number {
  return lessIsBetter(metric) && ratio > 0 ? 1 / ratio : ratio;
}

/** What is worth a closer look: what helps, and of what is undecided that which may. @param most how many */
export function worthACloserLook(effects: readonly Effect[], most: number): Candidate[] {
  const of = (verdict: Comparison['verdict']): Effect[] =>
    effects.filter(({ comparison }) => comparison.verdict === verdict);
  return [...of('faster'), ...of('inconclusive').filter(({ comparison }) => gain(comparison) > 1)]
    .slice(0, most)
    .map(({ candidate }) => candidate);
}

/**
 * What helps, the best first, as far as it goes together: of two that set the same line otherwise the better one. What changes the
 * body does not: on loopback bytes cost next to nothing.
 * @param bodyBytes of the config as it is, and of each candidate
 * @returns with a sentence for each that is left out
 */
export function helpful(
  effects: readonly Effect[],
  bodyBytes: { asItIs: number; of(candidate: Candidate): number },
): { chosen: Candidate[]; said: string[] } {
  const choice: ReturnType<typeof helpful> = { chosen: [], said: [] };
  for (const { candidate } of effects.filter(({ comparison }) => comparison.verdict === 'faster')) {
    const bytes = bodyBytes.of(candidate);
    if (bytes !== bodyBytes.asItIs) {
      choice.said.push(
        `${candidate.name} answers with ${whole(bytes)} B instead of ${whole(bodyBytes.asItIs)} B, which on loopback costs next to nothing, and on a network its time: it is left out of what is put together.`,
      );
      continue;
    }
    const other = choice.chosen.find((one) => conflictOf(one, candidate) !== undefined);
    if (other === undefined) choice.chosen.push(candidate);
    else
      choice.said.push(
        `${candidate.name} helps too, and does not go together with ${other.name}, which sets ${conflictOf(other, candidate)} otherwise.`,
      );
  }
  return choice;
}

/** What both set, each to something else; undefined: they go together. */
export function conflictOf(a: Candidate, b: Candidate): string | undefined {
  const [one, other] = [settingsOf(a.laid), settingsOf(b.laid)];
  return [...one].find(([name, value]) => other.has(name) && other.get(name) !== value)?.[0];
}

/** What lines set, by name. Words that are put to a listen line are each by itself. */
function settingsOf({ context, lines }: LaidLines): Map<string, string> {
  if (context === 'flags')
    return new Map(
      composeFlags([{ origin: '', text: lines }]).map(({ name, value = '' }) => [name, value]),
    );
  if (context === 'top' || context === 'ssl')
    return new Map(
      Object.entries(parseYaml(lines) as object).map(([name, value]) => [
        name,
        JSON.stringify(value),
      ]),
    );
  return new Map(
    parseConfig({ origin: '', text: lines }).flatMap(({ name, args }): [string, string][] =>
      name === 'listen'
        ? args.slice(1).map((word) => [`listen … ${word.split('=')[0]}`, word])
        : [[name, args.join(' ')]],
    ),
  );
}

const words: Record<Comparison['verdict'], string> = {
  faster: 'helps',
  slower: 'harms',
  same: 'nothing here',
  inconclusive: 'undecided',
  none: '',
};

/** The ranked table. */
export function rankingTable(
  effects: readonly Effect[],
  { sameWithin }: Pick<Result, 'sameWithin'>,
): Table {
  const [first] = effects;
  const metric = first?.comparison.metric ?? 'rps';
  const left = { group: '', align: 'left' } as const;
  return tableOf(effects, [
    { ...left, title: 'knob', cell: ({ candidate }) => candidate.name },
    {
      ...left,
      title: metric === 'rps' ? 'requests/s' : metricMark(metric).trim(),
      cell: ({ comparison }) =>
        hasRatio(comparison) ? times(comparison.ratio, comparison.ci95) : '',
    },
    ...(metric === 'cpu'
      ? []
      : [
          {
            ...left,
            title: 'CPU/request',
            cell: ({ comparison: { cpu } }: Effect): Cell =>
              cpu === null ? '' : times(cpu.ratio, cpu.ci95),
          },
        ]),
    ...(metric === 'p99'
      ? []
      : [
          {
            ...left,
            title: 'p99',
            cell: ({
              comparison: {
                latency: { p99 },
              },
            }: Effect): Cell => (p99 === null ? '' : times(p99.ratio, p99.ci95)),
          },
        ]),
    { ...left, title: 'here', cell: ({ comparison }) => verdictCell(comparison, sameWithin) },
  ]);
}

function verdictCell({ verdict, why, ratio, ci95 }: Comparison, sameWithin: number): Cell {
  if (verdict === 'none') return { text: why, part: why, verdict };
  const part = words[verdict];
  const more =
    verdict === 'same'
      ? `, same within ${tolerance(sameWithin)}`
      : verdict === 'inconclusive'
        ? ` ±${percent(halfWidth({ ratio, interval: ci95 }))}`
        : '';
  return { text: `${part}${more}`, part, verdict };
}

/** What harms where another value of the knob, which the config has, is right. @param had names of values that it has */
export function rightAsItIs(effects: readonly Effect[], had: ReadonlySet<string>): Effect[] {
  return effects.filter(
    ({ candidate: { knob }, comparison: { verdict } }) =>
      verdict === 'slower' && valueNames(knob).some((name) => had.has(name)),
  );
}

/** What the single effects would come to if they did not know of each other. */
export function product(effects: readonly Effect[], chosen: readonly Candidate[]): number {
  return effects
    .filter(({ candidate }) => chosen.includes(candidate))
    .reduce((all, { comparison }) => all * comparison.ratio, 1);
}
