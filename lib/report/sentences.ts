// The sentences around the table, the same in the terminal, Markdown, report.html and Grafana.
import {
  hasRatio,
  measuredComparisons,
  variantOf,
  marksOf,
  notFinalMark,
  streamsOf,
  streamSweep,
  type Point,
  type StreamSweep,
} from '../analysis/comparisons.ts';
import { limitOf, limitText, rateCause, rateOf } from '../analysis/limit.ts';
import { isFailing, wholeRounds } from '../analysis/phases.ts';
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
  tolerance,
  whole,
} from '../format.ts';
import { sharesCores } from '../machine/cores.ts';
import type { Comparison, Integrity, Result, Search } from '../result/result.ts';
import { comparesProtocols, ladderSteps } from './run-tables.ts';
import { besideVerdicts, effectText } from './verdict-words.ts';
import { whyNothing } from '../analysis/warnings.ts';
import { metrics, verdictWord } from '../analysis/metrics.ts';
import { serverLines } from './server-lines.ts';
import { isAtRate } from '../scenario/load.ts';
import { pageLines } from './pages.ts';
import { tailLines } from './tails.ts';
import { whyLines } from './why.ts';

/** The verdicts, and the circumstances that they depend on. */
export function findingLines(result: Result): string[] {
  return [...verdictLines(result), ...circumstanceLines(result)];
}

export const verdictLines = (result: Result): string[] =>
  verdictSentences(result).map(({ text }) => text);

/** `kind` is the verdict with its marks; "found" for all other sentences. */
type Sentence = Record<'text' | 'kind', string>;

/** A sentence per comparison. Steps of a ladder share a sentence, as points of a curve do. */
export function verdictSentences(result: Result): Sentence[] {
  const sweep = streamSweep(result);
  const shared = new Set([
    ...ladderSteps(result),
    ...result.comparisons.filter(
      ({ baseline, verdict }) => baseline === sweep?.line.variant.name && verdict !== 'none',
    ),
  ]);
  const found = (text: string): Sentence => ({ text, kind: 'found' });
  return [
    ...[...generalLines(result), ...sweepLines(sweep), ...undecidedLines([...shared])].map(found),
    ...comparisonSentences(
      measuredComparisons(result).filter((one) => !shared.has(one)),
      result,
    ),
    ...[...bytesLines(result), ...noiseFloorLines(result)].map(found),
  ];
}

/** A sentence for each, and one for all that have no verdict for the same reason. */
function comparisonSentences(comparisons: readonly Comparison[], result: Result): Sentence[] {
  const groups = groupedBy(comparisons, (one) =>
    one.verdict === 'none' &&
    result.control !== true &&
    one.publishedRatio === null &&
    cpuSentence(one, result) === ''
      ? one.why
      : `${one.variant} ${one.baseline}`,
  );
  return [...groups.values()].map((same) => {
    const [first] = same as [Comparison];
    const kind = result.control === true ? 'found' : first.verdict + marksOf(first, result);
    if (same.length === 1)
      return { text: comparisonParts(first, knobOf(first, result), result).join(''), kind };
    const pairs = same.map(
      (one) => `${one.variant} against ${one.baseline}${measuredInBrackets(one, result)}`,
    );
    return { text: `No verdict on ${enumeration(pairs)}: ${first.why}.`, kind };
  });
}

/** What was measured without a verdict; '' if nothing was. */
function measuredInBrackets(comparison: Comparison, result: Result): string {
  const { variant, baseline } = comparison;
  // Quick failures would be shown as speed.
  const isMeasured =
    hasRatio(comparison) &&
    !result.variants.some((one) => [variant, baseline].includes(one.name) && isFailing(one));
  const others = besideText(comparison);
  const marks = others && others + notFinalMark(result);
  return isMeasured
    ? ` (measured ${effectText(comparison)}${marksOf(comparison, result)}${marks})`
    : marks;
}

/** Lines on an early end, on rows without figures, and on the result of a search. */
export function generalLines(result: Result): string[] {
  return [...partialLines(result), ...nothingLines(result), ...foundLines(result)];
}

