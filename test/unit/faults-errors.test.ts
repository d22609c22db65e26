// System errors become one line with a remedy.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { namesOf } from '../../lib/cli/sides.ts';
import { nearest, remedyFor } from '../../lib/errors.ts';
import { ifThere } from '../../lib/files.ts';
import { freePort } from '../../lib/servers/ports.ts';
import { projectRoot } from '../../lib/setup/paths.ts';
import { run, startChild } from '../../lib/process.ts';
import { refusalOf } from '../fixtures/refused.ts';

test('no remedy for unknown errors', () => {
  for (const error of [undefined, Object.assign(new Error('x'), { code: 'toString' })])
    expect(remedyFor(error)).toBeUndefined();
});

test('a file size limit of 0 (ulimit -f 0)', async () => {
  const command = [process.execPath, join(projectRoot, 'bin/bakeoff.mjs'), '--help'];
  for (const bytes of [0, 102_400]) {
    const args = [`--fsize=${bytes}`, ...command];
    const { code, stderr } = await run({ command: 'prlimit', args });
    expect(code).toBe(1);
    expect(stderr).toMatch(new RegExp(`^files may have ${bytes} bytes here, .* unlimited\n$`));
  }
});

test('all ports from 20000 to 29999 taken', async () => {
  const address = '127.86.73.14';
  // Without SO_REUSEADDR, a bound socket blocks the port even if it does not listen.
  const hold = `
import socket, sys
held = [socket.socket() for _ in range(10000)]
for port, one in enumerate(held, 20000):
    one.bind(('${address}', port))
print('held', flush=True)
sys.stdin.read()`;
  const holder = await startChild({
    command: 'prlimit',
    args: ['--nofile=11000:', 'python3', '-c', hold],
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

test('a long config name is cut', () => {
  const file = `/x/${'a'.repeat(250)}.conf`;
  const config = { server: 'nginx' as const, file, workers: 1, listens: [] };
  expect(namesOf([{ source: { kind: 'config', config } }])).toEqual(['a'.repeat(63)]);
});

test('a similar choice is suggested', () => {
  const names = 'README.md h2load wrk nginx-open-file-cache node_modules action.yml'.split(' ');
  expect(nearest('wkr', names)).toBe('wrk');
  expect(nearest('ngin', names)).toBe('nginx-open-file-cache');
  for (const far of ['server.mjs', 'nope.conf', 'a']) expect(nearest(far, names)).toBeUndefined();
  const flags = ['--url', '--in', '--load', '--rounds', '--host', '--export-csv'];
  expect(nearest('--ur', flags)).toBe('--url');
  expect(nearest('--rond', flags)).toBe('--rounds');
  expect(nearest('--hots', flags)).toBe('--host');
  for (const far of ['--x', '--tls', '--cpu', '--header'])
    expect(nearest(far, flags)).toBeUndefined();
  expect(nearest('a', [])).toBeUndefined();
});

test('too many open files are not taken for a missing file', () => {
  expect(ifThere(() => readFileSync('/proc/self/missing'))).toBe(undefined);
  expect(() =>
    ifThere(() => {
      throw Object.assign(new Error('too many open files'), { code: 'EMFILE' });
    }),
  ).toThrow('too many open files');
  expect(() => ifThere(() => JSON.parse('{') as unknown)).toThrow(SyntaxError);
});
