import { expect, test } from 'vitest';
import {
  apart,
  groupsOf,
  otherFiles,
  portsTaken,
  type GroupLimits,
  type Group,
} from '../../lib/runner/plan.ts';
import { command, h2load, nginx, vegeta, wrk } from '../../lib/scenario/index.ts';
import type { Scenario, Variant } from '../../lib/scenario/model.ts';
import { planOf, scenarioOf } from '../fixtures/plan.ts';

const roomy: GroupLimits = { files: 1_000_000, memoryBytes: Infinity };
const page = { docroot: 'nginx', path: '/', bodyBytes: 612 };
const variantsOf = (variants: Record<string, Partial<Variant>>, more: Partial<Scenario> = {}) =>
  scenarioOf(
    Object.entries(variants).map(([name, changes]) => ({
      name,
      server: nginx(['base'], { workers: 1 }),
      ...changes,
    })),
    { load: wrk('-c 100 -t 1 -d 10'), page, ...more },
  );

const planned = (scenario: Scenario, limits = roomy) =>
  groupsOf(scenario, planOf(scenario, {}, { limits: roomy }).variants, limits);

const named = (groups: readonly Group[]) =>
  groups.map(({ sides }) => sides.map(({ variant }) => variant.name).join(' '));

const groupsIn = (scenario: Scenario, limits = roomy) => named(planned(scenario, limits));

const on10s = (rate: number) => ({ load: vegeta(`-duration=10s -rate=${rate}`) });
const closed = { load: { ...wrk('-c 10 -t 1 -d 10'), keepAlive: false } };
const counted = { load: h2load('-n 1000 -c 10 -m 10') };
const phases = { count: 2, pauseSeconds: 1 };
test.each<[string, Record<string, Partial<Variant>>, string, Partial<Scenario>?]>([
  ['all on loopback together, whatever their load', { a: {}, closed, counted }, 'a closed counted'],
  ['rates apart', { a: {}, slow: on10s(100), b: {}, slower: on10s(10) }, 'a b, slow slower'],
  ['all that have several phases alone', { a: {}, b: {} }, 'a, b', { phases }],
])('groupsOf has %s', (_, variants, groups, more) => {
  expect(groupsIn(variantsOf(variants, more)).join(', ')).toBe(groups);
});

test('turns on shared cores let the kernel spread threads', () => {
  const slices = (more: Partial<Scenario>) =>
    planned(variantsOf({ a: {}, b: {} }, more)).map(({ sliceSeconds }) => sliceSeconds);
  expect(slices({ sharedCores: true })).toEqual([0.25]);
  expect(slices({})).toEqual([undefined]);
});

test('groupsOf puts at most a hundred variants together', () => {
  const many = Object.fromEntries([...Array(101).keys()].map((index) => [`v${index}`, {}]));
  const groups = groupsIn(variantsOf(many));
  expect(groups.map((names) => names.split(' ').length)).toEqual([100, 1]);
});

test('groupsOf respects limits of open files and memory', () => {
  const four = variantsOf({ a: {}, b: {}, c: {}, d: {} });
  expect(groupsIn(four, { ...roomy, files: otherFiles + 300 })).toEqual(['a b c', 'd']);
  // A server with connections takes less than 100 MB; half of the memory is reserved for other processes.
  expect(groupsIn(four, { ...roomy, memoryBytes: 400e6 })).toEqual(['a b', 'c d']);
  expect(groupsIn(four, { ...roomy, memoryBytes: 1 })).toEqual(['a', 'b', 'c', 'd']);
});

test('commands with the same port are in different groups', () => {
  const on = (port?: number): Partial<Variant> => ({
    page: { path: '/', bodyBytes: 5 },
    server: command('node s.js', port === undefined ? {} : { port }),
  });
  const scenario = variantsOf({ one: on(3000), here: on(), two: on(3000), other: on(3001) });
  expect(portsTaken(planOf(scenario).variants)).toEqual([
    { code: 'same-port', variant: 'two', other: 'one', port: 3000 },
  ]);
  expect(groupsIn(scenario)).toEqual(['one here other', 'two']);
});

test('apart takes variants out of their groups', () => {
  const groups = planned(variantsOf({ a: {}, b: {}, c: {} }));
  expect(named(apart(groups, new Set(['b'])))).toEqual(['a c', 'b']);
  expect(named(apart(groups, new Set(['a', 'b', 'c'])))).toEqual(['a', 'b', 'c']);
  expect(apart(groups, new Set())).toEqual(groups);
  const sliced = apart([{ ...(groups[0] as Group), sliceSeconds: 2 }], new Set(['b']));
  expect(sliced.map(({ sliceSeconds }) => sliceSeconds)).toEqual([2, 2]);
});
