// The parts of the proof that compare servers by single rounds or complete runs.
import { geometricMean, halfWidth } from '../../lib/analysis/statistics.ts';
import { UserError } from '../../lib/errors.ts';
import { effect, enumeration, percent } from '../../lib/format.ts';
import type { PlanOptions } from '../../lib/runner/make-plan.ts';
import { apart, orderOfRound, type Plan, type RunContext } from '../../lib/runner/plan.ts';
import { findScenario } from '../../lib/scenario/catalogue.ts';
import { defineScenario, nginx, vegeta } from '../../lib/scenario/index.ts';
import { turnsSeconds } from '../../lib/scenario/load.ts';
import type { Scenario, Within } from '../../lib/scenario/model.ts';
import { findGo, goEnvironment } from '../../lib/setup/k6.ts';
import { thisMachine } from '../../lib/setup/machine.ts';
import { lastLine, run } from '../../lib/process.ts';
import { load, page } from '../../scenarios/h2o-vs-nginx.ts';
import { wrk } from '../contenders.ts';
import { smallPage } from '../experiments.ts';
import {
  inContext,
  type Lab,
  noted,
  oneRound,
  ratioIn,
  runOf,
  runText,
  timedRound,
  wholeRun,
} from './lab.ts';
import { peerTurns } from './peer-turns.ts';
import type { LatencyRound, LoadsAfter, ProofData, Run, Seen } from './results.ts';
import { inTurnsByAlone, percentiles, ratioOf } from './statistics.ts';
import { mkdtemp } from 'node:fs/promises';
import { join } from 'node:path';

// A config against itself, many times: the rate of false verdicts, and the width of the intervals.

/** Runs the scenario that compares a config with itself, and adds the runs to the data. @param after called after each run */
export async function measureAgainstItself(
  lab: Lab,
  { runs }: { runs: Run[] },
  save: () => Promise<void>,
  options: Partial<PlanOptions> = {},
  after: (run: Run, scenario: Scenario) => Promise<void> = async () => {},
): Promise<void> {
  const scenario = await findScenario('aa');
  for (let number = 1; number <= lab.repeats; number++) {
    const run = await noted(lab, async () => runOf(await wholeRun(lab, scenario, options)));
    if (run === undefined) continue;
    runs.push(run);
    lab.say(`run ${number} of ${lab.repeats}: ${runText(run)}`);
    await noted(lab, () => after(run, scenario));
    await save();
  }
}

// Searches for the highest rate within a limit, with a config against itself: the rate of false verdicts, and how many loads at
// the resulting rate keep the limit.

/** Wide enough that a virtual machine's pauses alone do not exceed it. */
export const searchedWithin: Within = { metric: 'p99', ms: 10 };

/** Loads afterwards, as shares of the search's rate. */
const shares = [0.9, 0.95, 1, 1.05, 1.1];
const roundsAfter = 3;
/** Same length as a step of the search. */
export const loadSeconds = turnsSeconds.step;

export function measureSearch(
  lab: Lab,
  data: ProofData['search'],
  save: () => Promise<void>,
): Promise<void> {
  return measureAgainstItself(
    lab,
    data,
    save,
    { within: data.within, quick: true },
    async (run, scenario) => {
      const loads = await loadsAfter(lab, scenario, run, data.within);
      data.loads.push(...loads);
      lab.say(loads.map(({ share, kept, of }) => `at ${share}: ${kept} of ${of} kept`).join(' · '));
    },
  );
}

/** Loads both sides at each share of the search's rate, in a different order in each round. */
async function loadsAfter(
  lab: Lab,
  scenario: Scenario,
  { rps, startedAt }: Run,
  { metric, ms }: Within,
): Promise<LoadsAfter[]> {
  const searchedRate = geometricMean(rps);
  const loads = shares.map((share): LoadsAfter => ({ share, kept: 0, of: 0 }));
  for (let round = 1; round <= roundsAfter; round++) {
    for (const load of orderOfRound(loads, round, startedAt)) {
      await inContext(
        lab,
        scenario,
        { rates: [Math.round(load.share * searchedRate)], durationSeconds: loadSeconds },
        async (context) => {
          // The latency includes requests without a response: they count as waiting until the end.
          for (const latencyMs of (await oneRound(context, round)).latencyMs.values()) {
            load.kept += latencyMs[metric] <= ms ? 1 : 0;
            load.of++;
          }
        },
      );
    }
  }
  return loads;
}

// Alternating against sequential rounds of the same pair in the same minutes: the width of the interval over time.

/**
 * A sequential round loads one server after the other, each alone for 10 s. The articles measured this way, and so did this
 * project before it alternated.
 */
