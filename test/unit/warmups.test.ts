// The lengths of warm-ups, from round to round.
import { expect, test } from 'vitest';
import { findScenario } from '../../lib/cli/find-scenario.ts';
import { loadPlanFor } from '../../lib/runner/k6-plan.ts';
import type { Group, Plan, PlannedVariant, Stage } from '../../lib/runner/plan.ts';
import {
  goingOn,
  longerWarmup,
  warmCosts,
  warmAtOnce,
  withBoundedWarmups,
  withCoarseWarmup,
  withKnownWarmups,
  withRandomWarmup,
  withSharedWarmup,
} from '../../lib/runner/warmups.ts';
import { address } from '../../lib/scenario/index.ts';
import type { ConfiguredServer } from '../../lib/scenario/model.ts';
import { second } from '../fixtures/comparison.ts';
import { continuousEnd, phase } from '../fixtures/phase.ts';
import { hereAndThere, outcomeOf, planOf as anyPlan, scenarioOf } from '../fixtures/plan.ts';

const cached = await findScenario('nginx-open-file-cache');
const planOf = (): Plan => anyPlan(cached, {}, { variants: cached.variants.slice(0, 2) });

const loadPlanOf = (plan: Plan, group: Group) =>
  loadPlanFor(
    plan,
    group,
    3,
    [8080, 8081].map((port) => ({ url: `http://127.0.0.1:${port}/` })),
  );

test('a load alone, or of a server that pauses, has another warm-up in each round', () => {
  const [group] = planOf().groups as [Group];
  const [side] = group.sides as [PlannedVariant];
  const none = new Set<string>();
  const warmups = (alone: PlannedVariant) =>
    ['1', '2', '3'].map(
      (seed) => withRandomWarmup({ sides: [alone] }, none, seed).sides[0]?.load.warmupSeconds,
    );
  const { warmupSeconds, durationSeconds } = side.load;
  expect(durationSeconds).toBe(1);
  const [first, ...others] = warmups(side) as [number, number, number];
  for (const seconds of [first, ...others]) {
    expect(seconds).toBeGreaterThanOrEqual(warmupSeconds);
    expect(seconds).toBeLessThan(warmupSeconds + 1);
  }
  expect(others).not.toContain(first);
  const { warmupLimitSeconds: _, ...named } = side.load;
  expect(warmups({ ...side, load: named })).toEqual([warmupSeconds, warmupSeconds, warmupSeconds]);
  expect(withRandomWarmup(group, none, '1')).toEqual(group);
  const [pausing, other] = withRandomWarmup(group, new Set([side.variant.name]), '1').sides;
  expect(pausing?.load.warmupSeconds).toBeGreaterThan(warmupSeconds);
  expect(other).toBe(group.sides[1]);
});

test('where sides differ much, warm-ups end while servers still get a little faster', () => {
  const [group] = planOf().groups as [Group];
  const [name, other] = group.sides.map(({ variant }) => variant.name) as [string, string];
  const gains = (rps: Record<string, number>) =>
    withCoarseWarmup(group, rps).sides.map(({ load }) => load.warmupGain);
  const none = [undefined, undefined];
  // A twentieth of ln 8.
  const gain = expect.closeTo(8 ** 0.05 - 1) as number;
  expect(gains({ [name]: 8000, [other]: 1000 })).toEqual([gain, gain]);
  expect(gains({})).toEqual(none);
  expect(gains({ [name]: 8000 })).toEqual(none);
  expect(gains({ [name]: 8000, [other]: 0 })).toEqual(none);
  expect(gains({ [name]: 1000, [other]: 1000 })).toEqual(none);
  // The nearest other side counts.
  const near = expect.closeTo((8100 / 8000) ** 0.05 - 1) as number;
  expect(gains({ [name]: 8000, [other]: 1000, third: 8100 })).toEqual([near, near]);
});

