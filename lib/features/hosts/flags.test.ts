// Which hosts the flags name.
import { expect, test } from 'vitest';
import { readRunOptions, runFlags } from '../../cli/run-options.ts';
import { readArguments } from '../../cli/arguments.ts';

const machinesOf = (line: string) =>
  readRunOptions(readArguments(line.split(' '), runFlags)).machines;

test.each([
  ['--install', /^--install is for --server-host: give one/],
  ['--server-host=-oProxyCommand=x', /^--server-host -oProxyCommand=x: write it as ssh takes it/],
  ['--generator-host a --generator-host b;c', /^--generator-host b;c: write it as ssh takes it/],
  ['--generator-host a --generator-host a', /^--generator-host a is named twice$/],
  ['--generator-host a --generator-cpus 0', /^--generator-host and --generator-cpus do not go/],
])('refuses %s', (line, message) => {
  expect(() => machinesOf(line)).toThrow(message);
});

test.each([
  ['--server-host root@web1 --install', true],
  ['--generator-host a --generator-host me@10.0.0.2', false],
])('with %s programs of servers may be on another machine: %j', (line, areServersAway) => {
  expect(machinesOf(line)).toMatchObject({ areServersAway });
});

test('without a host there is only this machine', () => {
  expect(machinesOf('--quick')).toBeUndefined();
});
