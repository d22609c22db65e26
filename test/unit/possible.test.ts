// The rows of a scenario that can be run on a machine without some of the programs.
import { expect, test } from 'vitest';
import { leftOutLine, possibleVariants } from '../../lib/cli/run-scenario.ts';
import { shippedScenario } from '../fixtures/h2-result.ts';
import { script, testMachine } from '../fixtures/machine.ts';

const all = () => true;

function machineWith(...programs: string[]) {
  const machine = testMachine();
  for (const program of ['apt-get', ...programs]) script(machine, program, 'exit 1');
  return machine;
}

const install = 'install it with: sudo apt-get install --no-install-recommends';

test('without openssl the rows without TLS are run, and the others are named', async () => {
  const scenario = await shippedScenario('http1-vs-h2-small-file');
  const servers = machineWith('nginx', 'h2o', 'nghttpd');
  const possible = await possibleVariants(scenario, scenario.variants, all, servers);
  expect(possible).toEqual({
    names: ['nginx-http1', 'nginx-spdy'],
    left: ['nghttpd-h2', 'nginx-h2', 'h2o-h2'],
    why: `openssl is missing: ${install} openssl, or set OPENSSL_BIN to its path`,
  });
  expect(possible && leftOutLine(possible)).toBe(
    `nghttpd-h2, nginx-h2 and h2o-h2 are left out: openssl is missing: ${install} openssl, or set OPENSSL_BIN to its path; the other rows are run`,
  );
});

test('without a server its rows are left out, and else none', async () => {
  const scenario = await shippedScenario('http1-vs-h2-small-file');
  const whole = machineWith('nginx', 'h2o', 'nghttpd', 'openssl');
  expect(await possibleVariants(scenario, scenario.variants, all, whole)).toBeUndefined();
  const without = machineWith('nginx', 'h2o', 'openssl');
  const possible = await possibleVariants(scenario, scenario.variants, all, without);
  expect(possible?.left).toEqual(['nghttpd-h2']);
  expect(possible?.why).toMatch(/^nghttpd is missing: /);
});

test('a scenario without TLS needs no openssl', async () => {
  const scenario = await shippedScenario('h2o-vs-nginx');
  const servers = machineWith('nginx', 'h2o');
  expect(await possibleVariants(scenario, scenario.variants, all, servers)).toBeUndefined();
});

test('a scenario with TLS alone is refused before it starts', async () => {
  const scenario = await shippedScenario('h2o-vs-nginx-h2');
  const servers = machineWith('nginx', 'h2o');
  await expect(possibleVariants(scenario, scenario.variants, all, servers)).rejects.toThrow(
    /^openssl is missing: .*apt-get install .* openssl, or set OPENSSL_BIN to its path$/,
  );
});
