// A server's own stalls are part of its speed, also where both sides stall.
import { beforeAll, expect, test } from 'vitest';
import { buildServer } from '../../lib/features/calibrate/servers.ts';
import { thisMachine } from '../../lib/setup/machine.ts';
import { sharedFolder } from '../fixtures/new-folder.ts';
import { newOut, startCommand, useHome, wholeResult } from '../scenario-run.ts';

const home = useHome(['k6']);
const folder = sharedFolder();
let program = '';
beforeAll(async () => {
  program = await buildServer(thisMachine(), folder);
});

test('no round is dropped for stalls of both sides', async () => {
  const out = newOut();
  const side = (name: string, stall: string) =>
    `${name}=${program} -service 300us -name ${name} -stall ${stall} -stall-each 5s`;
  const load = ['--load', 'wrk -c 10 -t 1', '--duration', '5s', '--rounds', '1'];
  const sides = [side('a', '1500ms'), side('b', '1600ms')];
  const args = ['compare', ...sides, ...load, '--store', 'none', '--no-why', '--out', out];
  const { variants, dropped = [] } = await wholeResult(startCommand(args, home.env), out);
  expect(dropped.filter(({ cause }) => cause?.code === 'held-up')).toEqual([]);
  const [phase] = variants.flatMap(({ rounds }) => rounds.flatMap(({ phases }) => phases));
  expect(phase?.turns?.count).toBeGreaterThan(1);
});
