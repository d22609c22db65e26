// Causes of a verdict, from what perf saw of its sides. docs/verdicts.md says how to read them.
import { checkOf } from '../../analysis/alone.ts';
import { measuredComparisons, variantOf } from '../../analysis/comparisons.ts';
import { perRequestOf, reconnectsOf } from '../../analysis/phases.ts';
import { total } from '../../analysis/statistics.ts';
import { effect, counts, enumeration, hundredths, percent, short, whole } from '../../format.ts';
import type { Result, VariantResult, Verdict } from '../../result/result.ts';
import { perfCounts, type WhySide } from '../../result/why.ts';
import {
  figure,
  leftColumn,
  rightColumn,
  tableOf,
  type Part,
  type Table,
} from '../../report/table.ts';
import { sharesCores } from '../../machine/cores.ts';
import { allNames } from '../../present.ts';

/** Folder of the sides' stacks inside a run's folder. */
export const stacksFolder = 'stacks';
export const stacksFile = (variant: string): string => `${stacksFolder}/${variant}.folded`;

/** A part differs if its difference is more than so many standard deviations: with 20 equal parts, 2 % of runs name one by chance. */
const surely = 3.3;
/** Share of a request's CPU time; a smaller difference explains nothing. */
const leastShare = 0.02;
/** Per request. How often a server waits for its next request depends on the load. */
const leastCalls = { usual: 0.05, waiting: 0.3, share: 0.1 };
const waitingCalls =
  /^(epoll_p?wait2?|p?poll|p?select6?|futex|clock_nanosleep|nanosleep|sched_yield|io_uring_enter|restart_syscall)$/;
/**
 * Context switches per request (about 2 µs each) that one side must have more, and the multiple of the other side's. Other programs on
 * the machine cause some.
 */
const leastSwitches = { more: 0.2, times: 2.5 };
/** A part may take up to this share more or less CPU time after a restart of the server, because its memory lies elsewhere. */
const restartShare = 0.04;
const most = { calls: 4, parts: 2, clauses: 3 };
/** A side whose cores are used less than this waits for something else. */
const isBusy = 0.8;

type Pair = ReturnType<typeof pairsOf>[number];

/** The comparisons of two sides that were looked at. */
export function pairsOf(result: Result) {
  const sideOf = (name: string) => result.why?.sides.find(({ variant }) => variant === name);
  return measuredComparisons(result).flatMap((comparison) => {
    const [variant, baseline] = [sideOf(comparison.variant), sideOf(comparison.baseline)];
    return variant && baseline ? { comparison, variant, baseline } : [];
  });
}

/** A sentence for each examined comparison whose sides differ, and the reasons for missing ones. */
export function whyLines(result: Result): string[] {
  const lines: string[] = [];
  for (const pair of pairsOf(result)) {
    const causes = causesOf(pair, result);
    if (causes.length === 0) continue;
    const { changed = [] } = pair.variant;
    const settings = changed.length === 0 ? '' : ` (${changed.join(', ')})`;
    lines.push(`Why${settings}: ${causes.slice(0, most.clauses).join('; ')}.`);
  }
  const causes = (result.why?.sides ?? []).length === 0 ? 'Causes' : 'Some causes';
  for (const reason of new Set(result.why?.missing))
    lines.push(`${causes} were not looked at: ${reason}.`);
  return lines;
}

/** CPU time of a request, in µs. */
export const cpuOf = ({ cpu }: WhySide): number => total(cpu, ({ us }) => us);

/** A difference of a part's CPU time, in µs per request. */
type PartChange = ReturnType<typeof partChanges>[number];

/** The largest first. */
function partChanges({ variant, baseline }: Pair) {
  const partOf = ({ cpu }: WhySide, name: string) =>
    cpu.find((part) => part.name === name) ?? { us: 0, sdUs: 0, kind: undefined };
  const changes = namesOf([...variant.cpu, ...baseline.cpu]).map((name) => {
    const [now, before] = [partOf(variant, name), partOf(baseline, name)];
    const sdUs = Math.hypot(now.sdUs, before.sdUs, restartShare * Math.min(now.us, before.us));
    const isCall = (now.kind ?? before.kind) === 'call';
    return { name, isCall, us: now.us - before.us, sdUs };
  });
  return changes.sort((a, b) => Math.abs(b.us) - Math.abs(a.us));
}

