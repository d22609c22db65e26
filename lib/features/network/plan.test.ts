// Plans of runs over networks, and what is refused with them.
import { expect, test } from 'vitest';
import { inEveryRun } from '../../cli/run-options.ts';
import { additions } from '../../cli/main.ts';
import { delayed } from '../../../test/fixtures/link.ts';
import { planOf, scenarioOf } from '../../../test/fixtures/plan.ts';
import { runScenario, type AskedOptions } from '../../cli/run-scenario.ts';
import { scenarioCommand } from '../../cli/scenario.ts';
import { loadPlanFor } from '../../runner/k6-plan.ts';
import type { Group } from '../../runner/plan.ts';
import { findScenario } from '../../cli/find-scenario.ts';
import { command } from '../../scenario/index.ts';
import { enclosureWith } from './enclosure.ts';

const server = command('node a.js');
const { planners } = inEveryRun(additions.runParts);

test('a variant with a network is alone in its group', () => {
  const far = { name: 'far', server, network: delayed };
  const { groups } = planOf(scenarioOf([{ name: 'a', server }, far, { name: 'b', server }]), {
    planners,
  });
  const names = groups.map(({ sides }) => sides.map(({ variant }) => variant.name));
  expect(names).toEqual([['far'], ['a', 'b']]);
});

test('the generator does not spin on cores that a network needs too', () => {
  const plan = planOf(scenarioOf([{ name: 'far', server, network: delayed }]), { planners });
  const target = { url: 'http://127.0.0.1:8080/', enclosed: { netns: '/proc/1/fd/8' } };
  const [phase] = loadPlanFor(plan, plan.groups[0] as Group, 1, [target]).phases;
  expect(phase?.sides.map(({ spin = false }) => spin)).toEqual([false]);
});

test('a network is made on one machine, and by no script', async () => {
  const refused = (message: string) => ({ exitCode: 2, message: expect.stringContaining(message) });
  await expect(scenarioCommand(['http3-loss', '--k6-script'], additions)).rejects.toMatchObject(
    refused('--k6-script: http3-loss has networks of its own, and a script makes none: take'),
  );
  const machines = { flag: '--away' };
  const scenario = await findScenario('http3-loss');
  const running = runScenario(
    scenario,
    { machines, planners } as unknown as AskedOptions,
    () => undefined,
  );
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
