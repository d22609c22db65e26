// What a verdict is made of, from the look of perf at its sides: sentences, tables and bars. docs/why.md says how to read them.
import { measuredComparisons, variantOf } from '../analysis/comparisons.ts';
import { perRequestOf } from '../analysis/phases.ts';
import { total } from '../analysis/statistics.ts';
import { effect, counts, enumeration, hundredths, short } from '../format.ts';
import {
  perfCounts,
  type Comparison,
  type Result,
  type VariantResult,
  type WhySide,
} from '../result/result.ts';
import { figure, leftColumn, rightColumn, tableOf, type Part } from './table.ts';

/** In a run's folder, of the sides' stacks. */
export const stacksFolder = 'stacks';
export const stacksFile = (variant: string): string => `${stacksFolder}/${variant}.folded`;

/** In standard deviations: of 20 equal parts, one is named in 2 % of runs. */
const surely = 3.3;
/** Of the CPU time of a request; less explains nothing. */
const leastShare = 0.02;
/** Per request. How often a server waits for its next request depends on the load. */
const leastCalls = { usual: 0.05, waiting: 0.3, share: 0.1 };
const waitingCalls =
  /^(epoll_p?wait2?|p?poll|p?select6?|futex|clock_nanosleep|nanosleep|sched_yield|io_uring_enter|restart_syscall)$/;
/** Per request (of about 2 µs each), and as a multiple: others on the machine cause some. */
const leastSwitches = { more: 0.2, times: 2.5 };
/** A server that is started again spends up to this share more or less on the same part: its memory lies elsewhere. */
const restartShare = 0.04;
/** What is named in a sentence. */
const most = { calls: 4, parts: 2, clauses: 3 };
/** A side whose cores are used less than this waits for something else. */
const isBusy = 0.8;

interface Pair {
  comparison: Comparison;
  variant: WhySide;
  baseline: WhySide;
}

/** The comparisons of two sides that were looked at. */
export function pairsOf(result: Result): Pair[] {
  const sideOf = (name: string) => result.why?.sides.find(({ variant }) => variant === name);
  return measuredComparisons(result).flatMap((comparison) => {
    const [variant, baseline] = [sideOf(comparison.variant), sideOf(comparison.baseline)];
    return variant === undefined || baseline === undefined
      ? []
      : [{ comparison, variant, baseline }];
  });
}

/** A sentence for each comparison that was looked at, and what could not be. */
export function whyLines(result: Result): string[] {
  const { why } = result;
  if (why === undefined) return [];
  return [
    ...pairsOf(result).map((pair) => `Why${changedText(pair)}: ${reasonOf(pair, result)}.`),
    ...[...new Set(why.missing)].map((line) => `Causes were not looked at: ${line}.`),
  ];
}

/** The settings that changed, if the causes are theirs alone. */
const changedText = ({ variant: { changed = [] } }: Pair): string =>
  changed.length === 0 ? '' : ` (${changed.join(', ')})`;

/** CPU time of a request, in µs. */
export const cpuOf = ({ cpu }: WhySide): number => total(cpu, ({ us }) => us);

/** A difference of a part's CPU time, in µs per request. */
interface PartChange {
  name: string;
  isCall: boolean;
  us: number;
  sdUs: number;
}

function partChanges({ variant, baseline }: Pair): PartChange[] {
  const keyOf = ({ kind, name }: WhySide['cpu'][number]): string => `${kind} ${name}`;
  const all = new Map([...variant.cpu, ...baseline.cpu].map((one) => [keyOf(one), one]));
  const partOf = (side: WhySide, key: string) =>
    side.cpu.find((one) => keyOf(one) === key) ?? { us: 0, sdUs: 0 };
  return [...all]
    .map(([key, { kind, name }]) => {
      const [now, before] = [partOf(variant, key), partOf(baseline, key)];
      const sdUs = Math.hypot(now.sdUs, before.sdUs, restartShare * Math.min(now.us, before.us));
      return { name, isCall: kind === 'call', us: now.us - before.us, sdUs };
    })
    .sort((a, b) => Math.abs(b.us) - Math.abs(a.us));
}

const isClear = ({ us, sdUs }: Pick<PartChange, 'us' | 'sdUs'>, wholeUs: number): boolean =>
  Math.abs(us) > surely * sdUs && Math.abs(us) >= leastShare * wholeUs;

interface CallChange {
  name: string;
  now: number;
  before: number;
}

