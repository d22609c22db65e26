// A scenario as a k6 script: loads servers that run already, in rounds of turns, and prints its verdicts above k6's summary.
// lib/cli/k6-script.ts bundles it with a ScenarioScript.
import type { Options } from 'k6/options';
import { Gauge } from 'k6/metrics';
import loadgen from 'k6/x/loadgen';
import { figuresOfRun } from '../analysis/figures.ts';
import { unsettled, type MeasuredVariant, type RunFacts } from '../analysis/verdict.ts';
import { zip } from '../present.ts';
import { inWords } from '../report/reasons.ts';
import { fitsCell, verdictCell } from '../report/verdict-words.ts';
import type { LoadResult } from '../result/load-result.ts';
import type { Comparison, Phase } from '../result/result.ts';
import { needsTls } from '../scenario/load.ts';
import type { Scenario } from '../scenario/model.ts';
import type { AlternateOptions, LoadPlan, SideOptions } from './load-plan.ts';
import { warmedUp } from './warm-ups.ts';

export interface ScenarioScript {
  name: string;
  title: string;
  sides: readonly ScriptSide[];
  /** Indexes of the sides that take turns with each other. */
  groups: readonly { sides: readonly number[]; slice?: string; warmUps?: LoadPlan['warmUps'] }[];
  facts: RunFacts;
  /** Intervals of this width, as a share, are narrow enough to end the rounds; absent: the default. */
  precision?: number;
  asked: Pick<Scenario, 'alsoCompare' | 'control'>;
  maxDurationSeconds: number;
}

export interface ScriptSide {
  /** The variable with the server's address, TARGET_A for the first side. */
  target: string;
  /** An address, to be shown. */
  example: string;
  /** Path and query of the page, for an address without a path. */
  path: string;
  /** Options for https addresses. */
  options: SideOptions;
  expected: Pick<Phase, 'expected'>;
  measured: Pick<MeasuredVariant, 'name' | 'against' | 'load' | 'series'>;
}

declare const scenarioScript: ScenarioScript;
declare const __ENV: Record<string, string | undefined>;

const { name, title, sides, groups, facts, precision, asked, maxDurationSeconds } = scenarioScript;

/** Ends k6 with a line: an Error would have a stack. */
function refuse(why: string): never {
  // oxlint-disable-next-line no-throw-literal
  throw why;
}

