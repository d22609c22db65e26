// Plans the comparison of each knob with the config as it is, and ranks the effects.
import { UserError } from '../../errors.ts';
import type { Cores } from '../../machine/cores.ts';
import { makePlan, type PlanOptions } from '../../runner/make-plan.ts';
import type { PlanDraft } from '../../runner/plan.ts';
import { defineScenario } from '../../scenario/define-scenario.ts';
import type {
  ConfiguredServer,
  Overlay,
  LoadProfile,
  Page,
  Scenario,
  Variant,
} from '../../scenario/model.ts';
import { comparisonOf, hasRatio } from '../../analysis/comparisons.ts';
import { metrics } from '../../analysis/metrics.ts';
import { groupedBy, minimumRounds } from '../../analysis/statistics.ts';
import { counts, effect, enumeration, tolerance, whole } from '../../format.ts';
import { fitsCell, metricMark } from '../../report/verdict-words.ts';
import { leftColumn, tableOf, type Cell, type Table } from '../../report/table.ts';
import type { BesideRatio, Comparison, Result } from '../../result/result.ts';
import { valueNames, type Candidate } from './catalogue.ts';

/** The config as it is, or with knobs. */
export interface Tested {
  name: string;
  server: ConfiguredServer;
  page: Page & { bodyBytes: number };
}

/** What all plans have in common. */
export interface AsItIs extends Omit<Tested, 'name'> {
  given: string;
  load: LoadProfile;
}

/** A side of a larger group waits too long for its next turn. */
const mostInGroup = 11;

/** The name of the config as it is; each group has one. */
const baseline = 'as-it-is';

/**
 * Plans a run in which each of `changed` is compared with a baseline of its own group.
 * @throws UserError as makePlan does, and if two servers do not fit into memory and open files
 */
export function planOf(
  name: string,
  title: string,
  asItIs: AsItIs,
  changed: readonly Tested[],
  cores: Cores,
  options: PlanOptions,
): PlanDraft {
  const draftOf = (most: number) => {
    const scenario = scenarioOf(name, title, asItIs, changed, most);
    return makePlan(scenario, scenario.variants, cores, options);
  };
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
    groups: baselines.map((baselineSide) => ({
      sides: draft.variants.filter(
        (side) => side === baselineSide || side.variant.against === baselineSide.variant.name,
      ),
    })),
  };
}

function scenarioOf(
  name: string,
  title: string,
  { given, server, load, page }: AsItIs,
  changed: readonly Tested[],
  most: number,
): Scenario {
  const groups = Math.ceil(changed.length / most);
  const variants = Array.from({ length: groups }, (_, group): Variant[] => {
    const against = group === 0 ? baseline : `${baseline}-${group + 1}`;
    const start = (index: number) => Math.round((index * changed.length) / groups);
    return [
      { name: against, server, against: null },
      ...changed
        .slice(start(group), start(group + 1))
        .map((tested): Variant => ({ ...tested, against })),
    ];
  }).flat();
  const knob = 'the usual advice';
  return defineScenario({ name, title: `${title} ${given}`, knob, load, page, variants });
}

export type Effect = ReturnType<typeof ranked>[number];

/** Ranks the candidates by gain, the best first. A comparison of the closer look replaces that of the first look. */
export function ranked(candidates: readonly Candidate[], first: Result, closer?: Result) {
  return candidates
    .flatMap((candidate) => {
      const again = closer && comparisonOf(closer, candidate.name);
      const comparison = again ?? comparisonOf(first, candidate.name);
      return comparison ? [{ candidate, comparison, closer: again !== undefined }] : [];
    })
    .sort((a, b) => gain(b.comparison) - gain(a.comparison));
}

/** Returns how many times better; below 1: worse. */
export function gain({ metric, ratio }: Comparison): number {
  return metrics[metric].lessIsBetter && ratio > 0 ? 1 / ratio : ratio;
}

/** The first `most` candidates that help, then those that may help. */
export function worthACloserLook(effects: readonly Effect[], most: number): Candidate[] {
  const having = (verdict: string) =>
    effects.filter(({ comparison }) => comparison.verdict === verdict);
  const mayHelp = having('inconclusive').filter(({ comparison }) => gain(comparison) > 1);
  return [...having('faster'), ...mayHelp].slice(0, most).map(({ candidate }) => candidate);
}

/**
 * Chooses the candidates that help, are compatible and keep the body's length, the best first. Returns a sentence for each other
 * candidate that helps.
 */
export function helpful(
  effects: readonly Effect[],
  bodyBytes: { asItIs: number; of(candidate: Candidate): number },
) {
  const chosen: Candidate[] = [];
  const sentences: string[] = [];
  for (const { candidate, comparison } of effects) {
    if (comparison.verdict !== 'faster') continue;
    const { name } = candidate;
    const bytes = bodyBytes.of(candidate);
    const other = chosen.find((earlier) => conflictOf(earlier, candidate) !== undefined);
    if (bytes !== bodyBytes.asItIs)
      sentences.push(
        `${name} answers with ${whole(bytes)} B instead of ${whole(bodyBytes.asItIs)} B, which on loopback costs next to nothing, and on a network its time: it is left out of what is put together.`,
      );
    else if (other !== undefined)
      sentences.push(
        `${name} helps too, and does not go together with ${other.name}, which sets ${conflictOf(other, candidate)} otherwise.`,
      );
    else chosen.push(candidate);
  }
  return { chosen, sentences };
}