/** System calls of which a side makes more per request: the largest difference first, those that wait last. */
function callChanges({ variant, baseline }: Pair, result: Result): CallChange[] {
  // To open the load's connections takes a server a call or two of a kind for each.
  const opening = Math.max(
    ...[variant, baseline].map(
      ({ variant: name, countedRequests = Infinity }) =>
        (2 * (variantOf(result, name)?.load.connections ?? 0)) / countedRequests,
    ),
  );
  const countOf = ({ calls }: WhySide, name: string): number =>
    calls.find((one) => one.name === name)?.perRequest ?? 0;
  const names = new Set([...variant.calls, ...baseline.calls].map(({ name }) => name));
  const weightOf = ({ name, now, before }: CallChange): number =>
    Math.abs(now - before) - (waitingCalls.test(name) ? Infinity : 0);
  return [...names]
    .map((name) => ({ name, now: countOf(variant, name), before: countOf(baseline, name) }))
    .filter((one) => {
      const least = waitingCalls.test(one.name) ? leastCalls.waiting : leastCalls.usual;
      return (
        Math.abs(one.now - one.before) >=
        Math.max(least, opening, leastCalls.share * Math.max(one.now, one.before))
      );
    })
    .sort((a, b) => (weightOf(b) > weightOf(a) ? 1 : -1));
}

/** 2.003 is "2", 0.497 is "0.5". */
const perRequest = (count: number): string => String(Number(count.toPrecision(2)));

function callText({ name, now, before }: CallChange): string {
  if (now < leastCalls.usual) return `no ${name}${before < 1.5 ? '' : ` (${perRequest(before)})`}`;
  return `${perRequest(now)} ${name}${before < leastCalls.usual ? '' : ` instead of ${perRequest(before)}`}`;
}

/** Why the sides of a pair differ, without a full stop: the largest cause first. */
function reasonOf(pair: Pair, result: Result): string {
  const { comparison, variant, baseline } = pair;
  const [one, other] = [comparison.variant, comparison.baseline];
  const all = callChanges(pair, result);
  const parts = partChanges(pair);
  const wholeUs = Math.max(cpuOf(variant), cpuOf(baseline));
  const differing = new Set(all.map(({ name }) => name));
  const isOfCalls = ({ name, isCall }: PartChange): boolean =>
    isCall ? differing.has(name) : differing.size > 0 && name.startsWith('entering');
  const ofCalls = parts.filter(isOfCalls);
  // Others on the machine cause interrupts.
  const others = parts.filter(
    (part) => part.name !== 'interrupts' && !isOfCalls(part) && isClear(part, wholeUs),
  );
  // A server that is slower for another reason waits for its next request at other times.
  const calls = all.every(({ name }) => waitingCalls.test(name)) && others.length > 0 ? [] : all;
  const said = [
    ...(calls.length === 0
      ? []
      : [
          `${one} makes ${perRequest(variant.counts.calls)} system calls per request, ${other} ${perRequest(baseline.counts.calls)}: ` +
            enumeration([
              ...calls.slice(0, most.calls).map(callText),
              ...(calls.length > most.calls ? ['others'] : []),
            ]) +
            savedText(ofCalls, parts, one, wholeUs),
        ]),
    ...(others.length === 0 ? [] : [othersText(others.slice(0, most.parts), pair)]),
  ];
  if (sizeOf(others) > sizeOf(ofCalls)) said.reverse();
  said.unshift(...factsText(variantOf(result, one), variantOf(result, other)));
  said.push(...switchesText(pair), ...waitText(pair, result));
  return said.length === 0
    ? `nothing that perf sees differs between ${one} and ${other}`
    : said.slice(0, most.clauses).join('; ');
}

const sizeOf = (parts: readonly PartChange[]): number => total(parts, ({ us }) => Math.abs(us));

/** How much of the difference in CPU time the calls are. */
function savedText(
  calls: readonly PartChange[],
  all: readonly PartChange[],
  name: string,
  wholeUs: number,
): string {
  const sum = (parts: readonly PartChange[]) => ({
    us: total(parts, ({ us }) => us),
    sdUs: Math.hypot(...parts.map(({ sdUs }) => sdUs)),
  });
  const [part, whole] = [sum(calls), sum(all)];
  if (!isClear(whole, wholeUs) || !isClear(part, wholeUs) || part.us * whole.us < 0) return '';
  const does = whole.us < 0 ? 'saves' : 'uses more';
  return `, which is ${short(Math.abs(part.us))} µs of the ${short(Math.abs(whole.us))} µs of CPU time that ${name} ${does}`;
}

