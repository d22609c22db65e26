// What the machine refuses, and configs that no server takes: each is told in one line with what to do.
import { unlinkSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { namesOf } from '../../lib/cli/sides.ts';
import { main } from '../../lib/cli/main.ts';
import { remedyFor } from '../../lib/errors.ts';
import { checkResultsFolder } from '../../lib/runner/results-folder.ts';
import { readOwnConfig } from '../../lib/servers/index.ts';
import { readNginxConfig } from '../../lib/servers/nginx-config.ts';
import { freePort } from '../../lib/servers/ports.ts';
import { projectRoot } from '../../lib/setup/paths.ts';
import { run, startChild } from '../../lib/process.ts';
import { newFolder } from '../fixtures/new-folder.ts';
import { ownConfig } from '../fixtures/own-files.ts';
import { refusalOf } from '../fixtures/refused.ts';

/** What a person reads of an error that nothing in between explains. */
const told = (work: Promise<unknown>) => work.then(() => expect.fail('it was done'), remedyFor);

test('a name of 5,000 letters', async () => {
  const complained = vi.spyOn(console, 'error').mockImplementation(() => undefined);
  expect(await main(['report', 'a'.repeat(5000)])).toBe(1);
  expect(complained.mock.calls.join('\n')).toMatch(
    /^cannot use \/.{0,200}…: its name is too long: take one of at most 255 bytes$/,
  );
});

test('a link to itself as the folder of results', async () => {
  const out = join(newFolder(), 'out');
  symlinkSync(out, out);
  expect(await told(checkResultsFolder(out, 1))).toBe(
    `cannot use ${out}: it is a link to itself: remove it, or name another path`,
  );
});

test('a config that is gone when the next round starts its server', async () => {
  const file = await ownConfig('http { server { listen 80; } }');
  await readOwnConfig(file);
  unlinkSync(file);
  expect(await told(readNginxConfig({ file, text: 'http { }' }))).toBe(
    `cannot use ${file}: it is not there any more: put it back, and leave it until the run is over`,
  );
});

test.each([
  new RangeError('toFixed() digits'),
  Object.assign(new Error('x'), { code: 'toString' }),
  undefined,
])('no remedy is made up for %s', (error) => {
  expect(remedyFor(error)).toBeUndefined();
});

test('files that may have no bytes (ulimit -f 0)', async () => {
  const limited = (bytes: number): Promise<unknown> =>
    run({
      command: 'prlimit',
      args: [`--fsize=${bytes}`, process.execPath, join(projectRoot, 'bin/bakeoff.mjs'), '--help'],
    });
  for (const bytes of [0, 102_400]) {
    expect(await limited(bytes)).toMatchObject({
      code: 1,
      stdout: '',
      stderr: `files may have ${bytes} bytes here, and what a run records takes more: lift the limit with ulimit -f unlimited\n`,
    });
  }
});

test('all ports from 20000 to 29999 taken', async () => {
  const address = '127.86.73.14';
  // Without SO_REUSEADDR a socket that is bound alone keeps others out.
  const holder = await startChild({
    command: 'python3',
    args: [
      '-c',
      `
import resource, socket, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (11000, max(11000, resource.getrlimit(resource.RLIMIT_NOFILE)[1])))
held = []
for port in range(20000, 30000):
    held.append(socket.socket())
    held[-1].bind(('${address}', port))
print('held', flush=True)
sys.stdin.read()`,
    ],
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  try {
    await new Promise((resolve) => holder.process.stdout?.once('data', resolve));
    expect(await refusalOf(freePort(address))).toBe(
      `none of 100 ports of ${address} from 20000 to 29999 is free: end what has them (ss -tlnp)`,
    );
  } finally {
    await holder.stop(0);
  }
});

test('a config with a name of 250 letters is called by its first ones', () => {
  const side = (letter: string) => {
    const file = `/x/${letter.repeat(250)}.conf`;
    const config = { server: 'nginx' as const, file, workers: 1, listens: [] };
    return { source: { kind: 'config' as const, config } };
  };
  expect(namesOf([side('a'), side('b')])).toEqual(['a'.repeat(63), 'b'.repeat(63)]);
  expect(namesOf([side('a'), side('a')])).toEqual([`${'a'.repeat(63)}-a`, `${'a'.repeat(63)}-b`]);
});
