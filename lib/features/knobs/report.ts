// The output on knobs: before the looks, after each, and as JSON.
import { groupedBy } from '../../analysis/statistics.ts';
import { effect, enumeration } from '../../format.ts';
import type { RunOptions } from '../../cli/run-options.ts';
import { terminalOf } from '../../cli/run-output.ts';
import { measuredChange } from '../../report/comparison-sentences.ts';
import {
  addedLines,
  limitLines,
  partialLines,
  redirectionLines,
  warningLines,
} from '../../report/sentences.ts';
import { terminalTable, wrapLines } from '../../report/table.ts';
import type { Comparison, Result } from '../../result/result.ts';
import type { OverlayTarget } from '../../servers/own/own-config.ts';
import { isAlreadySo, type Candidate } from './catalogue.ts';
import { gain, product, rankingTable, reasonLines, rightAsItIs, type Effect } from './ranking.ts';
import type { Trial } from './trial.ts';
import { allNames } from '../../present.ts';

/** The knobs that help, their lines in the config, and the result of all of them together, which is absent if no knob helps. */
export interface Verified {
  chosen: readonly Candidate[];
  changes: ReturnType<OverlayTarget['overlay']>['changes'];
  result?: Result;
}

/** Lines on redirections, and on knobs that are left out, by their reasons. */
export function trialLines({ asItIs, redirections, leftOut }: Trial): string[] {
  const lines = redirectionLines([{ name: asItIs.given, redirections }]);
  for (const [why, same] of groupedBy(leftOut, (candidate) => candidate.why))
    lines.push(`left out, ${why}: ${allNames(same).join(', ')}`);
  return lines;
}

/** Warnings of a run, and what limited it. */
export const aroundLines = (result: Result): string[] =>
  [partialLines, warningLines, limitLines].flatMap((lines) => lines(result));

/** The ranking of a look as a table, and what there is to say of it. */
export function lookLines(
  result: Result,
  effects: readonly Effect[],
  { leftOut }: Trial,
  options: RunOptions,
): string[] {
  const terminal = terminalOf(options);
  const added = addedLines(options.contributionsTo(result));
  const had = new Set(leftOut.flatMap(({ name, why }) => (isAlreadySo(why) ? [name] : [])));
  const right = rightAsItIs(effects, had).map(
    ({ candidate: { name, knob }, comparison }) =>
      `${knob.name} is right as it is: ${name} is ${measuredChange(comparison)}.`,
  );
  return [
    ...terminalTable(rankingTable(effects, result), terminal),
    '',
    ...wrapLines(
      [...reasonLines(effects), ...aroundLines(result), ...right, ...added],
      terminal.width,
    ),
  ];
}

export const candidateNames = (chosen: readonly Candidate[]): string =>
  enumeration(allNames(chosen));

/** The verdict on all that help together; none without a comparison. */
export function verifiedLines(
  { comparisons: [comparison] }: Result,
  chosen: readonly Candidate[],
  effects: readonly Effect[],
  given: string,
): string[] {
  if (comparison === undefined) return [];
  const { verdict, why } = comparison;
  const names = candidateNames(chosen);
  if (verdict === 'none') return [`${names}: not verified, ${why}.`];
  const expected =
    chosen.length < 2
      ? ''
      : ` Their single effects, multiplied, are ${effect(product(effects, chosen))}.`;
  const judgement = {
    faster: 'Verified',
    slower: 'They harm together',
    same: 'Not verified, the same',
    inconclusive: 'Not verified, undecided',
  }[verdict];
  return [
    `${judgement}: with ${names} it is ${measuredChange(comparison)} against ${given} as it is.${expected}`,
  ];
}

function figuresOf({ ratio, ci95, verdict, why, metric, cpu, latency, roundsNeeded }: Comparison) {
  return { metric, ratio, ci95, verdict, why, cpu, p99: latency.p99, roundsNeeded };
}

/** All knobs, and those that help together, for --json. @param runs their names */
export function knobsJson(
  config: string,
  runs: readonly string[],
  effects: readonly Effect[],
  leftOut: Trial['leftOut'],
  { chosen, changes, result }: Verified,
): object {
  const [comparison] = result?.comparisons ?? [];
  return {
    schema: 1,
    config,
    runs,
    knobs: effects.map(({ candidate: { name, knob, overlay }, comparison, closer }) => ({
      name,
      claim: knob.claim,
      source: knob.source,
      ...overlay,
      gain: gain(comparison),
      closer,
      ...figuresOf(comparison),
    })),
    leftOut,
    together:
      comparison === undefined
        ? null
        : { knobs: allNames(chosen), changes, ...figuresOf(comparison) },
  };
}