/** The address that a side loads. k6 stops with the error if it is missing. */
function urlOf({ target, path, options: { protocol }, measured }: ScriptSide): string {
  const given = __ENV[target];
  const [, origin, ownPath = ''] = /^(https?:\/\/[^/?#]+)([^#]*)$/.exec(given ?? '') ?? [];
  if (origin === undefined)
    refuse(
      `${target} is ${given === undefined ? 'missing' : `"${given}"`}: give the address of ${measured.name}: k6 run … ${sides.map((side) => `-e ${side.target}=${side.example}`).join(' ')}`,
    );
  if (protocol !== undefined && needsTls(protocol) && !origin.startsWith('https:'))
    refuse(`${target}: ${measured.name} is loaded by ${protocol}: give an address with https`);
  return origin + (ownPath === '' || ownPath === '/' ? path : ownPath);
}

const loads = sides.map((side): SideOptions => {
  const url = urlOf(side);
  const { tls, ...options } = side.options;
  if (url.startsWith('https:') && tls !== undefined) return { ...options, url, tls };
  return { ...options, url };
});

/** Gauges per comparison, with the tags variant and against. */
const gauges = {
  ratio: new Gauge('bakeoff_ratio'),
  low: new Gauge('bakeoff_ratio_low'),
  high: new Gauge('bakeoff_ratio_high'),
};

export const options: Options = {
  scenarios: {
    [name]: {
      executor: 'per-vu-iterations',
      vus: 1,
      iterations: 1,
      maxDuration: `${maxDurationSeconds}s`,
    },
  },
  thresholds: thresholds(),
};

/** Requests succeed, as a verdict needs, and each comparison has a ratio. */
function thresholds(): NonNullable<Options['thresholds']> {
  const all: Record<string, string[]> = {};
  for (const { measured, expected } of sides) {
    const { against, name: variant } = measured;
    if (!/^[45]/.test(expected.expected ?? ''))
      all[`http_req_failed{variant:${variant}}`] = ['rate<0.01'];
    if (against !== undefined)
      all[`bakeoff_ratio{variant:${variant},against:${against}}`] = ['value>0'];
  }
  return all;
}

export default function run(): void {
  console.log(`${title}: ${sides.length} servers, at most ${mostRounds()} rounds`);
  const rounds = sides.map((): Phase[] => []);
  let comparisons: readonly Comparison[] = [];
  for (let round = 1; round <= mostRounds(); round++) {
    for (const group of groups) loadGroup(group, round, rounds);
    if (!facts.looks.some((look) => look.rounds === round)) continue;
    comparisons = compared(rounds);
    if (unsettled(comparisons, precision).length === 0) break;
  }
  for (const comparison of comparisons) tell(comparison);
}

const mostRounds = () => Math.max(...facts.looks.map((look) => look.rounds));

function loadGroup(group: ScenarioScript['groups'][number], round: number, rounds: Phase[][]) {
  const { sides: indexes, warmUps = [], ...turns } = group;
  const call: AlternateOptions = {
    ...turns,
    sides: indexes.flatMap((index) => loads[index] ?? []).map((load) => withRound(load, round)),
    first: 1 + (round % indexes.length),
    seed: 1 + Math.floor(Math.random() * 2 ** 40),
  };
  // The servers go on running: after the first round they are warm.
  if (round === 1) warmedUp(call, warmUps);
  for (const [index, result] of zip(indexes, loadgen.alternate(call)))
    rounds[index]?.push(phaseOf(result, sides[index]?.expected ?? {}));
}

function withRound({ warmupLimit, ...load }: SideOptions, round: number): SideOptions {
  const tagged = { ...load, tags: { ...load.tags, round: String(round) } };
  return round === 1 && warmupLimit !== undefined ? { ...tagged, warmupLimit } : tagged;
}

/** Nothing is known of the CPU time of a server at an address, or of other programs. */
function phaseOf(loaded: LoadResult, expected: ScriptSide['expected']): Phase {
  const { serverCpu: _, serverMemoryBytes: ___, wire: __, ...result } = loaded;
  return {
    ...result,
    ...expected,
    serverCpuSeconds: null,
    serverRssBytes: null,
    idleCpuShare: null,
    generatorCpuSeconds: result.cpuSeconds,
    noise: null,
    network: null,
  };
}

function compared(rounds: readonly Phase[][]): readonly Comparison[] {
  const measured = zip(sides, rounds).map(([side, phases], index): MeasuredVariant => {
    return {
      ...side.measured,
      server: {
        name: 'address',
        version: '',
        workers: 1,
        config: [],
        redirections: [],
        atAddress: true,
      },
      published: null,
      rounds: phases.map((phase, round) => ({ round: round + 1, phases: [phase] })),
      setup: JSON.stringify(loads[index]),
    };
  });
  const { comparisons } = figuresOfRun(facts, measured, asked);
  return comparisons.map((judgement) => inWords(judgement, facts.sameWithin));
}

function tell(comparison: Comparison): void {
  const { variant, baseline, ratio, ci95, roundRatios, verdict, why } = comparison;
  const { text } = verdictCell(comparison, { sameWithin: facts.sameWithin, state: 'complete' });
  const reason = verdict === 'none' && !fitsCell(why) ? `: ${why}` : '';
  console.log(`${variant} against ${baseline}, ${roundRatios.length} rounds: ${text}${reason}`);
  const tags = { variant, against: baseline };
  gauges.ratio.add(ratio, tags);
  gauges.low.add(ci95[0], tags);
  gauges.high.add(ci95[1], tags);
}
