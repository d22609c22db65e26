// Format, vet and tests of the Go code, without the tests of the engine: test/engine.
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { run } from '../../lib/process.ts';
import { findGo } from '../../lib/setup/k6.ts';
import { thisMachine } from '../../lib/setup/machine.ts';
import { runGo, quickly, withoutK6 } from '../go.ts';

test('gofmt', async () => {
  const machine = thisMachine();
  const { binary } = await findGo(machine);
  const gofmt = join(dirname(binary), 'gofmt');
  const { code, stdout } = await run({ command: gofmt, args: ['-l', '.'], cwd: machine.k6Sources });
  expect({ code, stdout }).toEqual({ code: 0, stdout: '' });
});

test('go vet', () => runGo(['vet', ...withoutK6], quickly));

// go test would vet again, and build all of k6 for that.
test('go test', () =>
  runGo(['test', '-vet=off', '.', './cmd/...', './internal/...', './link'], {}, {}));
