// Pairs of servers whose ratio of requests/s is known, drawn by a seed, and the score of the verdicts on them.
import { createHash } from 'node:crypto';
import { total } from '../../analysis/statistics.ts';
import { counts, percent, whole } from '../../format.ts';
import { leftColumn, rightColumn, tableOf, type Table } from '../../report/table.ts';
import type { Comparison, Verdict } from '../../result/result.ts';
import { present } from '../../present.ts';
import { uniform } from '../../random.ts';
import { drawSides, drawnFrom, type KnownSide } from './kinds.ts';

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
export type DisturbanceName = (typeof disturbances)[number];

export interface KnownPair {
  /** Counted from 1. */
  number: number;
  sides: readonly [a: KnownSide, b: KnownSide];
  /** Requests/s of the load; absent for a continuous load. */
  rate?: number;
  /** b by a: requests/s, or p99 at a rate. */
  ratio: number;
  /** CPU time per request, b by a. */
  cpuRatio: number;
  /** `at`: seconds from the run's begin. */
  disturbance?: { what: DisturbanceName; at: number[] };
}

/** Seconds from a run's begin within which something happens to it. */
const [earliest, latest] = [4, 24];
const timesDisturbed = 3;

/** Draws pairs; a seed draws the same pairs on any machine. */
export function drawPairs(count: number, seed: number, isDisturbed: boolean): KnownPair[] {
  const random = uniform(seed);
  return Array.from({ length: count }, (_, index): KnownPair => {
    const effect = drawnFrom(random, effects);
    const gain = random() < 0.5 ? 1 + effect : 1 / (1 + effect);
    const { sides, rate } = drawSides(random, 1 + random() / 2, gain);
    const [a, b] = sides;
    const pair: KnownPair = {
      number: index + 1,
      // By its name a side's processes are found.
      sides: [
        { ...a, options: `${a.options} -name a` },
        { ...b, options: `${b.options} -name b` },
      ],
      ratio: rate === undefined ? a.ns / b.ns : b.ns / a.ns,
      cpuRatio: b.cpuNs / a.cpuNs,
      ...present({ rate }),
    };
    if (!isDisturbed) return pair;
    const at = Array.from(
      { length: timesDisturbed },
      () => earliest + (latest - earliest) * random(),
    );
    return {
      ...pair,
      disturbance: { what: drawnFrom(random, disturbances), at: at.sort((a, b) => a - b) },
    };
  });
}

/**
 * Returns the SHA-256 of a key and of what its truth depends on. It is printed before the first run, so that neither can be changed
 * later.
 */
export function sealOf(key: unknown): string {
  return createHash('sha256').update(JSON.stringify(key)).digest('hex');
}

/** What a run said of a pair; at a rate the ratio is that of p99. */
export interface PairRun extends Pick<Comparison, 'ratio' | 'ci95' | 'verdict'> {
  number: number;
  /** By CPU per request, where both servers were at their limit. */
  byCpu: Verdict;
  why: string;
  /** Whether the verdict was held against each side alone. */
  isChecked: boolean;
  seconds: number;
  /** Requests that InfluxDB lacks; absent if the run stored nothing. */
  lost?: number;
}

interface Scored {
  pair: KnownPair;
  pairRun: PairRun;
  isFalse: boolean;
  isFound: boolean;
  misses: boolean;
}

/**
 * Compares both verdicts with the truth.
 * @param sameWithin what bakeoff calls the same, as a share
 */
export function scoreOf(pair: KnownPair, pairRun: PairRun, sameWithin: number): Scored {
  const { ratio, rate, cpuRatio } = pair;
  const { verdict, byCpu, ci95 } = pairRun;
  const outcomes = [
    outcomeOf(verdict, rate === undefined ? ratio : 1 / ratio, sameWithin),
    outcomeOf(byCpu, 1 / cpuRatio, sameWithin),
  ];
  const isFalse = outcomes.includes('false');
  const [low, high] = ci95;
  return {
    pair,
    pairRun,
    isFalse,
    isFound: !isFalse && outcomes.includes('found'),
    // Without a verdict an interval claims nothing.
    misses: verdict !== 'none' && !(low <= ratio && ratio <= high),
  };
}

/** @param speed of b by that of a */
function outcomeOf(verdict: Verdict, speed: number, sameWithin: number): string {
  if (verdict === 'faster' || verdict === 'slower') {
    const isRight = verdict === 'faster' ? speed > 1 : speed < 1;
    return isRight ? 'found' : 'false';
  }
  // An effect of just the limit is on neither side of it.
  const isFar = Math.abs(Math.log(speed)) > Math.log(1 + sameWithin) + 1e-4;
  return verdict === 'same' && isFar ? 'false' : '';
}

