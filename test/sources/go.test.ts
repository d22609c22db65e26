// Format, vet and tests of the Go code, without the tests of the engine: test/engine.
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { serverSources } from '../../lib/features/calibrate/servers.ts';
import { run } from '../../lib/process.ts';
import { findGo } from '../../lib/setup/k6.ts';
import { thisMachine } from '../../lib/setup/machine.ts';
import { quickly, runGo, withoutK6 } from '../go.ts';

test('gofmt', async () => {
  const machine = thisMachine();
  const { binary } = await findGo(machine);
  const command = join(dirname(binary), 'gofmt');
  const { code, stdout } = await run({
    command,
    args: ['-l', '.', serverSources],
    cwd: machine.k6Sources,
  });
  expect({ code, stdout }).toEqual({ code: 0, stdout: '' });
});

test('go vet', async () => {
  await runGo(['vet', ...withoutK6], quickly);
  await runGo(['-C', serverSources, 'vet', '.'], quickly);
});

// go test would vet again, and build all of k6 for that.
test('go test', () => runGo(['test', '-vet=off', '.', './cmd/...', './internal/...', './link']));

test('go test: the known servers have exact figures with simulated time', () =>
  runGo(['-C', serverSources, 'test', '-vet=off', '.']));
