// Finding a step among commits.
import { expect, test } from 'vitest';
import { firstBad, likeliest, nextPlaces, type Measured } from './first-bad.ts';

const sum = (values: readonly number[]) => values.reduce((all, value) => all + value, 0);

test('a clear step is found between the commits that were measured', () => {
  const run = [0, 4, 8, 12, 16].map((place) => ({ place, log: place < 10 ? 0.001 : -0.05 }));
  const probabilities = firstBad([run], 16);
  expect(sum(probabilities)).toBeCloseTo(1);
  expect(likeliest(probabilities, 0.95)).toEqual([9, 10, 11, 12]);
  const places = nextPlaces(probabilities, 5, () => false);
  expect(places).toEqual(expect.arrayContaining([9, 10, 11]));
  const close = [8, 9, 10, 11, 12].map((place) => ({ place, log: place < 10 ? 0 : -0.05 }));
  const ends = [
    { place: 0, log: 0 },
    { place: 16, log: -0.05 },
  ];
  expect(likeliest(firstBad([run, [...close, ...ends]], 16), 0.95)).toEqual([10]);
});

test('commits that do not build stay together with the next one', () => {
  const skipped = new Set([5, 6]);
  const measured = [0, 2, 3, 4, 7, 8].map((place) => ({ place, log: place < 6 ? 0 : 0.1 }));
  const probabilities = firstBad([measured], 8);
  expect(likeliest(probabilities, 0.95)).toEqual([5, 6, 7]);
  expect(nextPlaces(probabilities, 6, (place) => skipped.has(place))).toEqual([1, 2, 3, 4, 7]);
});

test('a single commit is the only answer', () => {
  expect(firstBad([], 1)).toEqual([1]);
  expect(nextPlaces([1], 6, () => false)).toEqual([]);
});

/** Normal numbers from a fixed seed. */
function normals(seed: number) {
  let state = seed;
  const uniform = () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return (state + 0.5) / 2 ** 32;
  };
  return {
    uniform,
    normal: () => Math.sqrt(-2 * Math.log(uniform())) * Math.cos(2 * Math.PI * uniform()),
  };
}

test('of 2,000 simulated histories at least 95 % of the answers are right, and a step of 5 % is found', () => {
  const { uniform, normal } = normals(7);
  let [answers, right, found] = [0, 0, 0];
  const histories = 2000;
  for (let history = 0; history < histories; history++) {
    const places = 32;
    const step = 1 + Math.floor(uniform() * places);
    // What a layout changes stays with a commit; what a run changes does not.
    const layouts = Array.from({ length: places + 1 }, () => 0.003 * normal());
    const runs: Measured[][] = [];
    let probabilities = firstBad([], places);
    for (let runNumber = 0; runNumber < 6; runNumber++) {
      const measured = [0, ...nextPlaces(probabilities, 6, () => false), places];
      const good = 0.008 * normal();
      runs.push(
        measured.map((place) => ({
          place,
          log:
            place === 0
              ? 0
              : (place >= step ? 0.05 : 0) + (layouts[place] ?? 0) + 0.008 * normal() - good,
        })),
      );
      probabilities = firstBad(runs, places);
      if (Math.max(...probabilities) >= 0.95) break;
    }
    const [answer, ...others] = likeliest(probabilities, 0.95);
    if (others.length > 0) continue;
    answers++;
    if (answer === step) right++;
  }
  found = answers / histories;
  expect(right / answers).toBeGreaterThan(0.95);
  expect(found).toBeGreaterThan(0.95);
});
