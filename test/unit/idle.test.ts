// Servers that work without a load, before their first turns.
import { expect, test } from 'vitest';
import { TurnsMeet } from '../../lib/runner/failures.ts';
import { requireIdle } from '../../lib/runner/disturbance.ts';
import type { Stage } from '../../lib/runner/plan.ts';

const never = new AbortController().signal;

/** Sides whose servers have used these CPU seconds, by the milliseconds since the call. */
function stages(...uses: ((ms: number) => number)[]): Stage[] {
  const beganAtMs = performance.now();
  return uses.map((use, side) => {
    const usage = () => ({ cpuSeconds: use(performance.now() - beganAtMs) });
    const planned = { variant: { name: 'ab'[side] } };
    return { planned, server: { usage, processes: () => [] } } as unknown as Stage;
  });
}

const idle = () => 0.2;
const polling = (ms: number) => ms / 2000;

test('a server that never idles is named, and no load is lost', async () => {
  const error = await requireIdle(stages(idle, polling), never).catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(TurnsMeet);
  expect(error).toMatchObject({
    message: expect.stringMatching(/^b uses 50 % of a core in the turns of others/),
    isBeforeLoad: true,
    variants: new Set(['a', 'b']),
  });
});

test('a server may work a while after its start, and a side of its own always', async () => {
  await requireIdle(
    stages(idle, (ms) => Math.min(ms, 250) / 1000),
    never,
  );
  await requireIdle(stages(polling), never);
});