function sumOf(parts: readonly PartChange[]) {
  return {
    us: total(parts, ({ us }) => us),
    sdUs: Math.hypot(...parts.map(({ sdUs }) => sdUs)),
  };
}

/** With fewer requests per connection, most calls open the connections of the load: over TLS each takes a server a dozen. */
const fewestPerConnection = 10;

/** Returns whether what perf counted is of requests, and not of the begin of the load. */
function countsHold({ variant, countedRequests = Infinity }: WhySide, result: Result): boolean {
  const connections = variantOf(result, variant)?.load.connections ?? 0;
  return countedRequests >= fewestPerConnection * connections;
}

type CallChange = ReturnType<typeof callChanges>[number];

/** The largest difference first, calls that wait last. */
function callChanges({ variant, baseline }: Pair, result: Result) {
  const sides = [variant, baseline];
  if (!sides.every((side) => countsHold(side, result))) return [];
  // To open the load's connections takes a server a call or two of a kind for each.
  const openingOf = ({ variant: name, countedRequests = Infinity }: WhySide) =>
    (2 * (variantOf(result, name)?.load.connections ?? 0)) / countedRequests;
  const opening = Math.max(...sides.map(openingOf));
  const countOf = ({ calls }: WhySide, name: string): number =>
    calls.find((call) => call.name === name)?.perRequest ?? 0;
  const changes = [];
  for (const name of namesOf(sides.flatMap(({ calls }) => calls))) {
    const [now, before] = [countOf(variant, name), countOf(baseline, name)];
    const waits = waitingCalls.test(name);
    const size = Math.abs(now - before);
    const least = waits ? leastCalls.waiting : leastCalls.usual;
    if (size >= Math.max(least, opening, leastCalls.share * Math.max(now, before)))
      changes.push({ name, waits, now, before, size });
  }
  return changes.sort((a, b) => Number(a.waits) - Number(b.waits) || b.size - a.size);
}

/** 2.003 is "2", 0.497 is "0.5", 1204 is "1,200". */
function perRequest(count: number): string {
  const rounded = Number(count.toPrecision(2));
  return rounded >= 1000 ? whole(rounded) : String(rounded);
}

function callText({ name, now, before }: CallChange): string {
  if (now < leastCalls.usual)
    return before < 1.5 ? `no ${name}` : `no ${name} (${perRequest(before)})`;
  const text = `${perRequest(now)} ${name}`;
  return before < leastCalls.usual ? text : `${text} instead of ${perRequest(before)}`;
}

const isDecided = (of: { verdict: Verdict } | null): boolean =>
  of?.verdict === 'faster' || of?.verdict === 'slower';

/**
 * Returns whether CPU time per request surely differs. Its own verdict decides; at a rate it has none, and its interval decides. Without a
 * verdict on the sides, CPU time is in doubt as well.
 */
function costDiffers({ comparison }: Pair, result: Result): boolean {
  const { metric, verdict, cpu, obstacles = [] } = comparison;
  if (isDecided(metric === 'cpu' ? comparison : cpu)) return true;
  if (metric === 'cpu' || cpu === null || cpu.verdict === 'same' || verdict === 'none')
    return false;
  const isDoubtful =
    obstacles.some((obstacle) => obstacle.metric === 'cpu') ||
    checkOf(comparison, 'cpu', result)?.differs === true;
  const [low, high] = cpu.ci95;
  return !isDoubtful && (low > 1 || high < 1);
}

/** Returns why the sides of a pair differ, as clauses: the largest cause first. Empty if they do not differ for sure. */
function causesOf(pair: Pair, result: Result): string[] {
  const { comparison, variant, baseline } = pair;
  const ofCost = costDiffers(pair, result) && !hadTimeLeft(pair, result);
  if (!ofCost && !isDecided(comparison)) return [];
  const causes = factsText(variantOf(result, variant.variant), variantOf(result, baseline.variant));
  // Parts and calls vary from one look to the next: they explain nothing if CPU time per request does not differ.
  if (ofCost) causes.push(...costTexts(pair, result), ...switchesText(pair, result));
  causes.push(...waitText(pair, result));
  if (ofCost && causes.length === 0)
    causes.push(
      `nothing that perf sees differs between ${variant.variant} and ${baseline.variant}`,
    );
  return causes;
}

