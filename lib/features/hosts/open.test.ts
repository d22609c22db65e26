// The machines of a run with other hosts: their cores, and which go together.
import { expect, onTestFinished, test, vi } from 'vitest';
import { readEnvironment, sharesCores } from '../../machine/cores.ts';
import { agentOf, agentThat, factsAt } from '../../../test/fixtures/fake-agent.ts';
import { coresOfTwo, openHosts } from './open.ts';

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
  expect(readEnvironment(ofTwo, divided, {}).coreNotes).toEqual([]);
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

const ofConfigs = { kinds: ['config'], asked: {}, scenario: {} };

test('with servers on another host this machine needs no server', async () => {
  agentThat(`cat <<'END'\n${JSON.stringify({ id: 1, answer: factsAt('192.0.2.1') })}\nEND\ncat`);
  const named = { server: 'web1', generators: [], mayInstall: false };
  const machines = await openHosts(named, ofConfigs);
  onTestFinished(machines.close);
  expect(machines.cores).toMatchObject({ serverHost: 'web1', serverFiles: { most: 1024 } });
  expect(machines.neededLocally(['nginx'])).toEqual([]);
  expect(machines.startLoad).toBeUndefined();
  expect(machines.lost()).toBeUndefined();
  await machines.close();
  await vi.waitFor(() => expect(machines.lost()).toMatch(/^the connection to web1 ended/));
});

test('hosts that cannot be used together are refused', async () => {
  const named = { generators: ['gen1'], mayInstall: false };
  await expect(openHosts({ ...named, server: undefined }, ofConfigs)).rejects.toThrow(
    /^--generator-host needs --server-host, or addresses to compare/,
  );
  agentOf({ id: 1, answer: factsAt('192.0.2.1') });
  await expect(openHosts({ ...named, server: 'web1' }, ofConfigs)).rejects.toThrow(
    /^--generator-host gen1 is the server host: name another machine/,
  );
});

test('generators on other hosts load addresses, and this machine starts the servers', async () => {
  agentOf({ id: 1, answer: factsAt('192.0.2.1') });
  const named = { server: undefined, generators: ['gen1'], mayInstall: false };
  const machines = await openHosts(named, { ...ofConfigs, kinds: ['address'] });
  onTestFinished(machines.close);
  expect(machines.cores.generatorHosts?.names).toEqual(['gen1']);
  expect(machines.cores.serverHost).toBeUndefined();
  expect(machines.neededLocally(['nginx'])).toEqual(['nginx']);
  expect(machines.startLoad).toBeDefined();
});