const sequentialSeconds = 10;

/** Each block is one sequential round, then alternating rounds of the same total length. */
export async function measureWidth(
  lab: Lab,
  data: ProofData['width'],
  save: () => Promise<void>,
): Promise<void> {
  const scenario = await findScenario('nginx-open-file-cache');
  await inContext(lab, scenario, {}, (alternating) =>
    inContext(lab, scenario, { durationSeconds: sequentialSeconds }, async (long) => {
      const alone = new Set(long.plan.variants.map(({ variant }) => variant.name));
      const sequential: RunContext = {
        ...long,
        plan: { ...long.plan, groups: apart(long.plan.groups, alone) },
      };
      for (let block = 1; block <= lab.repeats; block++) {
        const slow = await noted(lab, () => timedRound(sequential, data.sequential.length + 1));
        if (slow === undefined) continue;
        data.sequential.push(slow);
        let seconds = 0;
        while (seconds < slow.seconds) {
          const quick = await noted(lab, () =>
            timedRound(alternating, data.alternating.length + 1),
          );
          if (quick === undefined) continue;
          data.alternating.push(quick);
          seconds += quick.seconds;
        }
        await save();
        const width = (rounds: readonly { ratio: number }[]): string =>
          rounds.length < 2
            ? 'no interval yet'
            : `±${percent(halfWidth(ratioOf(rounds.map(({ ratio }) => ratio))))}`;
        lab.say(
          `block ${block} of ${lab.repeats}: sequential ${width(data.sequential)} after ${data.sequential.length} rounds, alternating ${width(data.alternating)} after ${data.alternating.length}`,
        );
      }
    }),
  );
}

// A real effect and no effect, by length of turn, and both as measured by wrk.

const sliceMilliseconds = [2, 5, 10, 20, 50, 100, 1000];

/** Long enough for several of the longest turns per side. */
const durationSeconds = 2;

/** wrk pairs per round of turns, in the same minutes. In 8 rounds that makes about as many pairs as a user would wait for. */
const wrkPairsPerRound = 6;

const workers = { workers: 'server-cores', articleWorkers: 16 } as const;
const [plain, again, cached] = ['plain', 'again', 'open-file-cache'] as const;
const scenario = defineScenario({
  name: 'slices',
  title: 'open_file_cache, and nothing, by the length of a turn',
  knob: 'open_file_cache',
  load,
  page,
  control: true,
  variants: [
    { name: plain, server: nginx(['base', 'workers'], workers) },
    { name: again, server: nginx(['base', 'workers'], workers) },
    { name: cached, server: nginx(['base', 'workers', 'open-file-cache'], workers) },
  ],
});

/** Each round measures all lengths, in a different order, and wrk. */
export async function measureSlices(
  lab: Lab,
  data: ProofData['slices'],
  save: () => Promise<void>,
): Promise<void> {
  for (const milliseconds of sliceMilliseconds)
    data.slices.push({ milliseconds, effect: [], control: [] });
  await inContext(lab, scenario, { durationSeconds }, async (context) => {
    let tried = 0;
    for (let round = 1; round <= lab.repeats; round++) {
      for (const seen of orderOfRound(data.slices, round, 'slices')) {
        tried++;
        const number = tried;
        const outcome = await noted(lab, () =>
          oneRound(inSlices(context, seen.milliseconds), number),
        );
        if (outcome === undefined) continue;
        add(seen, outcome.rps);
        lab.say(`round ${round} of ${lab.repeats}, ${seen.milliseconds} ms: ${lastOf(seen)}`);
        await save();
      }
      await noted(lab, async () => {
        for (const { rps } of await peerTurns(lab, scenario, wrk, wrkPairsPerRound, `wrk ${round}`))
          add(data.wrk, rps);
      });
      await save();
      lab.say(
        `round ${round} of ${lab.repeats}, wrk, ${data.wrk.effect.length} pairs: open_file_cache ${effect(ratioOf(data.wrk.effect).ratio)}`,
      );
    }
  });
}

function inSlices(context: RunContext, milliseconds: number): RunContext {
  const groups = context.plan.groups.map((group) => ({
    ...group,
    sliceSeconds: milliseconds / 1000,
  }));
  return { ...context, plan: { ...context.plan, groups } };
}

function add({ effect, control }: Seen, rps: ReadonlyMap<string, number>): void {
  effect.push(ratioIn(rps, cached, plain));
  control.push(ratioIn(rps, again, plain));
}

function lastOf({ effect: seen, control }: Seen): string {
  return `open_file_cache ${effect(seen.at(-1) as number)}, nothing ${effect(control.at(-1) as number)}`;
}

