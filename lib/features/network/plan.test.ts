// Plans of runs over networks, and what is refused with them.
import { expect, test } from 'vitest';
import { delayed } from '../../../test/fixtures/link.ts';
import { planOf, scenarioOf } from '../../../test/fixtures/plan.ts';
import { runScenario, type AskedOptions } from '../../cli/run-scenario.ts';
import { scenarioCommand } from '../../cli/scenario.ts';
import { findScenario } from '../../scenario/catalogue.ts';
import { command } from '../../scenario/index.ts';
import { enclosureWith } from './enclosure.ts';

const server = command('node a.js');

test('a variant with a network is alone in its group', () => {
  const far = { name: 'far', server, network: delayed };
  const { groups } = planOf(scenarioOf([{ name: 'a', server }, far, { name: 'b', server }]));
  const names = groups.map(({ sides }) => sides.map(({ variant }) => variant.name));
  expect(names).toEqual([['far'], ['a', 'b']]);
});

test('a network is made on one machine, and by no script', async () => {
  const refused = (message: string) => ({ exitCode: 2, message: expect.stringContaining(message) });
  await expect(scenarioCommand(['http3-loss', '--k6-script'])).rejects.toMatchObject(
    refused('--k6-script: http3-loss has networks of its own, and a script makes none: take'),
  );
  const machines = { flags: '--away', areServersAway: true };
  const scenario = await findScenario('http3-loss');
  const running = runScenario(scenario, { machines } as AskedOptions, () => undefined);
  await expect(running).rejects.toMatchObject(
    refused('http3-loss has networks of its own, made on one machine only: leave --away out'),
  );
});

test('a network needs the delaylink that was built with k6', async () => {
  const { signal } = new AbortController();
  await expect(
    enclosureWith(delayed).requirePossible('/nowhere/k6', 'far', signal),
  ).rejects.toThrow(
    'there is no delaylink beside /nowhere/k6, which holds the networks of far: unset K6_BIN to have both built',
  );
});
