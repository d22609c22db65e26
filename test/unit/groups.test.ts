import { describe, expect, test } from 'vitest';
import { windowBounds } from '../../lib/runner/estimate.ts';
import { apart, groupsOf, otherFiles, portsTaken, ratesThatDrain, withDrains, type GroupLimits } from '../../lib/runner/groups.ts';
import type { Group, PlannedVariant } from '../../lib/runner/planned.ts';
import { loadPlanFor, makePlan, type Target } from '../../lib/runner/plan.ts';
import { address, command, defineScenario, h2load, nginx, vegeta, wrk } from '../../lib/scenario/index.ts';
import type { Scenario, Variant } from '../../lib/scenario/model.ts';

const cores = { serverCpus: [1], generatorCpus: [0] };
const roomy: GroupLimits = { files: 1_000_000, memoryBytes: Infinity };
const network = { toServer: { delayMs: 5 }, toClient: { delayMs: 0 }, serverSettings: [], clientSettings: [] };

function scenarioOf(variants: Record<string, Partial<Variant>>, more: Partial<Scenario> = {}): Scenario {
  return defineScenario({
    name: 'some', title: 'some', knob: 'none', load: wrk('-c 100 -t 1 -d 10'), page: { docroot: 'nginx', path: '/', bodyBytes: 612 },
    variants: Object.entries(variants).map(([name, own]) => ({ name, server: nginx(['base'], { workers: 1 }), ...own })), ...more,
  });
}

function planned(scenario: Scenario): readonly PlannedVariant[] {
  return makePlan(scenario, scenario.variants, cores, { quick: false, exact: false }, roomy).variants;
}

/** The names in each group, and its slice in seconds. */
function named(groups: readonly Group[]): [string, number][] {
  return groups.map(({ sides, sliceSeconds }) => [sides.map(({ variant }) => variant.name).join(' '), sliceSeconds]);
}

const groupsIn = (scenario: Scenario, limits = roomy): [string, number][] => named(groupsOf(scenario, planned(scenario), limits));

describe('groupsOf', () => {
  test('has all variants on loopback together, whatever their load', () => {
    expect(groupsIn(scenarioOf({ a: {}, closed: { load: { ...wrk('-c 10 -t 1 -d 10'), keepAlive: false } }, counted: { load: h2load('-n 1000 -c 10 -m 10') } }))).toEqual([['a closed counted', 0.01]]);
  });

  test('has those with a rate apart from those without, in longer turns', () => {
    expect(groupsIn(scenarioOf({ a: {}, slow: { load: vegeta('-duration=10s -rate=100') }, b: {}, slower: { load: vegeta('-duration=10s -rate=10') } }))).toEqual([['a b', 0.01], ['slow slower', 0.25]]);
  });

  test('leaves those with a network alone, and all that have several phases', () => {
    expect(groupsIn(scenarioOf({ a: {}, far: { network }, b: {} }))).toEqual([['far', 0.01], ['a b', 0.01]]);
    expect(groupsIn(scenarioOf({ a: {}, b: {} }, { phases: { count: 2, pauseSeconds: 1 } })).map(([names]) => names)).toEqual(['a', 'b']);
  });

  test('shortens turns where there are many, so that none waits for long', () => {
    const [[, slice] = ['', NaN]] = groupsIn(scenarioOf(Object.fromEntries(Array.from({ length: 20 }, (_, index) => [`v${index}`, {}]))));
    expect(slice).toBeCloseTo(0.005, 12);
    const many = groupsIn(scenarioOf(Object.fromEntries(Array.from({ length: 101 }, (_, index) => [`v${index}`, {}]))));
    expect(many.map(([, seconds]) => seconds)).toEqual([0.001, 0.01]);
  });

  test('parts them where files or memory do not allow all at once, in their order', () => {
    const four = scenarioOf({ a: {}, b: {}, c: {}, d: {} });
    expect(groupsIn(four, { ...roomy, files: otherFiles + 300 }).map(([names]) => names)).toEqual(['a b c', 'd']);
    expect(groupsIn(four, { ...roomy, files: otherFiles + 400 }).map(([names]) => names)).toEqual(['a b c d']);
    // A server and its connections take less than 100 MB; half of the memory is for others.
    expect(groupsIn(four, { ...roomy, memoryBytes: 400e6 }).map(([names]) => names)).toEqual(['a b', 'c d']);
    // Each is run, however little there is.
    expect(groupsIn(four, { ...roomy, memoryBytes: 1 }).map(([names]) => names)).toEqual(['a', 'b', 'c', 'd']);
    // What nobody reads while a side is stopped lies in its sockets.
    const large = scenarioOf({ a: {}, b: {} }, { page: { docroot: 'images', path: '/img.html', bodyBytes: 525_304 } });
    expect(groupsIn(large, { ...roomy, memoryBytes: 600e6 }).map(([names]) => names)).toEqual(['a b']);
    expect(groupsIn(large, { ...roomy, memoryBytes: 240e6 }).map(([names]) => names)).toEqual(['a', 'b']);
  });
});