function othersText(parts: readonly PartChange[], { comparison, variant, baseline }: Pair): string {
  const texts = parts.map(({ name, us }) => {
    const [largest] = us > 0 ? variant.functions : baseline.functions;
    const mostly =
      !name.startsWith('own') || largest === undefined || largest.us < Math.abs(us) / 2
        ? ''
        : ` (most in ${largest.name})`;
    return `${name}${mostly} ${name === 'page faults' ? 'take' : 'takes'} ${short(Math.abs(us))} µs ${us < 0 ? 'less' : 'more'}`;
  });
  return `${enumeration(texts)} CPU time per request than in ${comparison.baseline}`;
}

function switchesText({ comparison, variant, baseline }: Pair): string[] {
  const [now = 0, before = 0] = [variant, baseline].map(({ counts }) => counts.contextSwitches);
  const [few, many] = now < before ? [now, before] : [before, now];
  return many - few < leastSwitches.more || many < leastSwitches.times * few
    ? []
    : [
        `${comparison.variant} makes ${perRequest(1000 * now)} context switches per 1,000 requests, ${comparison.baseline} ${perRequest(1000 * before)}`,
      ];
}

/** What is known without perf. */
function factsText(
  variant: VariantResult | undefined,
  baseline: VariantResult | undefined,
): string[] {
  const both = [variant, baseline];
  const [nowBytes, bytesBefore] = both.map((one) =>
    one?.traffic ? one.traffic.bytes.body / one.traffic.requests : 0,
  ) as [number, number];
  const [workers = 0, workersBefore = 0] = both.map((one) => one?.server?.workers);
  const isSame = Math.abs(nowBytes - bytesBefore) <= leastShare * Math.max(nowBytes, bytesBefore);
  const share = nowBytes / bytesBefore;
  return [
    ...connectionsText(variant, baseline),
    ...(workers === workersBefore || variant?.server?.name !== baseline?.server?.name
      ? []
      : [`${variant?.name} has ${counts(workers, 'worker')}, ${baseline?.name} ${workersBefore}`]),
    ...(isSame || bytesBefore === 0 || nowBytes === 0
      ? []
      : [
          `${variant?.name} answers with ${share >= 2 ? `${hundredths(share)} times` : `${Math.round(100 * share)} % of`} the bytes`,
        ]),
  ];
}

/** A side that ends its connections after a few requests. */
function connectionsText(variant?: VariantResult, baseline?: VariantResult): string[] {
  if (!variant || !baseline) return [];
  const [now, before] = [reconnectsOf(variant), reconnectsOf(baseline)];
  const text = (one: VariantResult, share: number): string =>
    share < leastCalls.usual
      ? `${one.name} keeps its connections`
      : `${one.name} opens a connection for ${share > 0.95 ? 'each request' : `every ${perRequest(1 / share)} requests`}${perRequestOf(one, 'handshakes').some(Boolean) ? ', with a full TLS handshake' : ''}`;
  return Math.abs(now - before) < leastCalls.usual
    ? []
    : [`${text(variant, now)}, ${text(baseline, before)}`];
}

/** Connections per request, without those that its load keeps open. */
function reconnectsOf({ load: { connections = 0 }, rounds }: VariantResult): number {
  const each = rounds.flatMap(({ phases: [first] }) =>
    first?.perRequest?.connections === undefined
      ? []
      : first.perRequest.connections - connections / (first.requests + first.warmupRequests),
  );
  return total(each, (one) => one) / Math.max(1, each.length);
}

/** A side that waits answers later without more CPU time. */
function waitText({ comparison }: Pair, result: Result): string[] {
  const { metric, ratio, cpu, variant, baseline } = comparison;
  if (
    metric === 'cpu' ||
    cpu === null ||
    Math.abs(Math.log(ratio)) < 3 * Math.abs(Math.log(cpu.ratio))
  )
    return [];
  const idle = [variant, baseline].filter(
    (name) => (variantOf(result, name)?.serverShare ?? 1) < isBusy,
  );
  return idle.length === 0 || comparison.verdict === 'same' || comparison.verdict === 'inconclusive'
    ? []
    : [
        `CPU time does not explain it, since ${enumeration(idle)} ${idle.length === 1 ? 'waits' : 'wait'} for something else`,
      ];
}

