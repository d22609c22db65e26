// The sentences around the table, the same in the terminal, Markdown, report.html and Grafana.
import {
  measuredComparisons,
  streamsOf,
  streamSweep,
  type Point,
  type StreamSweep,
} from '../analysis/comparisons.ts';
import { rateCauseOf } from '../analysis/failures.ts';
import { limitOf, rateOf } from '../analysis/limit.ts';
import { wholeRounds } from '../analysis/phases.ts';
import { groupedBy } from '../analysis/statistics.ts';
import {
  amount,
  counts,
  enumeration,
  isTooWide,
  percent,
  percentRange,
  perSecond,
  scaledTime,
  whole,
} from '../format.ts';
import { sharesCores } from '../machine/cores.ts';
import type { Comparison, Result } from '../result/result.ts';
import { bytesLines, linkLines } from './bytes.ts';
import { rateCause, whyNothing } from './causes.ts';
import type { Contribution } from './contribution.ts';
import {
  comparisonSentences,
  roundsNeeded,
  type Sentence,
  tailLines,
} from './comparison-sentences.ts';
import { comparesProtocols, ladderSteps } from './run-tables.ts';
import { besideVerdicts, fitsCell } from './verdict-words.ts';
import { metricWords } from './metric-words.ts';
import { serverLines } from './server-lines.ts';
import { isAtRate } from '../scenario/load.ts';
import { pageLines } from './pages.ts';
import { allNames } from '../present.ts';

export function verdictLines(result: Result, contributions: readonly Contribution[]): string[] {
  return verdictSentences(result, contributions).map(({ text }) => text);
}

/** Returns a sentence per comparison. Steps of a ladder share a sentence, as points of a curve do. */
export function verdictSentences(
  result: Result,
  contributions: readonly Contribution[],
): Sentence[] {
  const sweep = streamSweep(result);
  const ofSweep = result.comparisons.filter(
    ({ baseline, verdict }) => baseline === sweep?.line.variant.name && verdict !== 'none',
  );
  const ladder = [...ladderSteps(result)].filter(
    ({ verdict, why }) => verdict !== 'none' || fitsCell(why),
  );
  const shared = new Set([...ladder, ...ofSweep]);
  const single = measuredComparisons(result).filter((comparison) => !shared.has(comparison));
  const finding = (text: string): Sentence => ({ text, kind: 'found' });
  const before = [
    ...generalLines(result, contributions),
    ...sweepLines(sweep),
    ...undecidedLines([...shared]),
  ];
  const after = [...bytesLines(result), ...noiseFloorLines(result)];
  return [...before.map(finding), ...comparisonSentences(single, result), ...after.map(finding)];
}

/** Returns lines on an early end, on rows without figures, and on what features say first. */
export function generalLines(result: Result, contributions: readonly Contribution[]): string[] {
  const added = contributions.flatMap(({ findings = [] }) => findings);
  return [...partialLines(result), ...nothingLines(result), ...added];
}

/** Returns lines on rates that were not reached, on the bottleneck, and on the scope of the verdicts. */
export function circumstanceLines(
  result: Result,
  contributions: readonly Contribution[],
): string[] {
  const lines = [
    missedRateLines,
    tailLines,
    lateLines,
    serverLines,
    headerLines,
    linkLines,
    limitLines,
    scopeLines,
    articleLines,
  ].flatMap((linesOf) => linesOf(result));
  return [...pageLines(result), ...addedLines(contributions), ...lines];
}

/** The sentences of the features. */
export function addedLines(contributions: readonly Contribution[]): string[] {
  return contributions.flatMap(({ sentences = [] }) => sentences);
}

function undecidedLines(comparisons: readonly Comparison[]): string[] {
  const open = comparisons.filter(({ verdict }) => verdict === 'inconclusive');
  if (open.length === 0) return [];
  const pairs = open.map(
    (pair) => `${pair.variant} against ${pair.baseline} (${roundsNeeded(pair)})`,
  );
  return [`Not decided: ${enumeration(pairs)}.`];
}

/** Describes the curve's ends that have a verdict, and says from how many streams on HTTP/2 is faster. */
function sweepLines(sweep: StreamSweep | undefined): string[] {
  const judged = (sweep?.curve ?? []).filter(({ comparison }) => comparison?.verdict !== 'none');
  const [most, fewest] = [judged[0], judged.at(-1)];
  if (sweep === undefined || most === undefined || fewest === undefined) return [];
  const streams = ({ variant }: Point) => counts(streamsOf(variant), 'stream');
  const published = most.comparison?.publishedRatio ?? null;
  const slower = sweep.curve.findIndex(({ comparison }) => comparison?.verdict !== 'faster');
  const lastFaster = slower === -1 ? fewest : sweep.curve[slower - 1];
  let line = `requests/s over HTTP/2 against ${sweep.line.variant.name}: ${amount(most.ratio)} with ${streams(most)} per connection`;
  if (published !== null) line += ` (the article saw ${amount(published)})`;
  if (fewest !== most) line += `, ${amount(fewest.ratio)} with ${streams(fewest)}`;
  if (lastFaster !== undefined) line += `; faster from ${streams(lastFaster)} on`;
  return [`${line}.`];
}

