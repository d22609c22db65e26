// Verdicts held against each side alone.
import { expect, it } from 'vitest';
import type { Noise, Phase, Result } from '../../result/result.ts';
import { answers, phase } from '../../../test/fixtures/phase.ts';
import { changed, openFileCache, result, rounds, workers } from '../../../test/fixtures/result.ts';
import { aloneTemplates, heldAgainst as held, heldLines, isDenied } from './held.ts';

const heldAgainst = (of: Result) => held(of, aloneTemplates);

const quiet: Noise = {
  serverStealShare: 0,
  generatorStealShare: 0,
  serverOthersShare: 0.01,
  generatorOthersShare: 0.02,
  loadAverage: 1,
  serverMhz: null,
};
const sides = [workers, openFileCache].map((side) => changed(side, () => ({ noise: quiet })));

/** A phase alone of so many requests in 10 s, with the CPU time per request of the rounds. */
const alone = (requests: number, cpuMicros: number, changes: Partial<Phase> = {}): Phase =>
  phase({
    requests,
    serverCpuSeconds: (requests * cpuMicros) / 1e6,
    noise: quiet,
    ...changes,
  });
const checkedWith = (of: typeof sides, before: Phase, after: Phase) =>
  heldAgainst({
    ...result(of),
    alone: {
      sides: [
        { variant: 'workers', phase: before },
        { variant: 'open-file-cache', phase: after },
      ],
      missing: [],
    },
  });

it('a verdict stands if each side alone gives the same', () => {
  const held = checkedWith(sides, alone(570_000, 15.9), alone(752_000, 11.7));
  expect(held.comparisons[0]).toMatchObject({ verdict: 'faster', cpu: { verdict: 'faster' } });
  expect(heldLines(held)).toEqual([
    'Each side alone for 10 s: open-file-cache +32 %, as in the rounds (within 9.0 %).',
  ]);
});

it('a tolerance of more than the figure itself is a factor', () => {
  const scattered = [workers, openFileCache].map((side, index) => {
    const requests = [400_000, 800_000, 500_000, 900_000, 450_000, 850_000];
    const perRound = requests.map((count) => (index === 0 ? count : count / 20));
    return { ...side, rounds: rounds(perRound, 15.9, 1.6, 2.1, 8, 6.6) };
  });
  const held = checkedWith(
    scattered.map((side) => changed(side, () => ({ noise: quiet }))),
    alone(600_000, 15.9),
    alone(30_000, 15.9),
  );
  expect(heldLines(held)).toEqual([
    expect.stringMatching(/^Each side alone .*, as in the rounds \(within a factor of \d\.\d\)\.$/),
  ]);
});

it('requests/s and CPU time that differ alone have no verdict', () => {
  const held = checkedWith(sides, alone(604_000, 15.9), alone(634_200, 13.8));
  expect(held.comparisons[0]).toMatchObject({
    verdict: 'none',
    why: 'each side alone for 10 s gives +5 %, the rounds gave +33 %',
    cpu: { verdict: 'none' },
  });
  expect(heldLines(held)).toEqual([]);
});

it('loads alone that differ are made once more, and both have to differ the same way', () => {
  const first = [alone(604_000, 15.9), alone(634_200, 11.8)] as const;
  const agreeing = [alone(570_000, 15.9), alone(752_000, 11.8)] as const;
  const loads = ([before, after]: readonly [Phase, Phase]) => [
    { variant: 'workers', phase: before },
    { variant: 'open-file-cache', phase: after },
  ];
  const once = (of: readonly [Phase, Phase]) => ({
    ...result(sides),
    alone: { sides: loads(of), missing: [] },
  });
  const twice = (...again: [Phase, Phase]) =>
    heldAgainst({
      ...result(sides),
      alone: { sides: loads(first), again: loads(again), missing: [] },
    });
  expect(isDenied(once(first))).toBe(true);
  expect(isDenied(once(agreeing))).toBe(false);
  const stands = twice(...agreeing);
  expect(stands.comparisons[0]?.verdict).toBe('faster');
  expect(heldLines(stands)).toEqual([
    'Each side alone for 10 s: open-file-cache +32 % (+5 % in a first load), as in the rounds (within 9.0 %).',
  ]);
  expect(twice(alone(604_000, 15.9), alone(622_100, 11.8)).comparisons[0]).toMatchObject({
    verdict: 'none',
    why: 'each side alone for 10 s gives +5 % and again +3 %, the rounds gave +33 %',
  });
  const otherWay = twice(alone(604_000, 15.9), alone(966_400, 11.8));
  expect(otherWay.comparisons[0]?.verdict).toBe('faster');
  expect(heldLines(otherWay)).toEqual([
    'Each side alone for 10 s cannot check open-file-cache: single loads differ too much here.',
  ]);
  const paused = twice(alone(604_000, 15.9, { longestGapMs: 900 }), alone(966_400, 11.8));
  expect(paused.comparisons[0]?.verdict).toBe('none');
});

