// What stands around the table in words. The same lines in the terminal and in Markdown.
import { limitOf, usableCores } from '../analysis/limit.ts';
import { comparable } from '../analysis/verdict.ts';
import { change, duration, percent, scaledTime, times, whole } from '../format.ts';
import { formatCpuList } from '../runner/cores.ts';
import type { Comparison, Integrity, Result, Share, VariantResult } from '../runner/result.ts';
import { findVariants } from '../scenario/catalogue.ts';
import type { Load } from '../scenario/load.ts';
import type { LoadProfile, Scenario } from '../scenario/model.ts';
import { comparesProtocols } from './columns.ts';
import { isOpenModel, protocolNames, streamsOf } from './loads.ts';
import { streamSweep, type Point, type StreamSweep } from './streams.ts';

/** What is known before the first round, for the two lines above the table. */
export interface Heading {
  scenario: string;
  /** As loadText. */
  load: string;
  bodyBytes: number;
  /** The model's names, in words when there are several: "http/1.1 and h2". */
  protocol: string;
  rounds: number;
  /** An estimate before the run, what it took after it. */
  seconds: number;
  estimated: boolean;
  /** Before a run that may take more rounds than `rounds`, when its verdicts need them: what it comes to at most. */
  atMost?: { rounds: number; seconds: number };
  server: string;
  k6: string;
  serverCpus: readonly number[];
  generatorCpus: readonly number[];
  kernel: string;
  cpuModel: string;
}