// Whether turns affect latency: a config against itself at a rate, in turns, and the same server loaded alone.

const server = nginx(['base'], { workers: 1 });
const ways = ['alone', 'inTurns'] as const;

export const latencyScenario = defineScenario({
  name: 'latency',
  title: 'latency in turns and alone',
  knob: 'nothing',
  load: vegeta('-http2=false -max-connections=100 -rate=1000 -duration=10s'),
  page: smallPage,
  control: true,
  variants: [
    { name: 'a', server },
    { name: 'again', server },
  ],
});

/** A plan with the first side only, so that there are no turns. */
export function aloneIn(plan: Plan): Plan {
  return {
    ...plan,
    groups: apart(plan.groups, new Set(plan.variants.map(({ variant }) => variant.name))).slice(
      0,
      1,
    ),
  };
}

/** Each round measures in turns and alone, one right after the other. */
export async function measureLatency(
  lab: Lab,
  data: ProofData['latency'],
  save: () => Promise<void>,
): Promise<void> {
  await inContext(lab, latencyScenario, {}, async (context) => {
    const contexts = { alone: { ...context, plan: aloneIn(context.plan) }, inTurns: context };
    let tried = 0;
    for (let round = 1; round <= lab.repeats; round++) {
      const seen = await noted(lab, async () => {
        const seen: LatencyRound = { alone: [], inTurns: [] };
        for (const way of orderOfRound(ways, round, latencyScenario.name)) {
          tried++;
          const { latencyMs } = await oneRound(contexts[way], tried);
          seen[way] = [...latencyMs.values()].map(({ p50, p99 }) => ({ p50, p99 }));
        }
        return seen;
      });
      if (seen === undefined) continue;
      data.rounds.push(seen);
      lab.say(
        `round ${round} of ${lab.repeats}, in turns by alone: ${enumeration(percentiles.map((name) => `${name} ${effect(inTurnsByAlone(seen, name))}`))}`,
      );
      await save();
    }
  });
}

// Comparisons while a compiler is at work on both sides' cores.

/** Alternates runs of a config against itself with runs of open_file_cache. */
export async function measureDisturbed(
  lab: Lab,
  data: ProofData['disturbed'],
  save: () => Promise<void>,
): Promise<void> {
  const scenarios = [
    ['control', await findScenario('aa')],
    ['effect', await findScenario('nginx-open-file-cache')],
  ] as const;
  const compiler = await startCompiler(lab, () => {
    data.builds++;
  });
  try {
    for (let number = 1; number <= lab.repeats; number++) {
      for (const [kind, scenario] of scenarios) {
        const measured = await noted(lab, async () => runOf(await wholeRun(lab, scenario)));
        compiler.throwIfFailed();
        if (measured === undefined) continue;
        data[kind].push(measured);
        lab.say(`${scenario.name}, run ${number} of ${lab.repeats}: ${runText(measured)}`);
        await save();
      }
    }
  } finally {
    await compiler.stop();
  }
}

interface Compiler {
  /** @throws UserError if the compiler has ended early, so that later measurements were undisturbed */
  throwIfFailed(): void;
  stop(): Promise<void>;
}

/**
 * Compiles the load engine and all dependencies from scratch, in a loop, on the cores of both sides. @throws UserError if Go is
 * missing
 */
async function startCompiler(
  { cores, scratch, signal: labEnds }: Lab,
  built: () => void,
): Promise<Compiler> {
  const machine = thisMachine();
  const go = await findGo(machine);
  const folder = await mkdtemp(join(scratch, 'compiler-'));
  const ended = new AbortController();
  const signal = AbortSignal.any([ended.signal, labEnds]);
  let failure: unknown;
  const compiling = (async () => {
    for (;;) {
      const { code, stderr } = await run({
        command: go.binary,
        args: [
          'build',
          '-a',
          '-trimpath',
          '-buildvcs=false',
          '-o',
          join(folder, 'built'),
          './cmd/k6',
        ],
        cwd: machine.k6Sources,
        env: { ...goEnvironment(machine.env), GOCACHE: join(folder, 'cache'), GOTMPDIR: folder },
        cpus: [...cores.serverCpus, ...cores.generatorCpus],
        signal,
      });
      if (code !== 0)
        throw new UserError(`the compiler that is to disturb has failed: ${lastLine(stderr)}`);
      built();
    }
  })().catch((error: unknown) => {
    if (!signal.aborted) failure = error;
  });
  return {
    throwIfFailed() {
      if (failure !== undefined) throw failure;
    },
    async stop() {
      ended.abort();
      await compiling;
    },
  };
}