/** Two sides of one program, a third of another, and rounds in which the first one had these warm-ups, and got faster in them. */
function warmedUp(...warmUps: number[]) {
  const [group] = planOf().groups as [Group];
  const [side] = group.sides as [PlannedVariant];
  const { variant, load } = side;
  const h2o: ConfiguredServer = { name: 'h2o', config: [], workers: 1 };
  const elsewhere = { ...side, variant: { ...variant, name: 'elsewhere', server: h2o } };
  const kept = warmUps.map((warmupSeconds, index) => {
    const outcome = outcomeOf(variant.server, {
      ...second(1000),
      continuous: { ...continuousEnd, warmupSeconds, gain: 1.3 },
    });
    return { round: index + 1, outcomes: new Map([[variant.name, outcome]]) };
  });
  return { group, load, kept, groups: [group, { sides: [elsewhere] }] };
}

test('the first warm-up shows whether a server has a compiler: later ones are not judged before half of it', () => {
  const { group, load } = warmedUp();
  const loads = (gain: number, ...warmUps: number[]) => {
    const { groups, kept } = warmedUp(...warmUps);
    for (const { outcomes } of kept)
      for (const { phases } of outcomes.values())
        for (const { continuous } of phases) if (continuous) continuous.gain = gain;
    return withKnownWarmups(groups, kept).map(({ sides }) => sides.map((side) => side.load));
  };
  const seconds = (gain: number, ...warmUps: number[]) =>
    loads(gain, ...warmUps).map((sides) => sides.map(({ warmupSeconds }) => warmupSeconds));
  const first = loads(1).flat();
  expect(first.map(({ warmupConfirmed }) => warmupConfirmed)).toEqual([true, true, true]);
  const usual = first.map(({ warmupSeconds }) => warmupSeconds);
  expect(usual).toEqual([...group.sides, ...group.sides.slice(1)].map(() => load.warmupSeconds));
  // Another side of the program has the same, so that neither is faster by that alone; another program has its own.
  expect(seconds(1.3, 12.8, 30)).toEqual([[6.4, 6.4], [load.warmupSeconds]]);
  expect(seconds(1.3, 12.8, 6.4)).toEqual([[6.4, 6.4], [load.warmupSeconds]]);
  expect(seconds(1.2, 12.8).flat()).toEqual(usual);
  expect(seconds(1.3, load.warmupSeconds).flat()).toEqual(usual);
  const later = loads(1.3, 12.8).flat();
  expect(later.map(({ warmupConfirmed }) => warmupConfirmed)).toEqual([
    undefined,
    undefined,
    undefined,
  ]);
});

test('a warm-up takes at most twice the second shortest that its program had in earlier rounds', () => {
  const limits = (...warmUps: number[]) => {
    const { groups, kept, load } = warmedUp(...warmUps);
    const cold = groups.map(({ sides }) => ({
      sides: sides.map((side) => ({ ...side, load: { ...load, warmupLimitSeconds: 30 } })),
    }));
    const [first, other] = withBoundedWarmups(cold, kept) as [Group, Group];
    const of = (group: Group) => {
      const { phases } = loadPlanOf(planOf(), group);
      return phases[0]?.sides.map(({ warmupLimit }) => warmupLimit) ?? [];
    };
    return [...of(first), ...of(other)];
  };
  expect(limits()).toEqual(['30000ms', '30000ms', '30000ms']);
  expect(limits(4)).toEqual(['30000ms', '30000ms', '30000ms']);
  expect(limits(30, 1, 4)).toEqual(['8000ms', '8000ms', '30000ms']);
  // A side that needs longer counts for both: one program may have two configs.
  const { groups, kept } = warmedUp(0.5, 0.5);
  const slow = warmedUp(9, 9).kept[0]?.outcomes.values().next().value;
  const other = groups[0]?.sides[1]?.variant.name;
  if (slow === undefined || other === undefined) return expect.fail();
  const both = kept.map(({ round, outcomes }) => {
    return { round, outcomes: new Map([...outcomes, [other, slow] as const]) };
  });
  const [bounded] = withBoundedWarmups(groups, both) as [Group];
  expect(bounded.sides.map(({ load }) => load.warmupBoundSeconds)).toEqual([18, 18]);
});

