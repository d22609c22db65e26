// Pairs of servers whose ratio of requests/s is known, drawn by a seed, and the score of the verdicts on them.
import { createHash } from 'node:crypto';
import { total } from '../../analysis/statistics.ts';
import { percent, whole } from '../../format.ts';
import { leftColumn, rightColumn, tableOf, type Table } from '../../report/table.ts';
import type { Comparison, Verdict } from '../../result/result.ts';
import { uniform } from '../../random.ts';

const kinds = [
  'computes',
  'waits',
  'drifts',
  'differs from start to start',
  'stalls',
  'warms up',
  'sends other bytes',
] as const;
type Kind = (typeof kinds)[number];

/** What b is faster by, as shares; 0 twice as often as the others. */
const effects = [0, 0, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2] as const;

export const disturbances = [
  'stops a',
  'stops a and b',
  'stops k6',
  'stops InfluxDB',
  "a busy loop on the servers' core",
  "a busy loop on the generator's core",
  'a lower priority of a',
  'drops caches',
] as const;
export type Disturbance = (typeof disturbances)[number];

export interface Pair {
  /** From 1. */
  number: number;
  kind: Kind;
  /** Flags of both servers, see server/main.go. */
  options: readonly [a: string, b: string];
  bodyBytes: readonly [a: number, b: number];
  connections: number;
  /** Requests/s, b by a. */
  ratio: number;
  /** `at`: seconds from the run's begin. */
  disturbance?: { what: Disturbance; at: number[] };
}

/** Seconds from a run's begin within which something happens to it. */
const [earliest, latest] = [4, 24];
const timesDisturbed = 3;

/** The pairs of a seed; the same for a seed on any machine. */
export function drawPairs(count: number, seed: number, isDisturbed: boolean): Pair[] {
  const random = uniform(seed);
  const oneOf = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)] as T;
  return Array.from({ length: count }, (_, index): Pair => {
    const kind = oneOf(kinds);
    const effect = oneOf(effects);
    const gain = random() < 0.5 ? 1 + effect : 1 / (1 + effect);
    const drawn = pairOf(kind, 0.5 + random(), gain);
    const [a, b] = drawn.options;
    const pair: Pair = {
      ...drawn,
      number: index + 1,
      // Equal commands would have no verdict.
      options: [`${a} -name a`, `${b} -name b`],
    };
    if (!isDisturbed) return pair;
    const at = Array.from(
      { length: timesDisturbed },
      () => earliest + (latest - earliest) * random(),
    );
    return { ...pair, disturbance: { what: oneOf(disturbances), at: at.sort((a, b) => a - b) } };
  });
}

const largeBody = 20_000;
const usualBody = 612;

/** @param scale of the times, 0.5 to 1.5 @param gain requests/s of b by those of a, which the times have in nanoseconds */
function pairOf(kind: Kind, scale: number, gain: number): Omit<Pair, 'number'> {
  const equal = [usualBody, usualBody] as const;
  // Both sides' times in whole nanoseconds, so that the ratio is exact.
  const times = (ms: number): readonly [number, number] => {
    const a = Math.round(1e6 * ms * scale);
    return [a, Math.round(a / gain)];
  };
  if (kind === 'waits') {
    const [a, b] = times(100);
    const flags = (ns: number): string => `-then ${ns}ns -cpu 100us`;
    return {
      kind,
      options: [flags(a), flags(b)],
      bodyBytes: equal,
      connections: 100,
      ratio: a / b,
    };
  }
  if (kind === 'stalls') {
    const [a, b] = times(0.1);
    // 1,000 times as long as a request, so that the ratio is that of the requests.
    const flags = (ns: number): string =>
      `-service ${ns}ns -cpu 30us -stall ${1000 * ns}ns -stall-after 5000`;
    return { kind, options: [flags(a), flags(b)], bodyBytes: equal, connections: 50, ratio: a / b };
  }
  const [a, b] = times(0.2);
  const more: Readonly<Partial<Record<Kind, string>>> = {
    drifts: ' -drift 0.2',
    'differs from start to start': ' -modes 0.03',
    'warms up': ' -slow-for 1s',
  };
  const flags = (ns: number): string => `-cpu ${ns}ns${more[kind] ?? ''}`;
  if (kind !== 'sends other bytes')
    return { kind, options: [flags(a), flags(b)], bodyBytes: equal, connections: 10, ratio: a / b };
  return {
    kind,
    options: [flags(a), `${flags(b)} -body ${largeBody}`],
    bodyBytes: [usualBody, largeBody],
    connections: 10,
    ratio: a / b,
  };
}

/** The SHA-256 of a key, and of what its truth rests on: printed before the first run, it holds both to what they were then. */
export function sealOf(key: unknown): string {
  return createHash('sha256').update(JSON.stringify(key)).digest('hex');
}