/** Lines on rates that were not reached, on the bottleneck, and on the scope of the verdicts. */
export function circumstanceLines(result: Result): string[] {
  return [
    pageLines,
    whyLines,
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
}

/** Only for a single comparison between different configs of one server. */
function knobOf({ variant, baseline }: Comparison, result: Result): string | undefined {
  const [one, other] = [variant, baseline].map((name) => variantOf(result, name)?.server?.name);
  const isOnly = result.comparisons.length === 1 && one === other;
  return isOnly && result.control !== true ? result.knob : undefined;
}

/** The sentence on a comparison in two parts: the claim, and the effect with its interval. */
export function comparisonParts(
  comparison: Comparison,
  knob: string | undefined,
  result: Result,
): [claim: string, rest: string] {
  const { metric, variant, baseline, verdict, why, publishedRatio } = comparison;
  const subject = knob ?? variant;
  const against = (word: string) => (knob === undefined ? ` ${word} ${baseline}` : '');
  const article = publishedRatio === null ? '.' : `; the article saw ${amount(publishedRatio)}.`;
  const beside = besideText(comparison);
  const marks = marksOf(comparison, result);
  const isDifferent = verdict === 'faster' || verdict === 'slower';
  if (verdict === 'none') {
    const measured = measuredInBrackets(comparison, result);
    return [
      `No verdict on ${subject}${against('against')}: ${why}`,
      measured + article + cpuSentence(comparison, result),
    ];
  }
  if (result.control === true) {
    const change = `: ${measuredChange(comparison)}${marks}.`;
    return isDifferent
      ? [
          `${variant} is called ${verdictWord(metric, verdict)} than ${baseline}, although they are the same`,
          `${change} This happens by chance in about one of 20 runs; if it happens more often, something disturbs this machine.`,
        ]
      : [`${variant} and ${baseline} are the same, and not called different`, change];
  }
  const measured = `: ${measuredChange(comparison, 'uses')}${beside}${marks}`;
  if (verdict === 'inconclusive') {
    const open = `${measured}; ${roundsNeeded(comparison)}${article}`;
    const byCpu = metric === 'rps' ? (comparison.cpu?.verdict ?? 'none') : 'none';
    if (byCpu === 'faster' || byCpu === 'slower')
      return [
        `${subject} is ${byCpu}${against('than')} at its limit, by CPU per request`,
        `: ${cpuChange(comparison, result)}. Requests/s alone do not decide it${open}`,
      ];
    return [
      `Not decided whether ${subject} is ${verdictWord(metric, 'faster')}${against('than')}`,
      `${open}${cpuSentence(comparison, result)}`,
    ];
  }
  const same = `${metrics[metric].words.same} as ${knob === undefined ? baseline : 'without'} here, within ${tolerance(result.sameWithin)}`;
  const claim = isDifferent ? `${verdictWord(metric, verdict)}${against('than')} here` : same;
  return [`${subject} is ${claim}`, measured + article];
}

/** The other percentiles with a verdict: "; p50 +50 % (…), slower". */
function besideText(comparison: Comparison): string {
  return besideVerdicts(comparison)
    .map((one) => `; ${measuredChange(one)}, ${one.verdict}`)
    .join('');
}

/** "b uses 74 % of the CPU (95 % interval 73 % to 75 %)"; '' if it is not known. */
function cpuChange({ variant, cpu }: Comparison, result: Result): string {
  if (cpu === null) return '';
  return `${measuredChange({ ...cpu, metric: 'cpu' }, `${variant} uses`)}${notFinalMark(result)}`;
}

/** CPU per request, if it is decided and requests/s are not. */
function cpuSentence(comparison: Comparison, result: Result): string {
  const { metric, cpu } = comparison;
  if (metric !== 'rps' || cpu === null) return '';
  const change = `: ${cpuChange(comparison, result)}.`;
  if (cpu.verdict === 'faster' || cpu.verdict === 'slower')
    return ` Requests/s are not clear, but CPU per request is${change}`;
  return cpu.verdict === 'same'
    ? ` CPU per request is the same, within ${tolerance(result.sameWithin)}${change}`
    : '';
}

function roundsNeeded({ roundsNeeded: rounds }: Comparison): string {
  return rounds === null
    ? 'no reasonable number of rounds would decide'
    : `about ${whole(rounds)} rounds would probably decide`;
}

/** "+28 % (95 % interval +26 % to +30 %)". A share of the CPU follows `verb`. */
export function measuredChange(
  { metric, ratio, ci95: [low, high] }: Pick<Comparison, 'metric' | 'ratio' | 'ci95'>,
  verb = 'at',
): string {
  const isShare = metrics[metric].shareOf !== undefined;
  const end = (at: number) => amount(at, isShare, ratio);
  const ends = isTooWide([low, high])
    ? 'too wide to tell'
    : `${end(low).replace(/ times$/, '')} to ${end(high)}`;
  return `${isShare ? `${verb} ` : ''}${effectText({ metric, ratio })} (95 % interval ${ends})`;
}

function undecidedLines(comparisons: readonly Comparison[]): string[] {
  const open = comparisons
    .filter(({ verdict }) => verdict === 'inconclusive')
    .map((one) => `${one.variant} against ${one.baseline} (${roundsNeeded(one)})`);
  return open.length === 0 ? [] : [`Not decided: ${enumeration(open)}.`];
}

/** The curve's ends that have a verdict, and from how many streams on HTTP/2 is faster. */
function sweepLines(sweep: StreamSweep | undefined): string[] {
  const judged = (sweep?.curve ?? []).filter(({ comparison }) => comparison?.verdict !== 'none');
  const [most, fewest] = [judged[0], judged.at(-1)];
  if (sweep === undefined || most === undefined || fewest === undefined) return [];
  const streams = ({ variant }: Point) => counts(streamsOf(variant), 'stream');
  const published = most.comparison?.publishedRatio ?? null;
  const slower = sweep.curve.findIndex(({ comparison }) => comparison?.verdict !== 'faster');
  const lastFaster = slower === -1 ? fewest : sweep.curve[slower - 1];
  const parts = [
    `requests/s over HTTP/2 against ${sweep.line.variant.name}: ${amount(most.ratio)} with ${streams(most)} per connection`,
    published === null ? '' : ` (the article saw ${amount(published)})`,
    fewest === most ? '' : `, ${amount(fewest.ratio)} with ${streams(fewest)}`,
    lastFaster === undefined ? '' : `; faster from ${streams(lastFaster)} on`,
  ];
  return [`${parts.join('')}.`];
}

/** For a run that ended early, the rounds that count, and that no verdict is final. */
export function partialLines({ state, endedBy, variants, comparisons, looks }: Result): string[] {
  if (state === 'complete') return [];
  const reason = endedBy === undefined ? '' : ` The reason: ${endedBy}.`;
  if (wholeRounds(variants) === 0)
    return [`Ended early, before a round was complete: nothing is compared.${reason}`];
  const rounds = `Ended early: ${wholeRounds(variants)} of ${looks.length > 1 ? 'at most ' : ''}${looks.at(-1)} rounds are whole and count here.${reason}`;
  return [
    hasVerdict(comparisons)
      ? `${rounds} No verdict is final: verdicts are made after ${enumeration(looks, 'or')} rounds, and a run that ends because of what it shows is wrong more often.`
      : rounds,
  ];
}

function hasVerdict(comparisons: readonly Comparison[]): boolean {
  return comparisons
    .flatMap((one) => [one, one.cpu, ...besideVerdicts(one)])
    .some((one) => one !== null && one.verdict !== 'none' && one.verdict !== 'inconclusive');
}

/** The smallest effect that a run of a config against itself can show. */
export function noiseFloorLines({ noiseFloor, comparisons: [first] }: Result): string[] {
  if (noiseFloor === null) return [];
  const { metric = 'rps' } = first ?? {};
  // The interval around equal sides that it stands for.
  if (isTooWide([1 / noiseFloor.ratio, noiseFloor.ratio]))
    return [`Noise floor: ${noiseFloor.rounds} rounds on this machine are too far apart to tell.`];
  return [
    `Noise floor: ${noiseFloor.rounds} rounds on this machine detect a difference ${metric === 'rps' ? '' : `in ${metrics[metric].name} `}of ±${percent(noiseFloor.ratio - 1)} about half the time; smaller ones are usually missed.`,
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
  const [server = '', ...otherServers] = new Set(ofServers.map((one) => one.server?.name));
  const uses = [
    ...(server !== '' && otherServers.length === 0
      ? [`${server} at ${percentRange(ofServers.map((one) => one.serverShare ?? 0))}`]
      : ofServers.map(({ name, serverShare }) => `${name} at ${percent(serverShare ?? 0)}`)),
    `the generator at ${percentRange(measured.map((one) => one.generatorShare ?? 0))}`,
  ];
  const found = measured.map(limitOf);
  const areAll = (...limits: typeof found) => found.every((one) => limits.includes(one));
  const claim = areAll('both')
    ? 'Both sides were at their limit'
    : areAll('generator', 'both')
      ? 'The generator was the limit'
      : areAll('server', 'both')
        ? `${otherServers.length === 0 ? `${server} was` : 'The servers were'} the limit`
        : areAll('neither')
          ? 'Neither was the limit'
          : 'Use of the cores';
  return [`${claim}: ${uses.join(', ')} of its available CPU.`];
}

/** The rates that a search found, and whether pauses blur the limit. */
export function foundLines({ search }: Pick<Result, 'search'>): string[] {
  if (search === undefined) return [];
  const limit = limitText(search.within);
  const lines = search.found.map(({ variant, rate, ci95, atLeast }) => {
    const ends =
      ci95 === null || isTooWide(ci95) ? 'too wide to tell' : ci95.map(whole).join(' to ');
    const interval = ci95 === null ? '' : ` (95 % interval ${ends})`;
    return `${variant} keeps ${limit} up to ${atLeast ? 'at least ' : ''}${whole(rate)} requests/s in half of its loads${interval}${atLeast ? ': beyond it the generator was at its limit' : ''}.`;
  });
  return [...lines, ...blurredLines(search)];
}

/** Steps below this share of the found rate are far below it. */
const farBelow = 0.6;
/** Fewer steps tell nothing; of more, this share may be broken by chance. */
const [tolerablyBroken, fewestSteps] = [0.2, 5];

function blurredLines({ within, found, steps }: Search): string[] {
  return found.flatMap(({ variant, rate }) => {
    const below = steps.filter((step) => step.variant === variant && step.rate < farBelow * rate);
    const broken = below.filter(
      ({ kept, latencyMs }) => !kept && latencyMs[within.metric] > within.ms,
    );
    return below.length < fewestSteps || broken.length <= tolerablyBroken * below.length
      ? []
      : [
          `${variant}: ${whole(broken.length)} of ${whole(below.length)} steps at less than ${percent(farBelow)} of that rate broke ${limitText(within)}, too: pauses of the machine or of the server are as long as the limit. Try a wider one.`,
        ];
  });
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
    return reached || made === 0
      ? []
      : `${variant.name} did not reach ${whole(asked)} requests/s: ${perSecond(made)} were made (${percent(made / asked)}); ${rateCause(variant)}. Its latency grows with the length of the run, and does not hold for that rate.`;
  });
}