test('sides warm up together once a round has shown idle cores', () => {
  const plan = planOf();
  const [group] = plan.groups as [Group];
  const [turns] = [second(1000).turns];
  const after = (...cpuSeconds: number[]) => {
    const outcomes = new Map(
      group.sides.map(({ variant: { name, server } }, side) => {
        const outcome = phase({
          ...second(1000),
          turns: turns && { ...turns, waits: true },
          serverCpuSeconds: cpuSeconds[side] ?? null,
          generatorCpuSeconds: 0.1,
        });
        return [name, outcomeOf(server, outcome)];
      }),
    );
    const shared = withSharedWarmup(group, outcomes);
    return loadPlanOf(plan, shared).phases[0]?.warmTogether;
  };
  expect(withSharedWarmup(group, undefined)).toEqual(group);
  expect([after(0.2, 0.2), after(0.3, 0.3), after(0.1)]).toEqual([true, undefined, undefined]);
});

test('a warm-up gets longer only for a server at its limit, as far as the engine may', () => {
  const [{ load, variant: config }] = planOf().variants as [PlannedVariant];
  const [command] = anyPlan(scenarioOf(hereAndThere)).variants as [PlannedVariant];
  const { turns } = second(10_000);
  const seconds = (
    rps: number,
    warmupSeconds = 1,
    waits = true,
    warmCost?: number,
    cpuGain?: number,
  ) => {
    const continuous = { ...continuousEnd, rps, cpuMicros: 140, warmupSeconds };
    const outcome = phase({
      requests: 10_000,
      serverCpuSeconds: 1,
      continuous,
      turns: turns && { ...turns, waits },
      ...(cpuGain === undefined ? {} : { cpuGain }),
    });
    // A config's server is warm at once, unless it has a backend or code.
    const plain = { upstreams: [], runsCode: false };
    const ofConfig = warmAtOnce(load, config.server, plain);
    expect(longerWarmup(ofConfig, [outcome], warmCost)).toBeUndefined();
    expect(warmAtOnce(load, config.server, { ...plain, upstreams: [{ port: 1 }] })).toBe(load);
    expect(warmAtOnce(load, config.server, { ...plain, runsCode: true })).toBe(load);
    expect(warmAtOnce(load, command.variant.server, plain)).toBe(load);
    return longerWarmup(load, [outcome], warmCost)?.seconds;
  };
  // 140 µs each are 0.98 and 0.28 of a core.
  expect([seconds(7000), seconds(2000)]).toEqual([4, undefined]);
  expect(seconds(2000, 1, false)).toBe(4);
  expect([seconds(7000, 10), seconds(7000, 30)]).toEqual([30, undefined]);
  // The window costs 100 µs. Where it does in other rounds too, the warm-up's end was disturbed. Where it cost more, those were cold.
  const knowing = [95, 75, 130].map((warmCost) => seconds(7000, 1, true, warmCost));
  expect(knowing).toEqual([undefined, 4, 4]);
  // One whose window did not get faster was warm in it.
  expect([1.04, 1.06].map((cpuGain) => seconds(7000, 1, true, undefined, cpuGain))).toEqual([
    undefined,
    4,
  ]);
});

test.each([
  ['the warm-up ended at the cost of the window', [105, 110], 100],
  ['it was dearer: the server may have been cold', [125, 130], undefined],
  ['one round tells nothing', [100], undefined],
])('what a response costs once a server is warm, where %s', (_, ends, cost) => {
  const kept = ends.map((cpuMicros, index) => {
    const outcome = outcomeOf(address('http://127.0.0.1:1/'), {
      ...second(10_000),
      serverCpuSeconds: 1,
      continuous: { ...continuousEnd, cpuMicros },
    });
    return { round: index + 1, outcomes: new Map([['a', outcome]]) };
  });
  expect(warmCosts(kept).get('a')).toBe(cost);
});

test('a server that goes on has the rest of its longer warm-up', () => {
  const [planned, ...others] = planOf().variants as [PlannedVariant];
  // A config's server stays one that is warm at once.
  const load = { ...planned.load, warmupLimitSeconds: 0 };
  const stage = { planned: { ...planned, load }, servedSeconds: 3 } as unknown as Stage;
  const nextLoad = (warmupSeconds: number) => {
    const longer = { ...planned, load: { ...planned.load, warmupSeconds } };
    const [next] = goingOn([stage], { sides: [longer, ...others] });
    return next?.planned.load;
  };
  expect(nextLoad(8)).toMatchObject({ warmupSeconds: 5, warmupLimitSeconds: 0 });
  expect(nextLoad(3)?.warmupSeconds).toBe(load.warmupSeconds);
});