/** If the run ended early, says which rounds count, and that no verdict is final. */
export function partialLines({ state, endedBy, variants, comparisons, looks }: Result): string[] {
  if (state === 'complete') return [];
  const reason = endedBy === undefined ? '' : ` The reason: ${endedBy}.`;
  if (wholeRounds(variants) === 0)
    return [`Ended early, before a round was complete: nothing is compared.${reason}`];
  const rounds = `Ended early, after ${wholeRounds(variants)} of ${looks.length > 1 ? 'at most ' : ''}${counts(looks.at(-1) ?? 0, 'round')}.${reason}`;
  if (!hasVerdict(comparisons)) return [rounds];
  return [
    `${rounds} No verdict is final: verdicts are made after ${enumeration(looks, 'or')} rounds, and a run that ends because of what it shows is wrong more often.`,
  ];
}

function hasVerdict(comparisons: readonly Comparison[]): boolean {
  const judged = comparisons.flatMap((pair) => [pair, pair.cpu, ...besideVerdicts(pair)]);
  return judged.some(
    (ratio) => ratio !== null && ratio.verdict !== 'none' && ratio.verdict !== 'inconclusive',
  );
}

/** The smallest effect that a run of a config against itself can show. */
export function noiseFloorLines({ noiseFloor, comparisons: [first] }: Result): string[] {
  if (noiseFloor === null) return [];
  const { metric = 'rps' } = first ?? {};
  // The interval around equal sides that it stands for.
  if (isTooWide([1 / noiseFloor.ratio, noiseFloor.ratio]))
    return [`Noise floor: ${noiseFloor.rounds} rounds on this machine are too far apart to tell.`];
  return [
    `Noise floor: ${noiseFloor.rounds} rounds on this machine detect a difference ${metric === 'rps' ? '' : `in ${metricWords[metric].name} `}of ±${percent(noiseFloor.ratio - 1)} about half the time; smaller ones are usually missed.`,
  ];
}

/** The machine, its boot or the nodes for which the verdicts hold. */
export function scopeLines({ comparisons, environment }: Result): string[] {
  if (!hasVerdict(comparisons)) return [];
  const { serverHost, bootedAt, cluster } = environment;
  if (cluster !== undefined)
    return [
      `Verdicts hold for these nodes of the cluster ${cluster.name}, and what else ran there.`,
    ];
  const where =
    serverHost === undefined ? 'this machine in this boot' : `${serverHost.name} in its boot`;
  const since = new Date(serverHost?.bootedAt ?? bootedAt).toISOString();
  return [`Verdicts hold for ${where} (since ${since.slice(0, 16).replace('T', ' ')} UTC).`];
}

function articleLines({ article }: Result): string[] {
  if (article === undefined) return [];
  const { id, title, date } = article;
  return [`The article is ${id}, ${title} (${date}).`];
}

/** Empty on shared cores, where shares are no limit. */
export function limitLines({ variants, environment }: Result): string[] {
  const measured = variants.filter(({ generatorShare }) => generatorShare !== null);
  if (measured.length === 0 || sharesCores(environment)) return [];
  const ofServers = measured.filter(({ serverShare }) => serverShare !== null);
  const [server = '', ...otherServers] = new Set(ofServers.map((variant) => variant.server?.name));
  const isOneServer = otherServers.length === 0;
  const uses: string[] = [];
  if (isOneServer && server !== '')
    uses.push(`${server} at ${percentRange(ofServers.map(({ serverShare }) => serverShare ?? 0))}`);
  else
    for (const { name, serverShare } of ofServers)
      uses.push(`${name} at ${percent(serverShare ?? 0)}`);
  uses.push(
    `the generator at ${percentRange(measured.map(({ generatorShare }) => generatorShare ?? 0))}`,
  );
  const serversWere = isOneServer ? `${server} was` : 'The servers were';
  const claim = limitClaim(measured.map(limitOf), serversWere);
  return [`${claim}: ${uses.join(', ')} of its available CPU.`];
}

type Limit = ReturnType<typeof limitOf>;

/** @param serversWere the servers and their verb */
function limitClaim(limits: readonly Limit[], serversWere: string): string {
  const areAll = (...allowed: Limit[]) => limits.every((limit) => allowed.includes(limit));
  if (areAll('both')) return 'Both sides were at their limit';
  if (areAll('generator', 'both')) return 'The generator was the limit';
  if (areAll('server', 'both')) return `${serversWere} the limit`;
  return areAll('neither') ? 'Neither was the limit' : 'Use of the cores';
}

