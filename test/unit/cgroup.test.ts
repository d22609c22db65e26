// The control group of a server that somebody else started: what is refused, in folders that look like control groups.
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect, it, test } from 'vitest';
import { cpuSecondsOf, openCgroup } from '../../lib/servers/cgroup.ts';
import { newFolder } from '../fixtures/new-folder.ts';
import { refusalOf } from '../fixtures/refused.ts';

function groupOf(files: Record<string, string>): string {
  const folder = newFolder();
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(path.dirname(path.join(folder, name)), { recursive: true });
    writeFileSync(path.join(folder, name), text);
  }
  return folder;
}

const counter = { 'cpu.stat': 'usage_usec 1500000\nuser_usec 1\n' };
// Above Linux's pid_max.
const member = { 'cgroup.procs': '99999999\n' };

it.each([
  [{ 'cpu.stat': '1' }, /^\S+ is no control group: name a folder below \/sys\/fs\/cgroup that /],
  [{ 'cgroup.procs/x': '', ...counter }, /^the control group \S+ cannot be read: EISDIR/],
  [member, / does not count CPU time: with cgroup v1 name the folder below \S+cpuacct$/],
  [{ 'cgroup.procs': '', ...counter }, / has no processes: start the server first$/],
  [{ 'cgroup.procs': '0\n', ...counter }, / has processes that cannot be seen from here: start /],
  [
    { 'cgroup.procs': '', 'below/cgroup.procs': `${process.pid}\n`, ...counter },
    / has bakeoff's own processes too: name the server's own$/,
  ],
])('%j is refused', async (files, message) => {
  expect(await refusalOf((async () => openCgroup(groupOf(files)))())).toMatch(message);
});

it('refuses a folder that is missing', async () => {
  expect(await refusalOf((async () => openCgroup('/none/here'))())).toBe(
    'there is no control group /none/here',
  );
});

test('version 2 counts microseconds, version 1 nanoseconds', () => {
  expect(cpuSecondsOf(groupOf(counter))).toBe(1.5);
  expect(cpuSecondsOf(groupOf({ 'cpuacct.usage': '2500000000\n' }))).toBe(2.5);
  expect(cpuSecondsOf(groupOf(member))).toBe(undefined);
});

test('a group that did nothing for an answer is refused', async () => {
  const folder = groupOf({ ...member, ...counter });
  const group = openCgroup(folder);
  const { signal } = new AbortController();
  expect(await refusalOf(group.requireWork('http://127.0.0.1:8080', signal))).toBe(
    `the control group ${folder} did nothing while http://127.0.0.1:8080 answered: name the server's own`,
  );
  writeFileSync(path.join(folder, 'cpu.stat'), 'usage_usec 1500001\n');
  await group.requireWork('http://127.0.0.1:8080', signal);
});

test('a group that vanishes is told, and its CPU seconds stay', async () => {
  const folder = groupOf({ ...member, ...counter });
  const watched = openCgroup(folder).watch();
  expect(watched.processes()).toEqual(['99999999']);
  expect(watched.usage().cpuSeconds).toBe(1.5);
  rmSync(folder, { recursive: true });
  expect(await watched.died).toBe(`the control group ${folder} has no processes any more`);
  expect(watched.usage().cpuSeconds).toBe(1.5);
  await watched.stop();
});