/** Two lines: what is measured, and on what. */
export function headingLines(heading: Heading): string[] {
  const { rounds, atMost } = heading;
  const many = `${rounds}${atMost === undefined ? '' : ` to ${atMost.rounds}`} ${rounds === 1 && atMost === undefined ? 'round' : 'rounds'}`;
  const took = `${heading.estimated ? 'about ' : ''}${duration(heading.seconds)}${atMost === undefined ? '' : ` to ${duration(atMost.seconds)}`}`;
  return [
    [heading.scenario, heading.load, `${whole(heading.bodyBytes)} B over ${protocolNames(heading.protocol)}`,
      `${many}, ${took}`].join(' · '),
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

/** What was found: one sentence per comparison, what a curve or a histogram shows instead, then who was the limit. */
export function findingLines(result: Result, scenario: Scenario): string[] {
  const sweep = streamSweep(result);
  return [
    ...(sweep === undefined ? comparisonLines(result, scenario) : [sweepSentence(sweep, result)]),
    ...result.shares.map((share) => shareSentence(share, result)),
    ...latencyLines(result.variants.filter((variant) => isOpenModel(variant) && variant.latencyMs !== null)),
    ...headerLines(result),
    ...limitLines(result),
  ];
}

function comparisonLines(result: Result, scenario: Scenario): string[] {
  return result.comparisons
    .filter((comparison) => comparable(variantOf(result, comparison.variant), comparison))
    .map((comparison) => comparisonSentence(comparison, isOnlyStep(comparison, result, scenario) ? scenario.knob : undefined));
}

function variantOf({ variants }: Result, name: string): VariantResult | undefined {
  return variants.find((variant) => variant.name === name);
}

/** Whether the comparison is the article's one step on one server, and all there is: then it can go by the knob's name. */
function isOnlyStep({ variant, baseline }: Comparison, result: Result, scenario: Scenario): boolean {
  const article = findVariants(scenario).map(({ name }) => name);
  const servers = new Set([variant, baseline].map((name) => variantOf(result, name)?.server?.name));
  return result.comparisons.length === 1 && servers.size === 1 && article.length === 2 && article[0] === baseline && article[1] === variant;
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
      return `No verdict on ${subject}${knob === undefined ? ` against ${baseline}` : ''}: ${why}${ratio === 0 ? '' : ` (measured ${change(ratio)})`}${article}`;
  }
}

/** e.g. "The curve alone makes 93 % of the difference between h2o and nginx: ×1.57 of ×1.62 (95 % interval 88 % to 99 %)." */
function shareSentence({ variant, of, baseline, words, share, ci95 }: Share, { comparisons }: Result): string {
  const ratioOf = (name: string): number | undefined => comparisons.find((one) => one.variant === name && one.baseline === baseline)?.ratio;
  const [part, whole] = [ratioOf(variant), ratioOf(of)];
  const ratios = part === undefined || whole === undefined ? '' : `: ${times(part)} of ${times(whole)}`;
  const interval = ci95 === null ? 'too few rounds, or too small a difference, for an interval' : `95 % interval ${percent(ci95[0])} to ${percent(ci95[1])}`;
  const size = share > 0 ? percent(share) : 'none';
  return `${words.charAt(0).toUpperCase()}${words.slice(1)} alone makes ${size} of the difference between ${of} and ${baseline}${ratios} (${interval}).`;
}

/** A curve in one sentence: its ends, and from where on it is above HTTP/1.1. */
function sweepSentence({ line, curve }: StreamSweep, { comparisons }: Result): string {
  const name = line.variant.name;
  const streams = ({ variant }: Point): string => `${streamsOf(variant)} ${streamsOf(variant) === 1 ? 'stream' : 'streams'}`;
  const comparisonOf = ({ variant }: Point): Comparison | undefined => (
    comparisons.find((one) => one.variant === variant.name && one.baseline === name)
  );
  const [most, fewest] = [curve[0] as Point, curve.at(-1) as Point];
  const publishedRatio = comparisonOf(most)?.publishedRatio ?? null;
  const firstNotFaster = curve.findIndex((point) => comparisonOf(point)?.verdict !== 'faster');
  const lastFaster = firstNotFaster === -1 ? fewest : curve[firstNotFaster - 1];
  const timesAsMany = (ratio: number): string => `${ratio.toFixed(2)} times`;
  return `With ${streams(most)} per connection HTTP/2 makes ${timesAsMany(most.ratio)} the requests/s of ${name}`
    + `${publishedRatio === null ? '' : ` (the article saw ${timesAsMany(publishedRatio)})`}, with ${streams(fewest)} ${timesAsMany(fewest.ratio)}`
    + `${lastFaster === undefined ? '' : `; it is faster from ${streams(lastFaster)} on`}.`;
}

/** Where the load sets requests/s, latencies are what the servers differ in. */
function latencyLines(variants: readonly VariantResult[]): string[] {
  const [first] = variants;
  if (first === undefined) return [];
  const each = variants.map(({ name, latencyMs }) => `${name} ${scaledTime(latencyMs?.p50 ?? 0)} and ${scaledTime(latencyMs?.p99 ?? 0)}`);
  return [`Latency at ${whole(first.load.rate ?? 0)} requests/s (p50 and p99): ${each.join(', ')}.`];
}

/** Header bytes of different numbers of requests do not stand beside each other without a word. */
function headerLines(result: Result): string[] {
  if (!comparesProtocols(result)) return [];
  const differing = result.variants.filter(({ traffic, published }) => (
    traffic !== null && published?.headerBytes !== undefined && published.requests !== undefined && published.requests !== traffic.requests
  ));
  const [first] = differing;
  if (first === undefined) return [];
  return [`Header bytes here are those of ${whole(first.traffic?.requests ?? 0)} requests, the published ones of ${whole(first.published?.requests ?? 0)}.`];
}

function limitLines(result: Result): string[] {
  const measured = result.variants.filter((variant) => limitOf(variant) !== null);
  const [first] = measured;
  if (first === undefined) return [];
  const { serverCpus, generatorCpus } = result.environment;
  const coresOf = (variant: VariantResult): { server: number; generator: number } => (
    usableCores(variant, { server: serverCpus.length, generator: generatorCpus.length })
  );
  const servers = [...new Set(measured.map(({ server }) => server?.name))];
  const serverShares = servers.map((name) => {
    const variants = measured.filter(({ server }) => server?.name === name);
    return `${name} at ${range(variants.map(({ serverShare }) => serverShare as number))} of its ${coreWord(coresOf(variants[0] as VariantResult).server)}`;
  });
  const generatorShare = `the generator at ${range(measured.map((variant) => variant.generatorShare as number))} of its ${coreWord(coresOf(first).generator)}`;
  const shares = [...serverShares, generatorShare].join(', ');
  const limits = measured.map(limitOf);
  const serverBound = limits.every((one) => one === 'server' || one === 'both');
  const generatorBound = limits.every((one) => one === 'generator' || one === 'both');
  if (serverBound && generatorBound) return [`Both sides were at their limit: ${shares}.`];
  if (serverBound) return [`${servers.length === 1 ? `${servers[0]} was` : 'The servers were'} the limit: ${shares}.`];
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
    ...result.variants.flatMap(({ name, publishedOnly }) => (publishedOnly === undefined ? [] : [`${name} is published only: ${publishedOnly}`])),
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