function lateLines({ variants }: Result): string[] {
  const late = variants
    .filter((one) => isAtRate(one.load) && rateOf(one)?.reached !== false)
    .flatMap(({ name, phases }) =>
      phases.flatMap(({ phase, sendDelayMs: { p50, p99 } }) => {
        const inPhase = phases.length === 1 ? '' : ` in phase ${phase}`;
        return p99 > 0 ? `${name}${inPhase} ${scaledTime(p50)} and ${scaledTime(p99)}` : [];
      }),
    )
    .join(', ');
  return late === ''
    ? []
    : [`Requests left late by (p50 and p99), which latency includes: ${late}.`];
}

/** Published and measured header bytes only compare for the same number of requests. */
function headerLines(result: Result): string[] {
  const other = result.variants.find(
    ({ traffic, published }) =>
      traffic !== null &&
      published?.headerBytes !== undefined &&
      (published.requests ?? traffic.requests) !== traffic.requests,
  );
  return other === undefined || !comparesProtocols(result)
    ? []
    : [
        `Header bytes here are those of ${whole(other.traffic?.requests ?? 0)} requests, the published ones of ${whole(other.published?.requests ?? 0)}.`,
      ];
}

/** A usual link, in bytes per second. */
const gigabit = 125e6;
/** From here on a side's bytes are more than headers of another length. */
const moreBytes = 1.1;