/** The system calls and the parts of CPU time that make a difference of CPU time per request: the largest first. */
function costTexts(pair: Pair, result: Result): string[] {
  const { variant: now, baseline: before } = pair;
  const parts = partChanges(pair);
  const wholeUs = Math.max(cpuOf(now), cpuOf(before));
  const all = callChanges(pair, result);
  const isClear = ({ us, sdUs }: Pick<PartChange, 'us' | 'sdUs'>): boolean =>
    Math.abs(us) > surely * sdUs && Math.abs(us) >= leastShare * wholeUs;
  const isOfCalls = ({ name, isCall }: PartChange): boolean => {
    if (isCall) return all.some((call) => call.name === name);
    return all.length > 0 && name.startsWith('entering');
  };
  const ofCalls = parts.filter(isOfCalls);
  // Others on the machine cause interrupts.
  const others = parts.filter(
    (part) => part.name !== 'interrupts' && !isOfCalls(part) && isClear(part),
  );
  // A server that is slower for another reason also waits for its next request at other times.
  const calls = all.every(({ waits }) => waits) && others.length > 0 ? [] : all;
  const causes: string[] = [];
  if (calls.length > 0) {
    const named = calls.slice(0, most.calls).map(callText);
    if (calls.length > most.calls) named.push('others');
    const changes = enumeration(named);
    const [part, whole] = [sumOf(ofCalls), sumOf(parts)];
    const [count, countBefore] = [perRequest(now.counts.calls), perRequest(before.counts.calls)];
    const makes =
      count === countBefore
        ? `as many system calls per request as ${before.variant} (${count})`
        : `${count} system calls per request, ${before.variant} ${countBefore}`;
    let cause = `${now.variant} makes ${makes}: ${changes}`;
    if (isClear(whole) && isClear(part) && part.us * whole.us >= 0) {
      const does = whole.us < 0 ? 'saves' : 'uses more';
      // Other parts may cost the other side more.
      const [partUs, allUs] = [Math.abs(part.us), Math.abs(whole.us)];
      const ofAll = partUs > allUs ? '' : ` of the ${short(allUs)} µs`;
      cause += `, which is ${short(partUs)} µs${ofAll} of CPU time that ${now.variant} ${does}`;
    }
    causes.push(cause);
  }
  if (others.length > 0) causes.push(othersText(others.slice(0, most.parts), pair));
  const sizeOf = (some: readonly PartChange[]) => total(some, ({ us }) => Math.abs(us));
  if (sizeOf(others) > sizeOf(ofCalls)) causes.reverse();
  return causes;
}

/** "b spends 3.0 µs less CPU time per request in libz and 1.0 µs more in own code than a". The other side may have none of a part. */
function othersText(parts: readonly PartChange[], { variant, baseline }: Pair): string {
  const texts = parts.map(({ name, us }, index) => {
    const [largest] = us > 0 ? variant.functions : baseline.functions;
    const isMost = name.startsWith('own') && largest && largest.us >= Math.abs(us) / 2;
    const where = isMost ? `${name} (most in ${largest.name})` : name;
    const what = index === 0 ? ' CPU time per request' : '';
    return `${short(Math.abs(us))} µs ${us < 0 ? 'less' : 'more'}${what} in ${where}`;
  });
  return `${variant.variant} spends ${enumeration(texts)} than ${baseline.variant}`;
}

function switchesText({ variant, baseline }: Pair, result: Result): string[] {
  if (![variant, baseline].every((side) => countsHold(side, result))) return [];
  const [now = 0, before = 0] = [variant, baseline].map(({ counts }) => counts.contextSwitches);
  const [few, many] = [Math.min(now, before), Math.max(now, before)];
  if (many - few < leastSwitches.more || many < leastSwitches.times * few) return [];
  return [
    `${variant.variant} makes ${perRequest(1000 * now)} context switches per 1,000 requests, ${baseline.variant} ${perRequest(1000 * before)}`,
  ];
}

