import { describe, expect, test } from 'vitest';
import {
  apart,
  groupsOf,
  otherFiles,
  portsTaken,
  type GroupLimits,
  type Group,
  type PlannedVariant,
} from '../../lib/runner/plan.ts';
import { makePlan } from '../../lib/runner/make-plan.ts';
import { command, defineScenario, h2load, nginx, vegeta, wrk } from '../../lib/scenario/index.ts';
import type { Scenario, Variant } from '../../lib/scenario/model.ts';

const cores = { serverCpus: [1], generatorCpus: [0] };
const roomy: GroupLimits = { files: 1_000_000, memoryBytes: Infinity };
const network = {
  toServer: { delayMs: 5 },
  toClient: { delayMs: 0 },
  serverSettings: [],
  clientSettings: [],
};

function scenarioOf(
  variants: Record<string, Partial<Variant>>,
  more: Partial<Scenario> = {},
): Scenario {
  return defineScenario({
    name: 'some',
    title: 'some',
    knob: 'none',
    load: wrk('-c 100 -t 1 -d 10'),
    page: { docroot: 'nginx', path: '/', bodyBytes: 612 },
    variants: Object.entries(variants).map(([name, own]) => ({
      name,
      server: nginx(['base'], { workers: 1 }),
      ...own,
    })),
    ...more,
  });
}

function planned(scenario: Scenario): readonly PlannedVariant[] {
  return makePlan(scenario, scenario.variants, cores, { quick: false, exact: false }, roomy)
    .variants;
}

/** The names in each group. */
function named(groups: readonly Group[]): string[] {
  return groups.map(({ sides }) => sides.map(({ variant }) => variant.name).join(' '));
}

const groupsIn = (scenario: Scenario, limits = roomy): string[] =>
  named(groupsOf(scenario, planned(scenario), limits));

describe('groupsOf', () => {
  test('has all variants on loopback together, whatever their load', () => {
    expect(
      groupsIn(
        scenarioOf({
          a: {},
          closed: { load: { ...wrk('-c 10 -t 1 -d 10'), keepAlive: false } },
          counted: { load: h2load('-n 1000 -c 10 -m 10') },
        }),
      ),
    ).toEqual(['a closed counted']);
  });

  test('has those with a rate apart from those without', () => {
    expect(
      groupsIn(
        scenarioOf({
          a: {},
          slow: { load: vegeta('-duration=10s -rate=100') },
          b: {},
          slower: { load: vegeta('-duration=10s -rate=10') },
        }),
      ),
    ).toEqual(['a b', 'slow slower']);
  });

  test('leaves those with a network alone, and all that have several phases', () => {
    expect(groupsIn(scenarioOf({ a: {}, far: { network }, b: {} }))).toEqual(['far', 'a b']);
    expect(
      groupsIn(scenarioOf({ a: {}, b: {} }, { phases: { count: 2, pauseSeconds: 1 } })),
    ).toEqual(['a', 'b']);
  });

  test('has a hundred together at most', () => {
    const many = scenarioOf(
      Object.fromEntries(Array.from({ length: 101 }, (_, index) => [`v${index}`, {}])),
    );
    expect(groupsOf(many, planned(many), roomy).map(({ sides }) => sides.length)).toEqual([100, 1]);
  });

  test('parts them where files or memory do not allow all at once, in their order', () => {
    const four = scenarioOf({ a: {}, b: {}, c: {}, d: {} });
    expect(groupsIn(four, { ...roomy, files: otherFiles + 300 })).toEqual(['a b c', 'd']);
    expect(groupsIn(four, { ...roomy, files: otherFiles + 400 })).toEqual(['a b c d']);
    // A server and its connections take less than 100 MB; half of the memory is for others.
    expect(groupsIn(four, { ...roomy, memoryBytes: 400e6 })).toEqual(['a b', 'c d']);
    // Each is run, however little there is.
    expect(groupsIn(four, { ...roomy, memoryBytes: 1 })).toEqual(['a', 'b', 'c', 'd']);
  });
});

test('commands that have fixed one port are told', () => {
  const on = (port?: number): Partial<Variant> => ({
    page: { path: '/', bodyBytes: 5 },
    server: command('node s.js', port === undefined ? {} : { port }),
  });
  const scenario = scenarioOf({ one: on(3000), here: on(), two: on(3000), other: on(3001) });
  expect(groupsOf(scenario, planned(scenario), roomy).flatMap(portsTaken)).toEqual([
    ['two', 'it listens on port 3000, as one does (write {port} where it can be told one)'],
  ]);
});

test('apart takes variants out of their groups', () => {
  const scenario = scenarioOf({ a: {}, b: {}, c: {} });
  const groups = groupsOf(scenario, planned(scenario), roomy);
  expect(named(apart(groups, new Set(['b'])))).toEqual(['a c', 'b']);
  expect(named(apart(groups, new Set(['a', 'b', 'c'])))).toEqual(['a', 'b', 'c']);
  expect(apart(groups, new Set())).toEqual(groups);
  expect(
    apart([{ ...(groups[0] as Group), sliceSeconds: 2 }], new Set(['b'])).map(
      ({ sliceSeconds }) => sliceSeconds,
    ),
  ).toEqual([2, 2]);
});