interface Heavier {
  name: string;
  /** Bytes per response, headers included, as a multiple of the other side's. */
  times: number;
  /** What a link of 1 Gbit/s allows. */
  rps: number;
}

/** The sides that send more than what they are compared with, where that is free and would not be on a link of 1 Gbit/s. */
function heavierSides(result: Result): Heavier[] {
  if (!isOnLoopback(result)) return [];
  const heavier = measuredComparisons(result).flatMap(({ variant, baseline }): Heavier[] => {
    const sides = [variant, baseline].flatMap((name) => {
      const { rps = null, traffic = null } = variantOf(result, name) ?? {};
      if (rps === null || traffic === null || rps.median === 0) return [];
      return { name, measured: rps.median, bytes: traffic.receivedBytesPerSecond / rps.median };
    });
    const [least, most] = sides.sort((a, b) => a.bytes - b.bytes);
    if (least === undefined || most === undefined) return [];
    const [times, rps] = [most.bytes / least.bytes, gigabit / most.bytes];
    return times > moreBytes && rps < most.measured ? [{ name: most.name, times, rps }] : [];
  });
  return [...groupedBy(heavier, ({ name }) => name).values()].map(([first]) => first as Heavier);
}

/** Whether the bytes between servers and generator cost next to nothing. */
function isOnLoopback({ environment, variants }: Result): boolean {
  const { serverHost, generatorHosts, cluster } = environment;
  return (
    (serverHost ?? generatorHosts ?? cluster) === undefined &&
    variants.every(({ network, server }) => network === null && server?.atAddress !== true)
  );
}