const count = (list: readonly Scored[], is: (scored: Scored) => boolean): number =>
  total(list, (scored) => (is(scored) ? 1 : 0));

/** Runs of an effect's size, or of a kind. */
interface Group {
  name: string;
  scored: readonly Scored[];
}

/** @param namesOf a pair's groups */
function groupsBy(
  scored: readonly Scored[],
  namesOf: (pair: KnownPair) => readonly string[],
): Group[] {
  const names = new Set(scored.flatMap(({ pair }) => namesOf(pair)));
  return [...names].map((name) => ({
    name,
    scored: scored.filter(({ pair }) => namesOf(pair).includes(name)),
  }));
}

function effectName({ ratio }: KnownPair): string {
  // What the faster side is faster by, as a share.
  const effect = Math.max(ratio, 1 / ratio) - 1;
  if (effect > 1) return 'several times';
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
    number('interval misses', (all) => count(all, ({ misses }) => misses)),
  ]);
}

/** Returns the score by the size of the effect and by kind of server; for disturbed runs also by disturbance. */
export function scoreTables(scored: readonly Scored[]): Table[] {
  const tables = [
    tableOfGroups(
      'effect',
      groupsBy(scored, (pair) => [effectName(pair)]),
    ),
    tableOfGroups(
      'one of the sides',
      groupsBy(scored, ({ sides }) => sides.map(({ kind }) => kind)),
    ),
  ];
  if (scored.some(({ pair }) => pair.disturbance !== undefined))
    tables.push(
      tableOfGroups(
        'what happened',
        groupsBy(scored, ({ disturbance }) => [disturbance?.what ?? '']),
      ),
    );
  return tables;
}

/** Binomial chance that something happens at most so many times. @param chance below 1 */
function chanceOfAtMost(times: number, runs: number, chance: number): number {
  let [term, sum] = [(1 - chance) ** runs, 0];
  for (let k = 0; k <= times; k++) {
    sum += term;
    term *= ((runs - k) / (k + 1)) * (chance / (1 - chance));
  }
  return sum;
}

/** Returns the probability of an event that happens at most `times` in `runs` in a share `is` of all tests. */
function chanceWhere(times: number, runs: number, is: number): number {
  let [low, high] = [0, 1];
  for (let step = 0; step < 50; step++) {
    const middle = (low + high) / 2;
    if (chanceOfAtMost(times, runs, middle) > is) low = middle;
    else high = middle;
  }
  return low;
}

/** Returns the 95 % interval of the probability of something that happened `times` in `runs` (Clopper and Pearson 1934). */
function chanceInterval(times: number, runs: number): readonly [number, number] {
  // Powers of a small remainder would be 0.
  if (2 * times > runs) {
    const [low, high] = chanceInterval(runs - times, runs);
    return [1 - high, 1 - low];
  }
  const low = times === 0 ? 0 : chanceWhere(times - 1, runs, 0.975);
  return [low, chanceWhere(times, runs, 0.025)];
}

/** Returns chanceInterval in percent. */
export function chanceText(times: number, runs: number): string {
  const ends = chanceInterval(times, runs).map((share) => (100 * share).toFixed(1));
  return `[${ends.join(', ')}] %`;
}

/** With fewer runs, chance decides whether the shares are within their bounds. */
const fewestRuns = 40;
const mostFalse = 0.05;
const leastHolding = 0.94;

/** The score in a line, and whether it is within its bounds; of few runs it always is. */
export function scoreLine(scored: readonly Scored[]): { line: string; isGood: boolean } {
  const runs = scored.length;
  const wrong = count(scored, ({ isFalse }) => isFalse);
  const without = count(scored, ({ pairRun }) => pairRun.verdict === 'none');
  const claimed = runs - without;
  const holding = claimed - count(scored, ({ misses }) => misses);
  const isGood =
    runs < fewestRuns || (wrong <= mostFalse * runs && holding >= leastHolding * claimed);
  return {
    line: `${wrong} of ${runs} pairs have a false verdict, ${chanceText(wrong, runs)} (bound: ${percent(mostFalse)}); ${holding} of ${claimed} intervals hold, ${chanceText(holding, claimed)} (bound: ${percent(leastHolding)}); ${counts(without, 'pair')} without a verdict`,
    isGood,
  };
}
