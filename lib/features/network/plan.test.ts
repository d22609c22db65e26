// Plans of runs over networks, and what is refused with them.
import { expect, test } from 'vitest';
import { delayed } from '../../../test/fixtures/link.ts';
import { planOf, scenarioOf } from '../../../test/fixtures/plan.ts';
import { scenarioCommand } from '../../cli/scenario.ts';
import { command } from '../../scenario/index.ts';

const server = command('node a.js');

test('a variant with a network is alone in its group', () => {
  const far = { name: 'far', server, network: delayed };
  const { groups } = planOf(scenarioOf([{ name: 'a', server }, far, { name: 'b', server }]));
  const names = groups.map(({ sides }) => sides.map(({ variant }) => variant.name));
  expect(names).toEqual([['far'], ['a', 'b']]);
});

test.each([
  ['--k6-script', '--k6-script: http3-loss has networks of its own, and a script makes none: take'],
  [
    '--server-host web1',
    'http3-loss has networks of its own, which are made on one machine: leave',
  ],
])('scenario http3-loss %s is refused', async (flags, message) => {
  await expect(scenarioCommand(['http3-loss', ...flags.split(' ')])).rejects.toMatchObject({
    exitCode: 2,
    message: expect.stringContaining(message),
  });
});
