// The time that a run still takes.
import { expect, test } from 'vitest';
import { reasonOfTime, TimeLeft } from '../../lib/runner/time-left.ts';
import type { PlannedVariant, VariantRound } from '../../lib/runner/plan.ts';
import { findScenario } from '../../lib/cli/find-scenario.ts';
import type { Phase } from '../../lib/result/result.ts';
import { continuousEnd, latency, phase } from '../fixtures/phase.ts';
import { planOf } from '../fixtures/plan.ts';
import { second } from '../fixtures/comparison.ts';

test('a countdown follows the plan, then the rounds that were made', () => {
  const time = new TimeLeft(2);
  time.began(2, 0);
  expect([time.left(4, 0), time.left(4, 1)]).toEqual([8, 7]);
  time.ended(3);
  time.began(2, 3);
  expect([time.left(3, 3), time.left(3, 4)]).toEqual([9, 8]);
  // Longer warm-ups that are planned by now may be what the last rounds took, too.
  time.began(2.5, 3);
  expect(time.left(1, 3)).toBe(3);
  time.began(20, 3);
  expect(time.left(2, 3)).toBe(40);
});

test('a countdown is never at 0 while a round goes on', () => {
  const time = new TimeLeft(2);
  time.began(2, 0);
  for (let at = 0; at < 100; at += 0.5) expect(time.left(1, at)).toBeGreaterThan(0);
});

test('--max-time bounds a countdown, though not within a round', () => {
  const time = new TimeLeft(10, 15);
  time.began(10, 0);
  expect([time.left(4, 0), time.left(4, 5)]).toEqual([15, 10]);
  time.ended(12);
  time.began(10, 12);
  expect(time.left(3, 12)).toBe(12);
});

test('a time is announced again once it has changed by a quarter', () => {
  const time = new TimeLeft(4);
  time.began(4, 0);
  expect(time.newsOf(0, 4, 3)).toBeUndefined();
  time.ended(4.4);
  time.began(4, 4.4);
  expect(time.newsOf(1, 3, 4.4)).toBeUndefined();
  // The second round takes three times as long, so that the third one is expected to.
  time.ended(4.4 + 12);
  time.began(4, 16.4);
  expect([time.newsOf(2, 2, 16.4), time.newsOf(2, 2, 16.5)]).toEqual(['later', undefined]);
});

test('a round that goes on beyond --max-time is announced once for each doubling', () => {
  const time = new TimeLeft(4, 20);
  time.began(4, 0);
  const news = Array.from({ length: 120 }, (_, half) => time.newsOf(0, 4, 19 + half / 2));
  expect(news.filter((some) => some !== undefined)).toHaveLength(3);
});

test('while the first round goes on, no end is guessed', () => {
  const time = new TimeLeft(10);
  time.began(10, 0);
  const news = Array.from({ length: 61 }, (_, at) => time.newsOf(0, 4, at) ?? []).flat();
  // After 15, 30 and 60 s.
  expect(news).toEqual(['open', 'open', 'open']);
  const later = new TimeLeft(10);
  later.began(10, 0);
  later.ended(10);
  later.began(10, 10);
  const all = Array.from({ length: 60 }, (_, at) => later.newsOf(1, 3, 10 + at) ?? []).flat();
  expect(new Set(all)).toEqual(new Set(['later']));
});

test('a shorter time is announced too, if somebody waits for it', () => {
  const ends = (plannedSeconds: number) => {
    const time = new TimeLeft(plannedSeconds);
    time.began(plannedSeconds, 0);
    time.ended(plannedSeconds / 2);
    time.began(plannedSeconds, plannedSeconds / 2);
    return time.newsOf(1, 3, plannedSeconds / 2);
  };
  expect([ends(1), ends(10)]).toEqual([undefined, 'earlier']);
});

const scenario = await findScenario('nginx-open-file-cache');
const variants = planOf(scenario).variants.slice(0, 2);

test('the reason of another time is what the last round has shown', () => {
  const [a, b] = variants as [PlannedVariant, PlannedVariant];
  const outcomes = (of: Partial<Phase>) =>
    new Map(
      [a, b].map(({ variant }) => [variant.name, { phases: [phase({ ...second(1000), ...of })] }]),
    ) as ReadonlyMap<string, Pick<VariantRound, 'phases'>>;
  const reason = (of: Partial<Phase>) => reasonOfTime([a, b], outcomes(of));
  const inFirst = (...sides: PlannedVariant[]) => reasonOfTime(sides, new Map());
  expect(inFirst(a, b)).toBe(
    `${a.variant.name} and ${b.variant.name} start, or get warm, more slowly than planned`,
  );
  expect(inFirst(a)).toBe(`${a.variant.name} starts, or gets warm, more slowly than planned`);
  expect(inFirst(a, b, a, b)).toMatch(/^servers start, or get warm, /);
  expect(reason({ continuous: { ...continuousEnd, warmupSeconds: 6 } })).toBe(
    `${a.variant.name} and ${b.variant.name} are still getting faster`,
  );
  const after = (warmupSeconds: number) => {
    const continuous = { ...continuousEnd, warmupSeconds };
    return { phases: [phase({ ...second(1000), continuous })] };
  };
  const unlike = new Map([
    [a.variant.name, after(3)],
    [b.variant.name, after(30)],
  ]);
  expect(reasonOfTime([a, b], unlike)).toBe(`${b.variant.name} is still getting faster`);
  const turns = second(1000).turns;
  const waits = turns && { ...turns, waits: true };
  const slow = { turns: waits, latencyMs: latency(50, 60, 70) };
  expect(reason(slow)).toBe(`${a.variant.name} and ${b.variant.name} take long to answer`);
  expect(reason({})).toBe('rounds take longer than planned');
});
