// Beside other programs a server with one request under way starves, and one with many does not.
import { spawn, type ChildProcess } from 'node:child_process';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { buildServer } from '../../lib/features/calibrate/servers.ts';
import { oneCoreEach } from '../../lib/features/calibrate/lab.ts';
import { thisMachine } from '../../lib/setup/machine.ts';
import { sharedFolder } from '../fixtures/new-folder.ts';
import { newOut, startScenario, useHome, wholeResult, writeScenario } from '../scenario-run.ts';

const home = useHome(['k6']);
const folder = sharedFolder();
const loops: ChildProcess[] = [];
let program = '';
beforeAll(async () => {
  program = await buildServer(thisMachine(), folder);
  const { serverCpus, generatorCpus } = oneCoreEach();
  for (const cpu of [...serverCpus, ...generatorCpus])
    loops.push(spawn('taskset', ['-c', String(cpu), 'sh', '-c', 'while :; do :; done']));
});
afterAll(() => {
  for (const loop of loops) loop.kill('SIGKILL');
});

test('the side that starved is named, and there is no verdict', async () => {
  const out = newOut();
  const side = (name: string, connections: number) =>
    `{ name: '${name}', server: { name: 'command', command: '${program} -cpu 100us -name ${name}' }, page: { path: '/', bodyBytes: 612 }, load: wrk('-c ${connections} -t 1 -d 1') }`;
  const file = writeScenario(
    out,
    'starved',
    `load: wrk('-c 1 -t 1 -d 1'), variants: [${side('one', 1)}, ${side('many', 1000)}]`,
  );
  const args = [file, ...`--rounds 4 --store none --no-why --out ${out}`.split(' ')];
  const { comparisons } = await wholeResult(startScenario(args, home.env), out);
  const why = expect.stringMatching(
    /^one waited \d+ % of its turns for cores that other programs used, many \d+(\.\d+)? %, and many loses less by that, since it has more requests under way$/,
  );
  expect(comparisons).toEqual([expect.objectContaining({ verdict: 'none', why })]);
});
