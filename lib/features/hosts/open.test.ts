// A run with its servers on another host: what the flags name, and the cores.
import { expect, onTestFinished, test, vi } from 'vitest';
import { additions } from '../../cli/main.ts';
import { readArguments } from '../../cli/arguments.ts';
import { readRunOptions, runFlags } from '../../cli/run-options.ts';
import { coreFindings, sharesCores } from '../../machine/cores.ts';
import { agentThat, factsAt } from '../../../test/fixtures/fake-agent.ts';
import { coresOfTwo, openHost } from './server-host.ts';

const cores = [0, 1, 2, 3].map((cpu) => ({ node: 0, capacity: 0, cpus: [cpu] }));
const ofTwo = { cores: cores.slice(0, 2), quota: Infinity };
const serverHost = { name: 'web1', processors: { cores, quota: Infinity }, files: 5000 };

test('servers on another host get all cores of that host', () => {
  const divided = coresOfTwo(ofTwo, serverHost, {});
  expect(divided).toEqual({
    serverCpus: [0, 1, 2, 3],
    generatorCpus: [0, 1],
    serverHost: 'web1',
    serverFiles: { host: 'web1', most: 5000 },
  });
  // The same number on two hosts means different cores.
  expect(sharesCores(divided)).toBe(false);
  expect(coreFindings(ofTwo, divided)).toEqual([]);
});

test('servers on another host get as many cores as quotas allow', () => {
  const little = { ...serverHost, processors: { cores, quota: 2 } };
  expect(coresOfTwo({ ...ofTwo, quota: 1.5 }, little, {})).toMatchObject({
    serverCpus: [0, 1],
    generatorCpus: [0],
  });
});

test('servers on another host get the cores in --server-cpus', () => {
  const divided = (server?: number[], generator?: number[]) =>
    coresOfTwo(ofTwo, serverHost, { server, generator });
  expect(divided([2, 3], [1])).toMatchObject({ serverCpus: [2, 3], generatorCpus: [1] });
  expect(() => divided([4])).toThrow('--server-cpus on web1: core 4 is not there');
  expect(() => divided(undefined, [2])).toThrow(
    '-cpus: core 2 is not there or not allowed; there are 0-1',
  );
});

test('the servers of a run start on the host, and this machine needs none', async () => {
  agentThat(`cat <<'END'\n${JSON.stringify({ id: 1, answer: factsAt('192.0.2.1') })}\nEND\ncat`);
  const machines = await openHost('web1', false, {});
  onTestFinished(machines.close);
  expect(machines.cores).toMatchObject({ serverHost: 'web1', serverFiles: { most: 1024 } });
  expect(machines.neededLocally(['nginx'])).toEqual([]);
  expect(machines.lost()).toBeUndefined();
  await machines.close();
  await vi.waitFor(() => expect(machines.lost()).toMatch(/^the connection to web1 ended/));
});

const machinesOf = (line: string) =>
  readRunOptions(readArguments(line.split(' '), runFlags(additions.runParts)), additions).machines;

test.each([
  ['--install', /^--install is for --server-host: give one/],
  ['--server-host=-oProxyCommand=x', /^--server-host -oProxyCommand=x: write it as ssh takes it/],
])('refuses %s', (line, message) => {
  expect(() => machinesOf(line)).toThrow(message);
});

test('servers are away if the flag says so', () => {
  expect(machinesOf('--server-host root@web1 --install')).toMatchObject({ flag: '--server-host' });
  expect(machinesOf('--rounds 4')).toBeUndefined();
});