it('others that take more of the cores than in the rounds explain a difference', () => {
  const withOthers = (generatorOthersShare: number) => {
    const taken = { noise: { ...quiet, generatorOthersShare } };
    return checkedWith(sides, alone(604_000, 15.9), alone(634_200, 11.8, taken));
  };
  expect(withOthers(0.3).comparisons[0]?.verdict).toBe('faster');
  // No difference at all would agree too.
  expect(heldLines(withOthers(0.3))).toEqual([
    'Each side alone for 10 s cannot check open-file-cache: single loads differ too much here.',
  ]);
  expect(heldLines(withOthers(0.2))).toEqual([
    expect.stringContaining('as in the rounds (within '),
  ]);
});

const noisy = [
  {
    ...workers,
    rounds: rounds(
      [580, 640, 600, 570, 650, 620].map((k) => k * 1000),
      15.9,
      1.6,
      2.1,
      8,
      6.6,
    ),
  },
  {
    ...openFileCache,
    rounds: rounds(
      [790, 870, 800, 760, 850, 830].map((k) => k * 1000),
      11.8,
      1.2,
      1.7,
      8,
      7.1,
    ),
  },
].map((side) => changed(side, () => ({ noise: quiet })));

it('a pause that the rounds lack costs the verdict, also where rounds scatter', () => {
  const withPause = (longestGapMs: number) =>
    checkedWith(noisy, alone(604_000, 15.9), alone(640_000, 11.8, { longestGapMs })).comparisons[0];
  expect(withPause(2000)).toMatchObject({
    verdict: 'none',
    why: 'each side alone for 10 s gives +6 %, the rounds gave +34 %: open-file-cache answered nothing for 2.00 s then, and for 5.00 ms at most in the rounds',
  });
  // Without the pause such rounds and loads may be alike.
  expect(withPause(100)?.verdict).toBe('faster');
  const both = checkedWith(
    noisy,
    alone(604_000, 15.9, { longestGapMs: 1900 }),
    alone(640_000, 11.8, { longestGapMs: 2000 }),
  );
  expect(both.comparisons[0]?.verdict).toBe('faster');
});

it('where the machine changes its speed, the shares of a core are compared', () => {
  const busy = (share: number) => ({ serverCpuSeconds: share * 10 });
  const wandering = noisy.map((side) => changed(side, () => busy(0.98)));
  const withShare = (share: number) =>
    checkedWith(wandering, alone(604_000, 1, busy(0.98)), alone(840_000, 1, busy(share)));
  expect(heldLines(withShare(0.98))).toEqual([
    'Each side alone for 10 s uses as much of a core as in the rounds: open-file-cache (within 3.0 %). What a request costs differs too much between single loads to be checked.',
  ]);
  expect(withShare(0.8).comparisons[0]).toMatchObject({
    verdict: 'none',
    why: 'each side alone for 10 s gives +9.3 % at the CPU time per request of the rounds, the rounds gave +34 %',
  });
});

it('a pause in which others had the cores says nothing on the server', () => {
  const heldUp = { longestGapMs: 2000, noise: { ...quiet, duringPause: 0.9 } };
  const held = checkedWith(noisy, alone(604_000, 15.9), alone(640_000, 11.8, heldUp));
  expect(held.comparisons[0]?.verdict).toBe('faster');
});

it('a side at a rate that answers fewer requests alone has no verdict', () => {
  const rated = sides.map((side) => ({ ...side, load: { ...side.load, rate: 80_000 } }));
  const made = rated.map((side) =>
    changed(side, () => ({ requests: 723_000, responses: answers({ '2xx': 723_000 }) })),
  );
  const held = checkedWith(made, alone(723_000, 15.9), alone(509_000, 11.8));
  expect(held.comparisons[0]?.verdict).toBe('none');
  expect(held.comparisons[0]?.why).toMatch(
    /^alone for 10 s open-file-cache answered 50,900 requests.s, in the rounds 72,300$/,
  );
  expect(held.warnings.at(-1)).toMatch(/^alone for 10 s open-file-cache .*rate limit/);
});

it('says why a side was not loaded alone', () => {
  const missing = ['b: nginx does not start'];
  expect(heldLines({ ...result(sides), alone: { sides: [], missing } })).toEqual([
    'The verdict was not checked with each side alone: b: nginx does not start.',
  ]);
});