/**
 * Says why no knobs are put together and verified. It speaks only of values that were tried, each alone; an undecided value may still
 * help.
 */
export function nothingHelpsLine(effects: readonly Effect[]): string {
  const verdicts = effects.map(({ comparison }) => comparison.verdict);
  const open = verdicts.filter((verdict) => verdict === 'inconclusive' || verdict === 'none');
  const helps = verdicts.includes('faster');
  if (open.length === 0)
    return helps
      ? 'What helps is left out: there is nothing to verify.'
      : 'No value that was tried helps this config here: there is nothing to verify.';
  const undecided = `${open.length} of ${counts(effects.length, 'value')} ${open.length === 1 ? 'is' : 'are'} undecided`;
  const conclusion = helps
    ? 'What is known to help is left out'
    : 'No value that was tried is known to help this config here';
  return `${conclusion}, so there is nothing to verify; ${undecided}: more --rounds or a quieter machine may decide.`;
}

function conflictOf(a: Candidate, b: Candidate): string | undefined {
  const [first, second] = [settingsOf(a.overlay), settingsOf(b.overlay)];
  return [...first].find(([name, value]) => second.has(name) && second.get(name) !== value)?.[0];
}

/**
 * Returns the settings of an overlay by name; its lines have the forms of server-configs/knobs/. Each parameter of a listen line is a
 * setting of its own.
 */
function settingsOf({ lines }: Overlay): Map<string, string> {
  const statements = lines.split(/;|\n/).filter((line) => line.trim() !== '');
  return new Map(
    statements.flatMap((line): [string, string][] => {
      const [, name = '', value = ''] = /^\s*(\S+?)(?:(?::?\s+|=)(.*))?$/.exec(line) ?? [];
      if (name !== 'listen') return [[name, value]];
      const [, ...parameters] = value.split(/\s+/);
      return parameters.map((word) => [`listen … ${word.split('=')[0]}`, word]);
    }),
  );
}

const verdictNames = {
  faster: 'helps',
  slower: 'harms',
  same: 'nothing here',
  inconclusive: 'undecided',
};

export function rankingTable(effects: readonly Effect[], { sameWithin }: Result): Table {
  const metric = effects[0]?.comparison.metric ?? 'rps';
  const column = (title: string, cell: (comparison: Comparison) => Cell) =>
    leftColumn(title, ({ comparison }: Effect) => cell(comparison));
  const effectText = (measured: BesideRatio | Comparison | null, { roundRatios }: Comparison) => {
    if (measured === null) return '';
    // The interval of few rounds may be of no width.
    const interval = roundRatios.length < minimumRounds ? undefined : measured.ci95;
    return effect(measured.ratio, interval);
  };
  const columns = [
    column(metric === 'rps' ? 'requests/s' : metricMark(metric).trim(), (comparison) =>
      hasRatio(comparison) ? effectText(comparison, comparison) : '',
    ),
  ];
  if (metric !== 'cpu') columns.push(column('CPU/request', (of) => effectText(of.cpu, of)));
  if (metric !== 'p99') columns.push(column('p99', (of) => effectText(of.latency.p99, of)));
  columns.push(column('here', (comparison) => verdictCell(comparison, sameWithin)));
  return tableOf(effects, [leftColumn('knob', ({ candidate }) => candidate.name), ...columns]);
}

/** Returns the reasons for missing verdicts that are too long for the table, each once, with the knobs. */
export function reasonLines(effects: readonly Effect[]): string[] {
  const long = effects.filter(
    ({ comparison: { verdict, why } }) => verdict === 'none' && !fitsCell(why),
  );
  return [...groupedBy(long, ({ comparison }) => comparison.why)].map(([why, same]) => {
    const names = same.map(({ candidate }) => candidate.name);
    return `No verdict on ${enumeration(names)}: ${why}.`;
  });
}

function verdictCell({ verdict, why }: Comparison, sameWithin: number): Cell {
  const reason = fitsCell(why) ? why : 'no verdict';
  const part = verdict === 'none' ? reason : verdictNames[verdict];
  let text = part;
  if (verdict === 'same') text += `, same within ${tolerance(sameWithin)}`;
  return { text, part, verdict };
}

/**
 * Returns the candidates that harm, of knobs for which the config already has the right value.
 * @param had the names of the config's values
 */
export function rightAsItIs(effects: readonly Effect[], had: ReadonlySet<string>): Effect[] {
  return effects.filter(
    ({ candidate: { knob }, comparison: { verdict } }) =>
      verdict === 'slower' && valueNames(knob).some((name) => had.has(name)),
  );
}

/** The product of the single effects: their joint effect if they were independent. */
export function product(effects: readonly Effect[], chosen: readonly Candidate[]): number {
  let ratio = 1;
  for (const { candidate, comparison } of effects)
    if (chosen.includes(candidate)) ratio *= comparison.ratio;
  return ratio;
}
