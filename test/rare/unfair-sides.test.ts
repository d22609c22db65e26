// Servers that take what is not theirs: the turns of others, and other cores.
import { beforeAll, expect, test } from 'vitest';
import type { Result } from '../../lib/result/result.ts';
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

/** Compares a server with one that is started with these flags, or in another way. */
async function compared(flags: string, before = ''): Promise<Result> {
  const out = newOut();
  const side = (name: string) => `${program} -cpu 300us -name ${name}`;
  const sides = [`a=${side('a')}`, `b=${before}${side('b')} ${flags}`];
  const load = ['--load', 'wrk -c 10 -t 1', '--duration', '1s', '--rounds', '1'];
  const args = ['compare', ...sides, ...load, '--store', 'none', '--no-look', '--out', out];
  return wholeResult(startCommand(args, home.env), out);
}

test('a server that polls is loaded alone, and so is the other side', async () => {
  const { variants, warnings } = await compared('-poll');
  expect(warnings.join('\n')).toMatch(/b uses \d\S* % of a core in the turns of others/);
  const phases = variants.flatMap(({ rounds }) => rounds.flatMap((round) => round.phases));
  expect(phases.map(({ turns }) => turns)).toEqual([null, null]);
});

test('a server that may run on other cores gets no verdict, and a note', async () => {
  const { comparisons, warnings } = await compared('', 'taskset -c 0,1 ');
  expect(comparisons[0]).toMatchObject({ verdict: 'none', why: 'b might run on core 0 too' });
  expect(warnings.join('\n')).toMatch(/^b: its threads might run on core 0 too, /m);
});