describe('a group with an address', () => {
  const own = { page: { path: '/', bodyBytes: 5 } };
  const [there, here] = [{ ...own, server: address('http://127.0.0.1:8080') }, { ...own, server: command('node s.js') }];

  test('drains, each side of it, in longer turns', () => {
    const scenario = scenarioOf({ a: {}, there, here, slow: { ...there, load: vegeta('-duration=10s -rate=100') } });
    const found = groupsOf(scenario, planned(scenario), roomy);
    expect(named(found)).toEqual([['a there here', 0.1], ['slow', 0.25]]);
    const plan = { ...makePlan(scenario, scenario.variants, cores, { quick: false, exact: false }, roomy), run: 'run' };
    const target = (processGroup?: number): Target => ({ url: 'http://127.0.0.1:1/', processGroup });
    const ofAll = (group: Group): unknown[] => loadPlanFor(plan, group, 1, [target(7), target(), target(8)]).phases.flatMap(({ sides }) => sides.map(({ processes }) => processes));
    expect(ofAll(found[0] as Group)).toEqual([undefined, undefined, undefined]);
    expect(ofAll({ ...found[0] as Group, drains: false })).toEqual([[7], undefined, [8]]);
  });

  test('has turns of a hundred times what it takes the slowest to answer', () => {
    const scenario = scenarioOf({ a: {}, there });
    const slices = (answers: Record<string, number>): number[] => groupsOf(scenario, planned(scenario), roomy).map((group) => withDrains(group, (name) => answers[name] as number).sliceSeconds);
    expect([slices({ a: 0.001, there: 0.0005 }), slices({ a: 0.001, there: 0.02 }), slices({ a: 0.03, there: 0.001 }), slices({ a: 0.001, there: 5 })]).toEqual([[0.1], [2], [3], [10]]);
    const frozen = scenarioOf({ a: {}, here });
    expect(named(groupsOf(frozen, planned(frozen), roomy).map((group) => withDrains(group, () => 9)))).toEqual([['a here', 0.01]]);
  });

  test('at a rate has the address alone, so that no request of the others is late by a drain', () => {
    const load = vegeta('-duration=10s -rate=100');
    const scenario = scenarioOf({ a: {}, there, slow: { load }, 'slow-there': { ...there, load }, slower: { load } });
    const groups = groupsOf(scenario, planned(scenario), roomy);
    const alone = groups.flatMap(ratesThatDrain);
    expect(alone).toEqual([['slow-there', 'it cannot be stopped, and what is due at its rate while the end of a turn is awaited would be late']]);
    expect(apart(groups, new Set(alone.map(([name]) => name))).map(({ sides, drains }) => [sides.map(({ variant }) => variant.name).join(' '), drains === true]))
      .toEqual([['a there', true], ['slow slower', false], ['slow-there', true]]);
    expect(groupsOf(scenario, planned(scenario).slice(3, 4), roomy).flatMap(ratesThatDrain)).toEqual([]);
  });

  test('of commands, those are told that have one port', () => {
    const fixed = { ...own, server: command('node s.js', { port: 3000 }) };
    const scenario = scenarioOf({ one: fixed, here, two: fixed, other: { ...own, server: command('node s.js', { port: 3001 }) } });
    expect(groupsOf(scenario, planned(scenario), roomy).flatMap(portsTaken)).toEqual([['two', 'it listens on port 3000, as one does (write {port} where it can be told one)']]);
  });
});

test('apart takes variants out of their groups', () => {
  const scenario = scenarioOf({ a: {}, b: {}, c: {} });
  const groups = groupsOf(scenario, planned(scenario), roomy);
  expect(named(apart(groups, new Set(['b']))).map(([names]) => names)).toEqual(['a c', 'b']);
  expect(named(apart(groups, new Set(['a', 'b', 'c']))).map(([names]) => names)).toEqual(['a', 'b', 'c']);
  expect(apart(groups, new Set())).toEqual(groups);
});

test('windows of sides that come forward at one pace begin and end together; a shorter one ends first', () => {
  const load = { ...wrk('-c 1 -t 1 -d 1'), warmupSeconds: 0.5 };
  const bounds = (variants: Record<string, Partial<Variant>>): number[] => {
    const scenario = scenarioOf(variants, { load });
    const [group] = groupsOf(scenario, planned(scenario), roomy);
    return windowBounds(scenario, group as Group);
  };
  expect(bounds({ a: {} })).toEqual([0.5, 1.5]);
  expect(bounds({ a: {}, b: {}, c: {} })).toEqual([1.5, 4.5]);
  // Half a second of the other's is over when the short one's ends.
  expect(bounds({ a: {}, short: { load: { ...load, durationSeconds: 0.25 } } })).toEqual([1, 2.25, 1.5]);
  // A rate says how long its count takes.
  expect(bounds({ a: { load: { ...vegeta('-rate=100 -duration=2s'), warmupSeconds: 0.5 } } })).toEqual([0.5, 2.5]);
});