/** The counts and the parts of CPU time of all sides, in tables. Empty if nothing was looked at. */
export function whyPart(result: Result): Part[] {
  const sides = result.why?.sides ?? [];
  if (sides.length === 0) return [];
  const pairs = pairsOf(result);
  const counted = [
    { name: 'system calls', of: ({ counts }: WhySide) => counts.calls },
    ...namesOf(sides.flatMap(({ calls }) => calls)).map((name) => ({
      name: `  ${name}`,
      of: ({ calls }: WhySide) => calls.find((one) => one.name === name)?.perRequest,
    })),
    ...perfCounts.map((key) => ({
      name: key.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`),
      of: ({ counts }: WhySide) => counts[key],
    })),
  ].filter(({ of }) => sides.some((side) => (of(side) ?? 0) >= 0.005));
  const parts = namesOf(sides.flatMap(({ cpu }) => cpu));
  const partOf = ({ cpu }: WhySide, name: string) => cpu.find((one) => one.name === name);
  const all = 'all';
  const cpuText = (side: WhySide, name: string): string =>
    name === all ? short(cpuOf(side)) : figure(partOf(side, name)?.us, short);
  const changeText = (pair: Pair, name: string): string => {
    const changes = partChanges(pair).filter((one) => name === all || one.name === name);
    const us = total(changes, (one) => one.us);
    const half = 1.96 * Math.hypot(...changes.map(({ sdUs }) => sdUs));
    return changes.length === 0
      ? ''
      : `${us < 0 ? '−' : '+'}${hundredths(Math.abs(us))} ± ${hundredths(half)}`;
  };
  return [
    {
      title: 'Per request, while perf looked on:',
      tables: [
        tableOf(counted, [
          leftColumn('count', ({ name }) => name),
          ...sides.map((side) =>
            rightColumn(side.variant, ({ of }: (typeof counted)[number]) =>
              figure(of(side), hundredths),
            ),
          ),
        ]),
        tableOf(
          [...parts, all],
          [
            leftColumn('CPU µs', (name) => name),
            ...sides.map((side) =>
              rightColumn(side.variant, (name: string) => cpuText(side, name)),
            ),
            ...pairs.map((pair) =>
              rightColumn(
                `${pair.comparison.variant} − ${pair.comparison.baseline}`,
                (name: string) => changeText(pair, name),
              ),
            ),
          ],
        ),
        tableOf(
          sides.flatMap(({ variant, functions }) => functions.map((one) => ({ variant, ...one }))),
          [
            leftColumn('largest functions', ({ name }) => name),
            leftColumn('of', ({ variant }) => variant),
            rightColumn('CPU µs', ({ us }) => short(us)),
          ],
        ),
      ],
      below: [overheadLine(result, sides)],
    },
  ];
}

const namesOf = (all: readonly { name: string }[]): string[] => [
  ...new Set(all.map(({ name }) => name)),
];

function overheadLine(result: Result, sides: readonly WhySide[]): string {
  const added = sides.flatMap((side) => {
    const usual = variantOf(result, side.variant)?.serverCpuMicrosPerRequest?.median ?? 0;
    return usual === 0 ? [] : `${side.variant} ${effect(side.cpuUs / usual)}`;
  });
  return `CPU time per request while looked at, against the rounds: ${enumeration(added)}.`;
}

/** A bar of CPU time per request: its parts in the order of all sides, the largest first. */
export interface CpuBar {
  variant: string;
  us: number;
  parts: { name: string; us: number }[];
}

/** Parts that have a colour of their own; what is left is `rest`. */
const colours = 7;
const rest = 'the rest';

/** A bar for each side. */
export function cpuBars(result: Result): { names: string[]; bars: CpuBar[] } {
  const sides = result.why?.sides ?? [];
  const all = namesOf(sides.flatMap(({ cpu }) => cpu));
  const usOf = ({ cpu }: WhySide, name: string): number =>
    total(
      cpu.filter((one) => one.name === name),
      ({ us }) => us,
    );
  const largest = (name: string): number => Math.max(...sides.map((side) => usOf(side, name)));
  const names = all.sort((a, b) => largest(b) - largest(a)).slice(0, colours);
  const bars = sides.map((side) => {
    const parts = names.map((name) => ({ name, us: usOf(side, name) }));
    const us = cpuOf(side);
    return {
      variant: side.variant,
      us,
      parts: [...parts, { name: rest, us: us - total(parts, (part) => part.us) }],
    };
  });
  return { names: [...names, rest], bars };
}
