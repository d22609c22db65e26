// A server that works in the turns of others leaves turns.
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

test('a server that polls is loaded alone, and so is the other side', async () => {
  const out = newOut();
  const side = (name: string, flags: string) =>
    `${name}=${program} -cpu 300us -name ${name} ${flags}`;
  const load = ['--load', 'wrk -c 10 -t 1', '--duration', '1s', '--rounds', '1'];
  const args = [
    'compare',
    side('a', ''),
    side('b', '-poll'),
    ...load,
    '--store',
    'none',
    '--no-look',
  ];
  const { variants, warnings } = await wholeResult(
    startCommand([...args, '--out', out], home.env),
    out,
  );
  // It is seen before any load.
  expect(warnings.join('\n')).toMatch(/^b uses \d\S* % of a core in the turns of others/m);
  const phases = variants.flatMap(({ rounds }) => rounds.flatMap((round) => round.phases));
  expect(phases.map(({ turns }) => turns)).toEqual([null, null]);
});