/** The rows that were run and have no figure, and why. */
export function nothingLines({ variants }: Result): string[] {
  return variants.flatMap((variant) => {
    const why = whyNothing(variant);
    return why === null ? [] : `No request of ${variant.name} succeeded: ${why}.`;
  });
}

function missedRateLines({ variants }: Result): string[] {
  return variants.flatMap((variant) => {
    const { asked = 0, made = 0, reached = true } = rateOf(variant) ?? {};
    if (reached || made === 0) return [];
    return `${variant.name} did not reach ${whole(asked)} requests/s: ${perSecond(made)} were made (${percent(made / asked)}); ${rateCause(rateCauseOf(variant))}. Its latency grows with the length of the run, and does not hold for that rate.`;
  });
}

function lateLines({ variants }: Result): string[] {
  const atRate = variants.filter(
    (variant) => isAtRate(variant.load) && rateOf(variant)?.reached !== false,
  );
  const late: string[] = [];
  for (const { name, phases } of atRate)
    for (const { phase, sendDelayMs } of phases) {
      if (sendDelayMs.p99 === 0) continue;
      const inPhase = phases.length === 1 ? '' : ` in phase ${phase}`;
      const times = `${scaledTime(sendDelayMs.p50)} and ${scaledTime(sendDelayMs.p99)}`;
      late.push(`${name}${inPhase} ${times}`);
    }
  if (late.length === 0) return [];
  return [`Requests left late by (p50 and p99), which latency includes: ${late.join(', ')}.`];
}

/** Says that published and measured header bytes are comparable only for the same number of requests. */
function headerLines(result: Result): string[] {
  if (!comparesProtocols(result)) return [];
  const other = result.variants.find(
    ({ traffic, published }) =>
      traffic !== null &&
      published?.headerBytes !== undefined &&
      (published.requests ?? traffic.requests) !== traffic.requests,
  );
  if (other === undefined) return [];
  return [
    `Header bytes here are those of ${whole(other.traffic?.requests ?? 0)} requests, the published ones of ${whole(other.published?.requests ?? 0)}.`,
  ];
}

/** Where the figures are besides the run's folder. */
export function storedLines(contributions: readonly Contribution[]): string[] {
  return contributions.flatMap(({ stored }) => stored?.line ?? []);
}

export function warningLines({ warnings }: Result): string[] {
  return warnings.map((warning) => `Note: ${warning}`);
}

/** The redirections of users' configs, and the notes. */
export function footnoteLines(result: Result): string[] {
  return [...redirectedLines(result), ...noteLines(result)];
}

export function redirectedLines({ variants }: Result): string[] {
  return redirectionLines(
    variants.map(({ name, server }) => ({ name, redirections: server?.redirections ?? [] })),
  );
}

/** The notes of variants, kernel settings, and the scenario's footnotes. */
export function noteLines(result: Result): string[] {
  const lines: string[] = [];
  const notes: Named[] = [];
  for (const { name, publishedOnly, note } of result.variants) {
    if (publishedOnly !== undefined) lines.push(`${name} is published only: ${publishedOnly}`);
    if (note !== undefined) notes.push({ name, text: note });
  }
  return [...lines, ...byText(notes), ...kernelSettingLines(result), ...result.footnotes];
}

function kernelSettingLines({ kernelSettings, variants }: Result): string[] {
  const inNamespaces = variants.filter(({ network }) => network !== null).length;
  const placed = kernelSettings.map(({ side, variants: names, name, value, problem }) => {
    const isAll = names.length > 1 && names.length === inNamespaces;
    const of = isAll ? 'every variant' : names.join(', ');
    const doubt = problem === undefined ? '' : ` (does not hold: ${problem})`;
    return {
      place: `${of}: kernel settings in the ${side}'s namespace`,
      setting: `${name}=${value}${doubt}`,
    };
  });
  return [...groupedBy(placed, ({ place }) => place)].map(
    ([place, same]) => `${place}: ${same.map(({ setting }) => setting).join(', ')}.`,
  );
}

/**
 * Returns the changes to users' configs. Equal lines are printed once, with all names. Port numbers are left out, because they differ
 * with each start.
 */
export function redirectionLines(
  configs: readonly { name: string; redirections: readonly string[] }[],
): string[] {
  const lines: Named[] = [];
  for (const { name, redirections } of configs)
    for (const line of redirections) {
      const withPort = /(→ |left out, )127\.0\.0\.1:\d+/g;
      lines.push({ name, text: line.replaceAll(withPort, '$1127.0.0.1, a free port') });
    }
  return byText(lines);
}

/** A text on a variant. */
interface Named {
  name: string;
  text: string;
}

/** Returns each text once, after all its names. */
export function byText(texts: readonly Named[]): string[] {
  return [...groupedBy(texts, ({ text }) => text)].map(
    ([text, same]) => `${allNames(same).join(', ')}: ${text}`,
  );
}