/** What a run said of a pair. */
export interface PairRun extends Pick<Comparison, 'ratio' | 'ci95' | 'verdict'> {
  number: number;
  /** By CPU per request, where both servers were at their limit. */
  byCpu: Verdict;
  why: string;
  seconds: number;
  /** Requests that InfluxDB lacks; absent if the run stored nothing. */
  lost?: number;
}

export interface Scored {
  pair: Pair;
  pairRun: PairRun;
  isFalse: boolean;
  isFound: boolean;
  holds: boolean;
}

/** Both verdicts against the truth. @param sameWithin what bakeoff calls the same, as a share */
export function scoreOf(pair: Pair, pairRun: PairRun, sameWithin: number): Scored {
  const { ratio } = pair;
  const right: Verdict = ratio > 1 ? 'faster' : 'slower';
  const verdicts = [pairRun.verdict, pairRun.byCpu];
  const isWrong = (verdict: Verdict): boolean => {
    if (verdict === 'faster' || verdict === 'slower') return ratio === 1 || verdict !== right;
    // An effect of just the limit is on neither side of it.
    return verdict === 'same' && Math.abs(Math.log(ratio)) > Math.log(1 + sameWithin) + 1e-4;
  };
  const isFalse = verdicts.some(isWrong);
  const [low, high] = pairRun.ci95;
  return {
    pair,
    pairRun,
    isFalse,
    isFound: ratio !== 1 && !isFalse && verdicts.includes(right),
    holds: low <= ratio && ratio <= high,
  };
}

const count = (list: readonly Scored[], is: (scored: Scored) => boolean): number =>
  total(list, (scored) => (is(scored) ? 1 : 0));

/** Runs of an effect's size, or of a kind. */
interface Group {
  name: string;
  scored: readonly Scored[];
}

function groupsBy(scored: readonly Scored[], nameOf: (pair: Pair) => string): Group[] {
  const names = new Set(scored.map(({ pair }) => nameOf(pair)));
  return [...names].map((name) => ({
    name,
    scored: scored.filter(({ pair }) => nameOf(pair) === name),
  }));
}

/** What the faster side is faster by, as a share. */
const sizeOf = ({ ratio }: Pair): number => Math.max(ratio, 1 / ratio) - 1;

function effectName(pair: Pair): string {
  const effect = sizeOf(pair);
  return effect === 0 ? 'equal' : `${percent(effect)} apart`;
}

function tableOfGroups(title: string, groups: readonly Group[]): Table {
  const number = (name: string, of: (scored: readonly Scored[]) => number) =>
    rightColumn<Group>(name, ({ scored }) => whole(of(scored)));
  return tableOf(groups, [
    leftColumn(title, ({ name }) => name),
    number('runs', (all) => all.length),
    number('found', (all) => count(all, ({ isFound }) => isFound)),
    number('the same', (all) => count(all, ({ pairRun }) => pairRun.verdict === 'same')),
    number('undecided', (all) => count(all, ({ pairRun }) => pairRun.verdict === 'inconclusive')),
    number('no verdict', (all) => count(all, ({ pairRun }) => pairRun.verdict === 'none')),
    number('false', (all) => count(all, ({ isFalse }) => isFalse)),
    number('interval holds', (all) => count(all, ({ holds }) => holds)),
  ]);
}

/** The score by the size of the effect and by kind; disturbed runs also by what happened to them. */
export function scoreTables(scored: readonly Scored[]): Table[] {
  const tables = [
    tableOfGroups('effect', groupsBy(scored, effectName)),
    tableOfGroups(
      'kind',
      groupsBy(scored, ({ kind }) => kind),
    ),
  ];
  if (scored.some(({ pair }) => pair.disturbance !== undefined))
    tables.push(
      tableOfGroups(
        'what happened',
        groupsBy(scored, ({ disturbance }) => disturbance?.what ?? ''),
      ),
    );
  return tables;
}

/** With fewer runs, chance decides whether the shares are within their bounds. */
const fewestRuns = 40;
const mostFalse = 0.05;
const leastHolding = 0.93;

/** The score in a line, and whether it is within its bounds; of few runs it always is. */
export function scoreLine(scored: readonly Scored[]): { line: string; isGood: boolean } {
  const runs = scored.length;
  const wrong = count(scored, ({ isFalse }) => isFalse);
  const holding = count(scored, ({ holds }) => holds);
  const isGood = runs < fewestRuns || (wrong <= mostFalse * runs && holding >= leastHolding * runs);
  return {
    line: `${wrong} of ${runs} verdicts are false (bound: ${percent(mostFalse)}); ${holding} of ${runs} intervals hold (bound: ${percent(leastHolding)})`,
    isGood,
  };
}
