// Sides whose servers reach each other on the machine's loopback.
import { expect, test } from 'vitest';
import type { Enclosure } from '../../lib/runner/enclosure.ts';
import { TurnsMeet } from '../../lib/runner/failures.ts';
import type { PlannedVariant, Stage } from '../../lib/runner/plan.ts';
import { requireOtherBackends } from '../../lib/runner/disturbance.ts';
import type { UpstreamAddress } from '../../lib/servers/ports.ts';
import type { RunningServer } from '../../lib/servers/index.ts';

function stageOf(
  name: string,
  origin: string,
  upstreams: UpstreamAddress[] = [],
  enclosure?: Enclosure,
): Pick<Stage, 'planned' | 'enclosure' | 'server'> {
  const planned = { variant: { name } } as PlannedVariant;
  return { planned, server: { origin, upstreams } as unknown as RunningServer, enclosure };
}

const check =
  (origin: string, ...backends: UpstreamAddress[]) =>
  () =>
    requireOtherBackends([
      stageOf('one', origin),
      stageOf('two', 'http://127.0.0.1:20001', backends),
    ]);

test.each([
  ['http://127.0.0.1:3000', 3000],
  ['https://localhost', 443],
  ['http://[::1]', 80],
])('sides leave turns if the one at %s is at port %i, a backend of the other', (origin, port) => {
  const found = check(origin, { port: 4000 }, { socket: '/run/app' }, { port });
  expect(found).toThrow(TurnsMeet);
  expect(found).toThrow(
    `the config of two has the server of one (port ${port}) as a backend, and could load it in the turns of one; so the sides are loaded one`,
  );
});

test('all sides of the group leave turns', () => {
  const sides = [
    stageOf('two', 'http://127.0.0.1:20001', [{ port: 3000 }]),
    stageOf('three', 'http://127.0.0.1:20002'),
    stageOf('one', 'http://127.0.0.1:3000'),
  ];
  let failure: unknown;
  try {
    requireOtherBackends(sides);
  } catch (error) {
    failure = error;
  }
  expect((failure as TurnsMeet).variants).toEqual(new Set(['one', 'two', 'three']));
});

test('sides stay in turns with backends that are no sides', () => {
  expect(check('http://127.0.0.1:3000', { port: 4000 }, { socket: '/run/app' })).not.toThrow();
  expect(check('http://127.0.0.1:3000', { port: 20001 }), 'its own port').not.toThrow();
  expect(check('http://10.0.0.7:3000', { port: 3000 }), 'another machine').not.toThrow();
  const apart = {} as Enclosure;
  const sides = [
    stageOf('one', 'http://127.0.0.1:3000', [], apart),
    stageOf('two', 'http://127.0.0.1:3000', [{ port: 3000 }], apart),
  ];
  expect(() => requireOtherBackends(sides), 'in loopbacks of their own').not.toThrow();
});
