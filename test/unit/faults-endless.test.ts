// What has no end, or no beginning: it is bounded, and told in one line.
import { execFileSync, spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { expect, test, vi } from 'vitest';
import { UserError } from '../../lib/errors.ts';
import { connect } from '../../lib/hosts/agent-connection.ts';
import { bodyOfFile } from '../../lib/scenario/load/flags.ts';
import { readPageList } from '../../lib/scenario/pages.ts';
import { serverBuild } from '../../lib/servers/build.ts';
import { waitUntilReady } from '../../lib/servers/ready.ts';
import { projectRoot } from '../../lib/setup/paths.ts';
import { closedPort, listening } from '../fixtures/listening.ts';
import { newFolder } from '../fixtures/new-folder.ts';
import { refusalOf } from '../fixtures/refused.ts';

/** A program that prints one line, which has no end. */
function endless() {
  const file = join(newFolder(), 'endless');
  writeFileSync(file, '#!/bin/sh\nexec tr "\\0" x </dev/zero\n', { mode: 0o755 });
  return file;
}

test('a binary that prints without end', async () => {
  const binary = endless();
  const beganAtMs = performance.now();
  expect(await refusalOf(serverBuild('nginx', binary))).toBe(
    `${binary} -V does not end: set NGINX_BIN to the nginx to measure`,
  );
  // It was not waited for until its time was over.
  expect(performance.now() - beganAtMs).toBeLessThan(25_000);
}, 60_000);

test('another host that sends a line without end', async () => {
  vi.stubEnv('BAKEOFF_SSH', endless());
  const connection = await connect('web1', 'true');
  const lines: string[] = [];
  connection.onLine((line) => lines.push(line));
  expect(await connection.ended).toBe(
    'web1 prints a line without end: see what its shell prints at its start (ssh web1 true)',
  );
  expect(lines).toEqual([]);
}, 60_000);

const asList = async (file: string): Promise<unknown> => readPageList('--urls', file);
const notAFile = 'it is a pipe, socket or device, not a file';

test('a device as a list of pages, or as a body', async () => {
  expect(await refusalOf(asList('/dev/zero'))).toBe(`--urls /dev/zero: ${notAFile}`);
  expect(await refusalOf((async () => bodyOfFile('h2load -d', '/dev/zero'))())).toBe(
    `h2load -d /dev/zero: ${notAFile}`,
  );
});

test('a pipe that nobody writes into', async () => {
  const pipe = join(newFolder(), 'pipe');
  execFileSync('mkfifo', [pipe]);
  expect(await refusalOf(asList(pipe))).toBe(`--urls ${pipe}: ${notAFile}`);
});

test('a pipe of the shell is read', () => {
  // Nothing listens there: the list is read before.
  const compare = `exec "$0" bin/bakeoff.mjs compare http://127.0.0.1:1/ http://127.0.0.1:2/ --urls`;
  const said = (command: string) =>
    spawnSync('bash', ['-c', `${compare} <(${command})`, process.execPath], {
      cwd: projectRoot,
      encoding: 'utf8',
    }).stderr.replace(/\d+/, 'N');
  expect(said('printf "/a\\n/b x\\n"')).toBe(
    '--urls /dev/fd/N, line 2: write a path or URL, and its weight, a whole number from 1 to 1000000000\n',
  );
}, 60_000);

test('a server that refused connections, and then takes them without an answer, is not told as one that refuses', async () => {
  const address = '127.86.73.15';
  const port = await closedPort(address);
  const asked = waitUntilReady(
    { origin: `http://${address}:${port}`, page: { path: '/' }, protocol: 'http/1.1' },
    new AbortController().signal,
    3000,
  );
  await Promise.all([
    expect(asked).rejects.toThrow(
      new UserError(`http://${address}:${port}/ did not answer over http/1.1 within 3 s`),
    ),
    delay(100).then(() => listening(createServer(), port, address)),
  ]);
});
