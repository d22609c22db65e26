// Observers of a load begin and end, whatever fails.
import { expect, test } from 'vitest';
import type { PhaseOutcome } from '../../lib/k6/load-plan.ts';
import type { RunningK6 } from '../../lib/runner/k6.ts';
import {
  whileObserved,
  type Observation,
  type ObservedLoad,
  type Observer,
} from '../../lib/runner/observers/observer.ts';
import { RoundFailure } from '../../lib/runner/failures.ts';
import type { Stage } from '../../lib/runner/plan.ts';
import { hereAndThere, planOf, scenarioOf } from '../fixtures/plan.ts';

const plan = planOf(scenarioOf(hereAndThere));
const load: ObservedLoad = {
  plan,
  stages: plan.variants.map((planned) => ({ planned }) as Stage),
  attempt: { round: 1, onLoad: () => undefined },
};
const generator = { pid: 7 } as RunningK6;
const outcomes: PhaseOutcome[] = [{ results: [] }];

/** Notes each call. The end gives each side a different value of `quotas`, or `acceptQueue`. */
function observerOf(
  name: string,
  happened: string[],
  changed: Partial<Observation> = {},
): Observer {
  return {
    name,
    begin() {
      happened.push(`${name} begins`);
      return {
        started: ({ pid }) => void happened.push(`${name} knows process ${pid}`),
        end(made) {
          happened.push(`${name} ends, ${made === undefined ? 'failed' : 'loaded'}`);
          return plan.variants.map((_, side) => ({ quotas: `${name} ${side}` }));
        },
        ...changed,
      };
    },
  };
}

test('observers begin and end in order, and each side gets all parts', async () => {
  const happened: string[] = [];
  const queues = observerOf('b', happened, {
    end: () => [{ acceptQueue: { overflows: 0 } }, { acceptQueue: { overflows: 3 } }],
  });
  const end = await whileObserved([observerOf('a', happened), queues], load, async (started) => {
    happened.push('load');
    started(generator);
    return outcomes;
  });
  expect(happened).toEqual([
    'a begins',
    'b begins',
    'load',
    'a knows process 7',
    'b knows process 7',
    'a ends, loaded',
  ]);
  expect(end).toMatchObject({
    outcomes,
    observed: [
      { quotas: 'a 0', acceptQueue: { overflows: 0 } },
      { quotas: 'a 1', acceptQueue: { overflows: 3 } },
    ],
  });
});

test('a failed load is returned with what was observed', async () => {
  const happened: string[] = [];
  const observers = ['a', 'b'].map((name) => observerOf(name, happened));
  const failure = new RoundFailure('no answer');
  const end = await whileObserved(observers, load, async () => Promise.reject(failure));
  expect(end).toMatchObject({ failure, observed: [{ quotas: 'b 0' }, { quotas: 'b 1' }] });
  expect(happened.slice(2)).toEqual(['a ends, failed', 'b ends, failed']);
});

test('if one does not begin there is no load, and those before it end', async () => {
  const happened: string[] = [];
  const failing: Observer = { name: 'b', begin: async () => Promise.reject(new Error('gone')) };
  const observers = [observerOf('a', happened), failing, observerOf('c', happened)];
  const end = await whileObserved(observers, load, async () => {
    happened.push('load');
    return outcomes;
  });
  expect(end).toMatchObject({ failure: new Error('gone') });
  expect(happened).toEqual(['a begins', 'a ends, failed']);
});

test('if one fails at its end the others end, and the first error is thrown', async () => {
  const happened: string[] = [];
  const failing = (text: string) =>
    observerOf(text, happened, { end: async () => Promise.reject(new Error(text)) });
  const observers = [failing('first'), failing('second'), observerOf('c', happened)];
  await expect(whileObserved(observers, load, async () => outcomes)).rejects.toThrow(/^first$/);
  expect(happened.at(-1)).toBe('c ends, loaded');
  // The load's own error says more.
  const failure = new RoundFailure('no answer');
  const end = await whileObserved(observers, load, async () => Promise.reject(failure));
  expect(end).toMatchObject({ failure, observed: [{ quotas: 'c 0' }, { quotas: 'c 1' }] });
});

test('an end that takes too long fails the round, and holds up nobody else', async () => {
  const happened: string[] = [];
  const hanging = observerOf('the queue', happened, { end: () => new Promise(() => undefined) });
  const observers = [hanging, observerOf('b', happened)];
  const limits = { usual: 20, afterFailure: 10 };
  await expect(whileObserved(observers, load, async () => outcomes, limits)).rejects.toThrow(
    new RoundFailure('the queue is not known 0.02 s after the load'),
  );
  expect(happened.at(-1)).toBe('b ends, loaded');
  const failure = new RoundFailure('no answer');
  const end = await whileObserved(observers, load, async () => Promise.reject(failure), limits);
  expect(end).toMatchObject({ failure, observed: [{ quotas: 'b 0' }, { quotas: 'b 1' }] });
});
