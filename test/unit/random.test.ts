// Looks at random times.
import { expect, test, vi } from 'vitest';
import { lookAtRandom } from '../../lib/random.ts';

test('a look that has to wait for a core does not put off the next one', async () => {
  const never = new Int32Array(new SharedArrayBuffer(4));
  let looks = 0;
  const end = lookAtRandom(
    () => {
      looks++;
      // Takes time, and no CPU time.
      Atomics.wait(never, 0, 0, 500);
    },
    { everyMs: 1, mostUsed: 0.01 },
  );
  // If its time were counted as use, the next would come after 50 s.
  await vi.waitFor(() => expect(looks).toBeGreaterThan(1), 20_000);
  await end();
});
