// When a run ends.
import { expect, test, vi } from 'vitest';
import type { PlanOptions } from '../../lib/runner/make-plan.ts';
import { Disturbance, TurnsMeet, StillCold } from '../../lib/runner/failures.ts';
import type { Stage } from '../../lib/runner/plan.ts';
import { sentenceOf } from '../../lib/report/finding-words.ts';
import { roundsOf, runOf } from '../fixtures/made-up-run.ts';
import { latency } from '../fixtures/phase.ts';

const clear = [2110, 2140, 2100, 2129, 2121, 2150];
/** Ratios around 1: 4 rounds give no verdict, all rounds a few percent. */
const open4 = [1030, 960, 1050, 990, 1031, 1029, 1000, 1010, 1040, 1005];
const silent = Array.from({ length: 10 }, () => 0);

test.each<[string, readonly number[], Partial<PlanOptions>, number]>([
  ['its first look, if that is clear', clear, {}, 4],
  // The interval is wide relative to the effect after 4 rounds, but not after 6.
  ['a later look', [1480, 1520, 1450, 1500, 1490, 1495], {}, 6],
  ['its last round, if nothing is clear', open4, {}, 10],
  ['the number of rounds that was asked for', clear, { rounds: 6 }, 6],
  ['its last round, if there is no verdict that could end it', silent, {}, 10],
  ['the first look of --precision', clear, { precision: 0.01 }, 5],
  ['the first look of --precision, if there can be no verdict', silent, { precision: 0.01 }, 5],
])('a run ends at %s', async (_, thousandths, options, rounds) => {
  const { result, lines } = await runOf(thousandths, options);
  expect(roundsOf(result)).toHaveLength(rounds);
  expect(result.state).toBe('complete');
  expect(lines).toEqual([]);
});

test('a run whose rounds take long announces another time than its heading', async () => {
  expect((await runOf(clear)).announced).toEqual([]);
  let nowMs = 0;
  vi.spyOn(performance, 'now').mockImplementation(() => (nowMs += 5000));
  const [first] = (await runOf(clear)).announced;
  expect(first).toMatch(
    /^workers and open-file-cache start, or get warm, more slowly than planned: .* s so far$/,
  );
});

test('a run with --precision reports after a look why it continues', async () => {
  const { ended, lines } = await runOf([...open4.slice(0, 5), new Error('enough')], {
    precision: 0.01,
  });
  expect(String(ended)).toContain('enough');
  expect(lines).toEqual([
    'after 5 rounds open-file-cache is not known precisely enough: going on to 10',
  ]);
});

