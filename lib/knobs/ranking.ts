// The plan that tries knobs, each against the config as it is, and the ranking of their effects.
import { UserError } from '../errors.ts';
import type { Cores } from '../machine/cores.ts';
import { makePlan, type PlanOptions } from '../runner/make-plan.ts';
import type { PlanDraft } from '../runner/plan.ts';
import { defineScenario } from '../scenario/define-scenario.ts';
import type {
  ConfiguredServer,
  LaidLines,
  LoadProfile,
  Page,
  Scenario,
  Variant,
} from '../scenario/model.ts';
import { parse as parseYaml } from 'yaml';
import { comparisonOf, hasRatio } from '../analysis/comparisons.ts';
import { lessIsBetter } from '../analysis/latency.ts';
import { halfWidth } from '../analysis/statistics.ts';
import { percent, times, tolerance, whole } from '../format.ts';
import { metricMark } from '../report/verdict-words.ts';
import { tableOf, type Cell, type Table } from '../report/table.ts';
import type { Comparison, Result } from '../result/result.ts';
import { composeFlags } from '../servers/nghttpd.ts';
import { parseConfig } from '../servers/nginx-config.ts';
import { valueNames, type Candidate } from './catalogue.ts';

/** The config as it is. */
export interface AsItIs {
  given: string;
  server: ConfiguredServer;
  load: LoadProfile;
  page: Page;
}

/** One or several knobs on it. `page`: what is answered then. */
export interface Changed {
  name: string;
  laid: readonly LaidLines[];
  workers: ConfiguredServer['workers'];
  page: Page;
}

/** More in a group wait too long for their next turn. */
const mostInGroup = 11;

/** What the config as it is is called; there is one in each group. */
const baseline = 'as-it-is';

/**
 * A plan in which each of `changed` is compared with a baseline of its own group.
 * @throws UserError as makePlan does, and where not even two servers can be alive at a time
 */
export function planOf(
  name: string,
  title: string,
  asItIs: AsItIs,
  changed: readonly Changed[],
  cores: Cores,
  options: PlanOptions,
): PlanDraft {
  const all = draftOf(mostInGroup);
  const fits = Math.min(...all.groups.slice(0, -1).map(({ sides }) => sides.length));
  if (fits < 2)
    throw new UserError(
      'knobs are compared with the config as it is while both run, and this machine has no memory or open files for two servers under this load: take fewer connections (--load)',
    );
  const draft = fits > mostInGroup ? all : draftOf(fits - 1);
  const baselines = draft.variants.filter(({ variant }) => variant.against === null);
  return {
    ...draft,
    groups: baselines.map((one) => ({
      sides: draft.variants.filter(
        (side) => side === one || side.variant.against === one.variant.name,
      ),
    })),
  };

  function draftOf(most: number): PlanDraft {
    const scenario = scenarioOf(name, title, asItIs, changed, most);
    return makePlan(scenario, scenario.variants, cores, options);
  }
}

/** The config with the knobs laid over it. */
export function serverWith(server: ConfiguredServer, { workers, laid }: Changed): ConfiguredServer {
  return { ...server, workers, asIs: { ...server.asIs, laid } };
}

/** As evenly as they go into groups of at most so many. */
export function scenarioOf(
  name: string,
  title: string,
  { given, server, load, page }: AsItIs,
  changed: readonly Changed[],
  most: number,
): Scenario {
  const groups = Math.ceil(changed.length / most);
  const variants = Array.from({ length: groups }, (_, group): Variant[] => {
    const against = group === 0 ? baseline : `${baseline}-${group + 1}`;
    const [from, to] = [group, group + 1].map((index) =>
      Math.round((index * changed.length) / groups),
    );
    return [
      { name: against, server, against: null },
      ...changed.slice(from, to).map((one): Variant => ({
        name: one.name,
        against,
        server: serverWith(server, one),
        ...(one.page.bodyBytes === page.bodyBytes ? {} : { page: one.page }),
      })),
    ];
  }).flat();
  return defineScenario({
    name,
    title: `${title} ${given}`,
    knob: 'the usual advice',
    load,
    page,
    variants,
  });
}

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