function factsText(variant?: VariantResult, baseline?: VariantResult): string[] {
  if (variant === undefined || baseline === undefined) return [];
  const facts: string[] = [];
  const [now, before] = [reconnectsOf(variant), reconnectsOf(baseline)];
  if (Math.abs(now.share - before.share) >= Math.max(leastCalls.usual, now.kept, before.kept))
    facts.push(`${connectionsText(variant, now)}, ${connectionsText(baseline, before)}`);
  const [workers, workersBefore] = [variant.server?.workers ?? 0, baseline.server?.workers ?? 0];
  if (workers !== workersBefore && variant.server?.name === baseline.server?.name)
    facts.push(
      `${variant.name} has ${counts(workers, 'worker')}, ${baseline.name} ${workersBefore}`,
    );
  const bytesOf = ({ traffic }: VariantResult) =>
    traffic === null ? 0 : traffic.bytes.body / traffic.requests;
  const share = bytesOf(variant) / bytesOf(baseline);
  if (share > 0 && share < Infinity && Math.abs(1 - share) > leastShare * Math.max(share, 1)) {
    const times = share >= 2 ? `${hundredths(share)} times` : `${Math.round(100 * share)} % of`;
    facts.push(`${variant.name} answers with ${times} the bytes`);
  }
  return facts;
}

function connectionsText(variant: VariantResult, { share, kept }: Reconnects): string {
  if (share < leastCalls.usual) return `${variant.name} keeps its connections`;
  const often = share + kept > 0.95 ? 'each request' : `every ${perRequest(1 / share)} requests`;
  return `${variant.name} opens a connection for ${often}${handshakesText(variant)}`;
}

/** Returns ", with a full TLS handshake", or the share of the handshakes that resumed a session. */
function handshakesText(variant: VariantResult): string {
  const handshakes = total(perRequestOf(variant, 'handshakes'), (count) => count);
  if (handshakes === 0) return '';
  const resumed = total(perRequestOf(variant, 'resumed'), (count) => count) / handshakes;
  if (resumed === 0) return ', with a full TLS handshake';
  return `, with a TLS handshake (${percent(resumed)} of them resumed a session)`;
}

type Reconnects = ReturnType<typeof reconnectsOf>;

/** Returns whether both servers waited for something else than the CPU. Then CPU time does not decide requests/s. */
function hadTimeLeft({ comparison }: Pair, result: Result): boolean {
  const { metric, variant, baseline } = comparison;
  if (metric !== 'rps' || sharesCores(result.environment)) return false;
  return [variant, baseline].every((name) => (variantOf(result, name)?.serverShare ?? 1) < isBusy);
}

function waitText(pair: Pair, result: Result): string[] {
  const { metric, ratio, cpu, variant, baseline } = pair.comparison;
  if (!isDecided(pair.comparison)) return [];
  const mayBeCpu = cpu === null || Math.abs(Math.log(ratio)) < 3 * Math.abs(Math.log(cpu.ratio));
  const isExplained = metric === 'cpu' || (mayBeCpu && !hadTimeLeft(pair, result));
  const idle = [variant, baseline].filter(
    (name) => (variantOf(result, name)?.serverShare ?? 1) < isBusy,
  );
  if (isExplained || idle.length === 0) return [];
  return [
    `CPU time does not explain it, since ${enumeration(idle)} ${idle.length === 1 ? 'waits' : 'wait'} for something else`,
  ];
}

const usOf = ({ cpu }: WhySide, name: string): number =>
  total(cpu, (part) => (part.name === name ? part.us : 0));

const namesOf = (all: readonly { name: string }[]): string[] => [...new Set(allNames(all))];

