import { writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, test } from 'vitest';
import { alarmsIn, type LogAlarms } from '../../lib/servers/lifecycle.ts';
import type { ServerName } from '../../lib/scenario/model.ts';
import { newFolder } from '../fixtures/new-folder.ts';

function logOf(text: string): string {
  const file = path.join(newFolder(), 'error.log');
  writeFileSync(file, text);
  return file;
}

const at = '2026/11/20 08:15:31 ';
const crash = '[alert] worker process exited on signal 11 (core dumped)';

test.each<[string, ServerName, string, LogAlarms]>([
  ['nothing', 'nginx', '', {}],
  [
    'what is no alarm',
    'nginx',
    `${at}[notice] 7#7: start worker processes\n${at}[error] 8#8: *3 open() "/x" failed\n${at}[notice] 7#7: worker process 8 exited with code 0\n`,
    {},
  ],
  [
    'what nginx says without root',
    'nginx',
    'nginx: [alert] could not open error log file: open() "/var/log/nginx/error.log" failed (13: Permission denied)\n',
    {},
  ],
  [
    'a crash',
    'nginx',
    `${at}[notice] 7#7: signal 17\n${at}[alert] 7#7: worker process 12 exited on signal 11 (core dumped)\n`,
    { first: crash, crash },
  ],
  [
    'an alarm, and a crash behind it',
    'nginx',
    `${at}[alert] 8#8: *9 setsockopt() failed\n${at}[alert] 7#7: worker process 12 exited on signal 11 (core dumped)\n`,
    { first: '[alert] setsockopt() failed', crash },
  ],
  [
    'the first of many',
    'nginx',
    `${at}[emerg] 8#8: io_setup() failed\n${at}[alert] 8#8: later\n`,
    { first: '[emerg] io_setup() failed' },
  ],
  [
    'no end of the line, and control characters',
    'nginx',
    `${at}[alert] 8#8: a\u001B[31mb \u202Ec`,
    { first: '[alert] a [31mb  c' },
  ],
  [
    "h2o's own words",
    'h2o',
    '[INFO] raised RLIMIT_NOFILE\nreceived fatal signal 11\n',
    { first: 'received fatal signal 11', crash: 'received fatal signal 11' },
  ],
  [
    "another server's words",
    'h2o',
    `${at}[alert] 7#7: worker process 12 exited on signal 11\n`,
    {},
  ],
])('%s', async (_title, server, text, alarms) => {
  const { last: _, ...found } = await alarmsIn(logOf(text), server);
  expect(found).toEqual(alarms);
});

test('the last line, whatever it says', async () => {
  expect(
    await alarmsIn(
      logOf(`${at}[notice] 7#7: a\n${at}[error] 8#8: *3 open() "/x" failed\n`),
      'nginx',
    ),
  ).toEqual({ last: '[error] open() "/x" failed' });
  expect(await alarmsIn(logOf('a\nconnection refused by the database\n\n'), 'command')).toEqual({
    last: 'connection refused by the database',
  });
});

test('a log that cannot be read says nothing', async () => {
  expect(await alarmsIn('/nowhere/error.log', 'nginx')).toEqual({});
  expect(await alarmsIn(tmpdir(), 'nginx')).toEqual({});
});
