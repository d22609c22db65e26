// What stands around the table in words. The same lines in the terminal and in Markdown.
import { limitOf, usableCores } from '../analysis/limit.ts';
import { formatCpuList } from '../runner/cores.ts';
import type { Comparison, Integrity, Result } from '../runner/result.ts';
import { findVariants } from '../scenario/catalogue.ts';
import type { Load } from '../scenario/load.ts';
import type { LoadProfile, Scenario } from '../scenario/model.ts';
import { change, duration, percent, whole } from './format.ts';

/** What is known before the first round, for the two lines above the table. */
export interface Heading {
  scenario: string;
  /** As loadText. */
  load: string;
  bodyBytes: number;
  protocol: string;
  rounds: number;
  /** An estimate before the run, what it took after it. */
  seconds: number;
  estimated: boolean;
  server: string;
  k6: string;
  serverCpus: readonly number[];
  generatorCpus: readonly number[];
  kernel: string;
  cpuModel: string;
}

/** Two lines: what is measured, and on what. */
export function headingLines(heading: Heading): string[] {
  const { rounds } = heading;
  const took = `${heading.estimated ? 'about ' : ''}${duration(heading.seconds)}`;
  return [
    [heading.scenario, heading.load, `${whole(heading.bodyBytes)} B over ${heading.protocol.toUpperCase()}`,
      `${rounds} ${rounds === 1 ? 'round' : 'rounds'}, ${took}`].join(' · '),
    [`${heading.server} on ${cores(heading.serverCpus)}, ${heading.k6} on ${cores(heading.generatorCpus)}`, heading.kernel, heading.cpuModel].join(' · '),
  ];
}

/** The article's command line, and what of it is different here. */
export function loadText(profile: LoadProfile, load: Load): string {
  const here = [
    ...(load.threads === profile.threads ? [] : [`${load.threads} ${load.threads === 1 ? 'thread' : 'threads'}`]),
    ...(load.durationSeconds === profile.durationSeconds ? [] : [`${load.durationSeconds} s`]),
    ...(load.requests === undefined || load.requests === profile.requests ? [] : [`${whole(load.requests)} requests`]),
  ];
  return here.length === 0 ? load.command : `${load.command} (here ${here.join(', ')})`;
}

/** One sentence per comparison, then who was the limit. */
export function findingLines(result: Result, scenario: Scenario): string[] {
  return [
    ...result.comparisons.map((comparison) => comparisonSentence(comparison, isOnlyStep(comparison, result, scenario) ? scenario.knob : undefined)),
    ...limitSentence(result),
  ];
}

/** Whether the comparison is the article's one step, and all there is: then it can go by the knob's name. */
function isOnlyStep({ variant, baseline }: Comparison, result: Result, scenario: Scenario): boolean {
  const article = findVariants(scenario).map(({ name }) => name);
  return result.comparisons.length === 1 && article.length === 2 && article[0] === baseline && article[1] === variant;
}

function comparisonSentence(comparison: Comparison, knob: string | undefined): string {
  const { variant, baseline, ratio, ci95, verdict, why, publishedRatio } = comparison;
  const subject = knob ?? variant;
  const versus = knob === undefined ? ` than ${baseline}` : '';
  const article = publishedRatio === null ? '.' : `; the article saw ${change(publishedRatio)}.`;
  const measured = `${change(ratio)} (95 % interval ${change(ci95[0])} to ${change(ci95[1])})`;
  switch (verdict) {
    case 'faster':
    case 'slower':
      return `${subject} is ${verdict}${versus} here: ${measured}${article}`;
    case 'same':
      return `${subject} is as fast as ${knob === undefined ? baseline : 'without'} here: ${measured}${article}`;
    case 'inconclusive':
      return `Whether ${subject} is faster${versus} cannot be told from this: ${measured}${article}`;
    case 'none':
      return `No verdict on ${subject}: ${why}${ratio === 0 ? '' : ` (measured ${change(ratio)})`}${article}`;
  }
}

function limitSentence(result: Result): string[] {
  const measured = result.variants.filter((variant) => limitOf(variant) !== null);
  const first = measured[0];
  if (first === undefined) return [];
  const { serverCpus, generatorCpus } = result.environment;
  const cores = usableCores(first, { server: serverCpus.length, generator: generatorCpus.length });
  const shares = `${first.server.name} at ${range(measured.map((variant) => variant.serverShare as number))} of its ${coreWord(cores.server)}, `
    + `the generator at ${range(measured.map((variant) => variant.generatorShare as number))} of its ${coreWord(cores.generator)}`;
  const limits = measured.map(limitOf);
  const serverBound = limits.every((one) => one === 'server' || one === 'both');
  const generatorBound = limits.every((one) => one === 'generator' || one === 'both');
  if (serverBound && generatorBound) return [`Both sides were at their limit: ${shares}.`];
  if (serverBound) return [`${first.server.name} was the limit: ${shares}.`];
  if (generatorBound) return [`The generator was the limit: ${shares}.`];
  return [`Use of the cores: ${shares}.`];
}

/** How much of what was sent is in the database. */
export function storedLine(integrity: Integrity | null): string {
  if (integrity === null) return 'Not stored in InfluxDB (--store none)';
  const again = integrity.backfilled > 0 ? `, ${whole(integrity.backfilled)} of them written again` : '';
  return `Stored ${whole(integrity.stored)} of ${whole(integrity.requests)} requests in InfluxDB${again}, ${whole(integrity.lost)} lost`;
}

/** What a reader has to know beside the figures: warnings, why a variant stands there, and the scenario's footnotes. */
export function noteLines(result: Result): string[] {
  const notes = new Map<string, string[]>();
  for (const { name, note } of result.variants) {
    if (note !== undefined) notes.set(note, [...(notes.get(note) ?? []), name]);
  }
  return [
    ...result.warnings.map((warning) => `Note: ${warning}`),
    ...[...notes].map(([note, names]) => `${names.join(', ')}: ${note}`),
    ...result.footnotes,
  ];
}

function range(shares: readonly number[]): string {
  const low = percent(Math.min(...shares));
  const high = percent(Math.max(...shares));
  return low === high ? low : `${low.replace(' %', '')} to ${high}`;
}

function coreWord(count: number): string {
  return count === 1 ? 'core' : `${count} cores`;
}

function cores(cpus: readonly number[]): string {
  return `${cpus.length === 1 ? 'core' : 'cores'} ${formatCpuList(cpus)}`;
}