/** Counts and CPU time of all sides. Empty if nothing was looked at. */
export function whyPart(result: Result): Part[] {
  const sides = result.why?.sides ?? [];
  if (sides.length === 0) return [];
  const added: string[] = [];
  for (const { variant, cpuUs } of sides) {
    const usual = variantOf(result, variant)?.serverCpuMicrosPerRequest?.median ?? 0;
    if (usual !== 0) added.push(`${variant} ${effect(cpuUs / usual)}`);
  }
  const below = [
    `The parts are perf's shares of the CPU time per request in the rounds. While perf looked on it was, against that: ${enumeration(added)}.`,
  ];
  const counted = sides.filter((side) => countsHold(side, result));
  for (const { variant, countedRequests = 0 } of sides.filter((side) => !counted.includes(side)))
    below.push(
      `${variant}: system calls are left out: only ${counts(countedRequests, 'request')} ended while perf counted, so most calls opened the connections of the load.`,
    );
  const tables = [countsTable(counted), timesTable(sides, result), functionsTable(sides)];
  return [{ title: 'Per request:', tables, below }];
}

function ofEach<Row>(sides: readonly WhySide[], cell: (row: Row, side: WhySide) => string) {
  return sides.map((side) => rightColumn(side.variant, (row: Row) => cell(row, side)));
}

interface Count {
  name: string;
  of: (side: WhySide) => number | null | undefined;
}

/** System calls, by their names, and what else perf counts, without what would be 0. */
function countsTable(sides: readonly WhySide[]): Table {
  const all: Count[] = [{ name: 'system calls', of: ({ counts }) => counts.calls }];
  for (const name of namesOf(sides.flatMap(({ calls }) => calls)))
    all.push({
      name: `  ${name}`,
      of: ({ calls }) => calls.find((call) => call.name === name)?.perRequest,
    });
  for (const key of perfCounts) {
    const name = key.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
    all.push({ name, of: ({ counts }) => counts[key] });
  }
  const shown = all.filter(({ of }) => sides.some((side) => (of(side) ?? 0) >= 0.005));
  return tableOf(shown, [
    leftColumn('count', ({ name }) => name),
    ...ofEach(sides, ({ of }: Count, side) => figure(of(side), hundredths)),
  ]);
}

/** CPU time of each part and of all, and how it differs in each pair. */
function timesTable(sides: readonly WhySide[], result: Result): Table {
  const all = 'all';
  const timeOf = (name: string, side: WhySide) => (name === all ? cpuOf(side) : usOf(side, name));
  const columns = ofEach(sides, (name: string, side) => figure(timeOf(name, side) || null, short));
  for (const pair of pairsOf(result)) {
    const changes = partChanges(pair);
    const changeText = (part: string) => {
      const { us, sdUs } = sumOf(changes.filter(({ name }) => [name, all].includes(part)));
      const size = hundredths(Math.abs(us));
      const sign = us < 0 ? '−' : '+';
      return `${Number(size) === 0 ? '' : sign}${size} ± ${hundredths(1.96 * sdUs)}`;
    };
    const title = `${pair.variant.variant} − ${pair.baseline.variant}`;
    columns.push(rightColumn(title, changeText));
  }
  const names = namesOf(sides.flatMap(({ cpu }) => cpu));
  return tableOf([...names, all], [leftColumn('CPU µs', (name) => name), ...columns]);
}

function functionsTable(sides: readonly WhySide[]): Table {
  const rows = sides.flatMap(({ variant, functions }) =>
    functions.map((largest) => ({ variant, ...largest })),
  );
  return tableOf(rows, [
    leftColumn('largest functions', ({ name }) => name),
    leftColumn('of', ({ variant }) => variant),
    rightColumn('CPU µs', ({ us }) => short(us)),
  ]);
}

export type CpuBar = ReturnType<typeof cpuBars>['bars'][number];

/** Parts that have a colour of their own; what is left is `rest`. */
const colours = 7;
const rest = 'the rest';

/** Returns a bar of CPU time per request for each side. Its parts are in the same order for all sides, the largest first. */
export function cpuBars(result: Result) {
  const sides = result.why?.sides ?? [];
  const largest = (name: string): number => Math.max(...sides.map((side) => usOf(side, name)));
  const bySize = namesOf(sides.flatMap(({ cpu }) => cpu)).sort((a, b) => largest(b) - largest(a));
  const names = bySize.slice(0, colours);
  const bars = sides.map((side) => {
    const parts = names.map((name) => ({ name, us: usOf(side, name) }));
    const us = cpuOf(side);
    parts.push({ name: rest, us: us - total(parts, (part) => part.us) });
    return { variant: side.variant, us, parts };
  });
  return { names: [...names, rest], bars };
}
