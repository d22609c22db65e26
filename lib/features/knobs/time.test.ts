// How --max-time is divided among the parts of the command.
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { secondsPerRound } from '../../runner/times.ts';
import { planOf } from '../../../test/fixtures/plan.ts';
import { findScenario } from '../../cli/find-scenario.ts';
import { PartsTime, type PlanPart } from './time.ts';

const scenario = await findScenario('nginx-open-file-cache');
const plan: PlanPart = (maxTimeSeconds) =>
  planOf(scenario, { rounds: 10, ...(maxTimeSeconds === undefined ? {} : { maxTimeSeconds }) });
const roundSeconds = secondsPerRound(plan());

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

test('each part gets its share of the time that is left', () => {
  const time = new PartsTime(40 * roundSeconds);
  expect(time.requireFirst(plan).maxTimeSeconds).toBeCloseTo(24 * roundSeconds);
  vi.advanceTimersByTime(24_000 * roundSeconds);
  expect(time.planned('closer look', plan)?.maxTimeSeconds).toBeCloseTo(6.4 * roundSeconds);
  vi.advanceTimersByTime(6000 * roundSeconds);
  expect(time.planned('verification', plan)?.maxTimeSeconds).toBeCloseTo(10 * roundSeconds);
});

test('a part that has no time for the rounds of a verdict is left out', () => {
  const time = new PartsTime(10 * roundSeconds);
  vi.advanceTimersByTime(3000 * roundSeconds);
  expect(time.planned('closer look', plan)).toBeUndefined();
  expect(time.planned('verification', plan)?.maxTimeSeconds).toBeCloseTo(7 * roundSeconds);
});

test('without time for the first look, the command says how long it takes', () => {
  const time = new PartsTime(2);
  expect(() => time.requireFirst(plan)).toThrow(
    /^--max-time 2 s is too short: 4 rounds of the first look take about .* Give --max-time \d+s, or fewer --knobs$/,
  );
});

test('without --max-time a part takes as long as it needs', () => {
  const time = new PartsTime(undefined);
  expect(time.requireFirst(plan).maxTimeSeconds).toBeUndefined();
  expect(time.planned('verification', plan)?.maxTimeSeconds).toBeUndefined();
});
