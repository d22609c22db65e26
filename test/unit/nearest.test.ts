import { expect, test } from 'vitest';
import { nearest } from '../../lib/errors.ts';

test('a choice is offered as what was meant only where it is near', () => {
  expect(nearest('server.mjs', ['README.md', 'package.json'])).toBeUndefined();
  expect(nearest('wkr', ['h2load', 'wrk'])).toBe('wrk');
  expect(nearest('ngin', ['h2o', 'nginx-open-file-cache'])).toBe('nginx-open-file-cache');
  expect(nearest('--header', ['--server-cpus', '--url'])).toBeUndefined();
  const flags = ['--url', '--in', '--load', '--rounds', '--host', '--export-csv'];
  for (const far of ['--x', '--tls', '--cpu']) expect(nearest(far, flags)).toBeUndefined();
  for (const [typed, meant] of [
    ['--ur', '--url'],
    ['--rond', '--rounds'],
    ['--hots', '--host'],
  ])
    expect(nearest(typed as string, flags)).toBe(meant);
  expect(nearest('nope.conf', ['node_modules'])).toBeUndefined();
  expect(nearest('a', [])).toBeUndefined();
  expect(nearest('a', ['action.yml'])).toBeUndefined();
});