/** Which sides send more bytes than loopback shows, and what a usual link would allow them. */
export function bytesLines(result: Result): string[] {
  const heavier = heavierSides(result);
  if (heavier.length === 0) return [];
  const sends = heavier.map(
    ({ name, times }) => `${name} sends ${Number(times.toPrecision(2))} times the bytes`,
  );
  const allowed = enumeration(heavier.map(({ rps }) => whole(rps)));
  return [`${enumeration(sends)}: free on loopback; on 1 Gbit/s at most ${allowed} requests/s.`];
}

/** What usual links, which are slower than loopback, would allow the sides of which nothing was said yet. */
function linkLines(result: Result): string[] {
  const said = new Set(heavierSides(result).map(({ name }) => name));
  const variants = result.variants.filter(({ name }) => !said.has(name));
  return [10, 1].flatMap((link, index, links) => {
    const beyond = variants.flatMap(({ name, rps, traffic }) => {
      const gbit = ((traffic?.receivedBytesPerSecond ?? 0) * 8) / 1e9;
      const isBeyond = gbit > link && gbit <= (links[index - 1] ?? Infinity);
      return rps !== null && isBeyond
        ? [`${perSecond((rps.median * link) / gbit)} requests/s of ${name}`]
        : [];
    });
    return beyond.length === 0
      ? []
      : [`A link of ${link} Gbit/s would allow at most ${enumeration(beyond)}.`];
  });
}

/** How many of the requests the database holds. */
export function storedLine(integrity: Integrity | null): string {
  if (integrity === null) return 'Not stored in InfluxDB (--store none)';
  const { requests, stored, backfilled, lost } = integrity;
  const again = backfilled > 0 ? `, ${whole(backfilled)} of them written again` : '';
  return `Stored ${whole(stored)} of ${whole(requests)} requests in InfluxDB${again}, ${whole(lost)} lost`;
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
  const { variants, footnotes } = result;
  return [
    ...variants.flatMap(({ name, publishedOnly: why }) =>
      why === undefined ? [] : `${name} is published only: ${why}`,
    ),
    ...byText(
      variants.flatMap(({ name, note }) => (note === undefined ? [] : { name, text: note })),
    ),
    ...kernelSettingLines(result),
    ...footnotes,
  ];
}

function kernelSettingLines({ kernelSettings, variants }: Result): string[] {
  const inNamespaces = variants.filter(({ network }) => network !== null).length;
  const settings = kernelSettings.map(({ side, variants: names, name, value, problem }) => {
    const all = names.length > 1 && names.length === inNamespaces;
    return {
      where: `${all ? 'every variant' : names.join(', ')}: kernel settings in the ${side}'s namespace`,
      text: `${name}=${value}${problem === undefined ? '' : ` (does not hold: ${problem})`}`,
    };
  });
  return [...groupedBy(settings, ({ where }) => where)].map(
    ([where, some]) => `${where}: ${some.map(({ text }) => text).join(', ')}.`,
  );
}

/** Changes to users' configs; equal lines once, with all names. The free ports differ with each start. */
export function redirectionLines(
  configs: readonly { name: string; redirections: readonly string[] }[],
): string[] {
  return byText(
    configs.flatMap(({ name, redirections }) =>
      redirections.map((line) => ({
        name,
        text: line.replaceAll(/(→ |left out, )127\.0\.0\.1:\d+/g, '$1127.0.0.1, a free port'),
      })),
    ),
  );
}

/** Each text once, after all its names. */
export function byText(texts: readonly { name: string; text: string }[]): string[] {
  return [...groupedBy(texts, ({ text }) => text)].map(
    ([text, same]) => `${same.map(({ name }) => name).join(', ')}: ${text}`,
  );
}