test('a run keeps an outlier that alone prevents a verdict, and reports it', async () => {
  const { result, ended } = await runOf([530, 5890, 530, 480, 770, 520, 560, 600, 500, 540]);
  expect(ended).toBeUndefined();
  expect(roundsOf(result)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
  expect(result.comparisons).toMatchObject([{ verdict: 'inconclusive', swayedBy: { round: 2 } }]);
  expect(result.warnings.join()).toContain('round 2 is an outlier and alone prevents a verdict');
});

test('a run ends after five disturbed tries of a round', async () => {
  const { ended } = await runOf(
    [1, 2, 3, 4, 5].map((number) => new Disturbance(`reason ${number}`)),
  );
  expect(String(ended)).toContain(
    'round 1 was disturbed or failed 5 times, the last time: reason 5',
  );
});

test('a server that is still cold gets a longer warm-up, which is no failure', async () => {
  const cold = (seconds: number) =>
    new StillCold(`cold after ${seconds} s`, new Map([['workers', 4 * seconds]]));
  // The previous round had the same warm-up.
  const rounds = [cold(0.4), 500, cold(1.6), cold(6.4), ...clear];
  const { result, lines, groups } = await runOf(rounds, { rounds: 4 });
  expect(roundsOf(result)).toEqual([5, 6, 7, 8]);
  // Both sides have the same program.
  expect(groups.at(-1)?.sides.map(({ load }) => load.warmupSeconds)).toEqual([25.6, 25.6]);
  expect(lines).toHaveLength(3);
  expect(lines[2]).toBe('round 1 is dropped and repeated: cold after 6.4 s (round-4)');
  expect(result.warnings.join()).toContain('round 1 was dropped and repeated as round 2: cold');
});

const heldBack = { code: 'quota-in-turns', variant: 'workers', heldMs: 5, quotas: '' } as const;

test('the difference in one try, kept or dropped, says how warm servers must be in the next', async () => {
  const rps = { workers: 8000, 'open-file-cache': 1000 };
  const dropped = Object.assign(new TurnsMeet(heldBack, new Set()), { rps });
  const { groups } = await runOf([dropped, 8000, ...clear], { rounds: 3 });
  const gains = groups.map(({ sides: [side] }) => side?.load.warmupGain);
  const eightfold = expect.closeTo(8 ** 0.05 - 1, 2) as number;
  const twofold = expect.closeTo(2.11 ** 0.05 - 1, 2) as number;
  expect(gains).toEqual([undefined, eightfold, eightfold, twofold]);
});

test('servers that are still cold go on in the next try, unless each is to be alone', async () => {
  const stop = vi.fn(async () => undefined);
  const stages = [{ stop } as unknown as Stage];
  const cold = new StillCold('cold', new Map([['workers', 4]]), stages);
  const inTurns = await runOf([cold, ...clear], { rounds: 4 });
  expect(inTurns.open.slice(0, 3)).toEqual([undefined, stages, undefined]);
  expect(stop).not.toHaveBeenCalled();
  const apart = new TurnsMeet(heldBack, new Set(['workers', 'open-file-cache']));
  const alone = await runOf([apart, cold, ...clear], { rounds: 4 });
  expect(alone.open.filter((some) => some !== undefined)).toEqual([]);
  expect(stop).toHaveBeenCalledOnce();
});

test('servers that are still cold end with a run that ends first', async () => {
  const stop = vi.fn(async () => undefined);
  const cold = new StillCold('cold', new Map());
  let nowMs = 0;
  vi.spyOn(performance, 'now').mockImplementation(() => nowMs);
  const open = () => {
    nowMs = 3_600_000;
    return [{ stop } as unknown as Stage];
  };
  Object.defineProperty(cold, 'open', { get: open });
  const { result } = await runOf([...clear.slice(0, 4), cold], { rounds: 5, maxTimeSeconds: 60 });
  expect(roundsOf(result)).toEqual([1, 2, 3, 4]);
  expect(stop).toHaveBeenCalledOnce();
});

test.each<[string, [number, number], RegExp]>([
  ['the sides differ', [1.09, 1], /^workers: in turns .* \+9\.0 % .* against continuous load, as/],
  ['all gain', [1.5, 1.5], /^workers: in turns its server's CPU time per second is \+50/],
])('turns that disagree with continuous load are given up: %s', async (_, inTurns, line) => {
  const { result, lines, groups } = await runOf([...clear, ...clear], {}, inTurns);
  expect(lines).toEqual([expect.stringMatching(line)]);
  expect(result.warnings.join()).toContain('4 rounds were dropped and the sides loaded one after');
  expect(roundsOf(result)).toEqual([5, 6, 7, 8]);
  expect(groups.map(({ sides }) => sides.length)).toEqual([2, 2, 2, 2, ...Array(8).fill(1)]);
  // And a random part, which a load that is alone has.
  expect(groups.at(-1)?.sides[0]?.load.warmupSeconds).toSatisfy((s) => s >= 5 && s < 6);
});

test('a dropped round is kept as a figure, with its cause', async () => {
  const cause = { code: 'generator-stopped', variant: 'workers' } as const;
  const disturbed = new Disturbance(cause);
  disturbed.rps = { workers: 1000, 'open-file-cache': 400 };
  const { result } = await runOf([2000, disturbed, 2000, 2000, 2000], { rounds: 4 });
  expect(result.dropped).toEqual([{ round: 2, cause, rps: disturbed.rps }]);
  expect(result.warnings).toContain(
    'round 2 was dropped and repeated as round 3: workers: the load generator (k6) was stopped: find what stops it (SIGSTOP, a debugger); open-file-cache had 400 requests/s in it, 2,000 in the others',
  );
});

test('sides are loaded one after the other once a quota held a server back', async () => {
  const held = new TurnsMeet(heldBack, new Set(['workers', 'open-file-cache']));
  const { result, lines, groups } = await runOf([500, held, ...clear]);
  expect(lines).toEqual([`rounds 1 to 2 are dropped and repeated: ${sentenceOf(heldBack)}`]);
  expect(result.dropped).toEqual([
    { round: 2, cause: heldBack, rps: {} },
    { round: 1, cause: heldBack, rps: { workers: 1000, 'open-file-cache': 500 }, counted: true },
  ]);
  expect(result.warnings.join()).toContain('rounds 1 and 2 were dropped and repeated from round 3');
  expect(roundsOf(result)).toEqual([3, 4, 5, 6]);
  expect(groups.map(({ sides }) => sides.length)).toEqual([2, 2, ...Array(8).fill(1)]);
});

test('turns are kept if they agree with continuous load', async () => {
  const { result, lines } = await runOf(clear, {}, [1.09, 1.07]);
  expect(lines).toEqual([]);
  const [first] = result.variants;
  const close = expect.closeTo(1.09) as number;
  expect(first?.turnsAgainstContinuous).toEqual({ ratio: close, ci95: [close, close] });
});

test('without time for four more rounds, turns are kept with a note', async () => {
  let seconds = 0;
  vi.spyOn(performance, 'now').mockImplementation(() => 1000 * seconds++);
  const { result } = await runOf(clear, { rounds: 4, maxTimeSeconds: 30 }, [1.5, 1.5]);
  expect(roundsOf(result)).toEqual([1, 2, 3, 4]);
  expect(result.warnings.join()).toMatch(
    /workers: .* \+50 .* there was no time to load the sides one/,
  );
});

test('answers that take long are no pause', async () => {
  const slow = { longestGapMs: 60, latencyMs: latency(50, 60, 70) };
  const { groups } = await runOf(clear, { rounds: 4 }, [1, 1], slow);
  const warmups = groups.map(({ sides: [first] }) => first?.load.warmupSeconds);
  expect(new Set(warmups).size).toBe(1);
});

test('a server that paused has warm-ups of other lengths from then on', async () => {
  const { groups } = await runOf(clear, { rounds: 4 }, [1, 1], { longestGapMs: 60 });
  const warmups = groups.map(({ sides }) => sides.map(({ load }) => load.warmupSeconds));
  const [first, ...others] = warmups.map(([workers]) => workers as number);
  expect(others.every((seconds) => seconds > (first as number))).toBe(true);
  expect(new Set(others).size).toBe(3);
  // The other side has the same program.
  expect(new Set(warmups.map(([, other]) => other)).size).toBe(4);
});
