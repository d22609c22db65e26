// Which runs go before other programs.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import { getPriority } from 'node:os';
import { expect, onTestFinished, test, vi } from 'vitest';
import type { Stage } from '../../lib/runner/plan.ts';
import { priorityOf, raisePriority } from '../../lib/runner/priority.ts';
import { findScenario } from '../../lib/cli/find-scenario.ts';
import type { ServerSpec } from '../../lib/scenario/model.ts';
import type { RunningServer } from '../../lib/servers/index.ts';
import { planOf } from '../fixtures/plan.ts';

const [side] = planOf(await findScenario('nginx-open-file-cache')).variants;
const planWith = (server: ServerSpec) => {
  if (side === undefined) return expect.fail();
  return { variants: [{ ...side, variant: { ...side.variant, server } }] };
};
const nginx: ServerSpec = { name: 'nginx', config: [], workers: 1 };
const isRoot = process.getuid?.() === 0;

test('only root goes first, if nobody says no, and only with servers of its own', () => {
  vi.stubEnv('BAKEOFF_PRIORITY', 'yes');
  expect(priorityOf(planWith(nginx))).toEqual({ goesFirst: isRoot && getPriority() === 0 });
  const address: ServerSpec = { name: 'address', origin: 'http://127.0.0.1:80' };
  expect(priorityOf(planWith(address))).toEqual({ goesFirst: false });
  vi.stubEnv('BAKEOFF_PRIORITY', 'no');
  expect(priorityOf(planWith(nginx))).toEqual({ goesFirst: false });
});

const stageWith = (server: Partial<RunningServer>) =>
  ({
    planned: planWith(nginx).variants[0],
    server: { upstreams: [], runsCode: false, ...server },
  }) as unknown as Stage;

test.each<[string, Partial<RunningServer>, boolean]>([
  ['without a backend', {}, true],
  ['with a backend', { upstreams: [{ port: 80 }] }, false],
  ['with code, which may ask a backend', { runsCode: true }, false],
])('a server %s goes first: %j %j', async (_, server, goesFirst) => {
  const priority = { goesFirst: true };
  const before = getPriority();
  const { nice, giveBack } = await raisePriority(priority, [stageWith({}), stageWith(server)]);
  onTestFinished(giveBack);
  // It stays so for the rest of the run.
  expect(priority.goesFirst).toBe(goesFirst);
  expect(nice).toBe(goesFirst ? -10 : undefined);
  await giveBack();
  expect(getPriority()).toBe(before);
});

test('a command that has connected to something does not go first', async () => {
  const backend = createServer();
  backend.listen(0, '127.0.0.1');
  await once(backend, 'listening');
  // A process of its own, without the connections of the tests.
  const { port } = backend.address() as AddressInfo;
  const script = `require('node:net').connect(${port}, '127.0.0.1')`;
  const command = spawn(process.execPath, ['-e', script], { stdio: 'ignore' });
  onTestFinished(() => {
    command.kill();
    backend.close();
  });
  await once(backend, 'connection');
  const server = { processes: () => [String(command.pid)], usage: () => undefined };
  const planned = planWith({ name: 'command', command: 'node a.js' }).variants[0];
  const stage = { ...stageWith(server as unknown as RunningServer), planned } as unknown as Stage;
  const priority = { goesFirst: true };
  expect((await raisePriority(priority, [stage])).nice).toBeUndefined();
  expect(priority).toEqual({ goesFirst: false });
});
