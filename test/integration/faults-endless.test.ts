// Endless input ends in a one-line error.
import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { once } from 'node:events';
import { createServer as createHttpServer } from 'node:http';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { expect, test } from 'vitest';
import { serverBuild } from '../../lib/servers/build.ts';
import { limitChild, startChild } from '../../lib/process.ts';
import { projectRoot } from '../../lib/setup/paths.ts';
import { ping } from '../../lib/influx/client.ts';
import { listening } from '../fixtures/listening.ts';
import { newFolder } from '../fixtures/new-folder.ts';
import { refusalOf } from '../fixtures/refused.ts';

function endless() {
  const file = join(newFolder(), 'endless');
  writeFileSync(file, '#!/bin/sh\nexec cat /dev/zero\n', { mode: 0o755 });
  return file;
}

test('a binary that prints endlessly', async () => {
  const binary = endless();
  expect(await refusalOf(serverBuild('nginx', binary))).toBe(
    `${binary} -V does not end: set NGINX_BIN to the nginx to measure`,
  );
  // The command does not wait for the time limit.
}, 25_000);

test('a pipe from the shell is read', () => {
  // Nothing listens at the address, because the list is read first.
  const compare = `exec "$0" bin/bakeoff.mjs compare http://127.0.0.1:1/ http://127.0.0.1:2/ --urls <(printf "/a\\n/b x\\n")`;
  const { stderr } = spawnSync('bash', ['-c', compare, process.execPath], { cwd: projectRoot });
  expect(String(stderr)).toMatch(/^--urls \/dev\/fd\/\d+, line 2: write a path or URL, .*\n$/);
}, 60_000);

test('an endless response in place of InfluxDB', async () => {
  const part = Buffer.alloc(1e6, 'x');
  const server = createHttpServer((_, response) => {
    response.setHeader('X-Influxdb-Version', '1.8.10');
    const more = (): void => void response.write(part, (error) => error ?? more());
    more();
  });
  const port = await listening(server);
  const url = `http://127.0.0.1:${port}`;
  expect(await refusalOf(ping({ url, credentials: null }, 60_000))).toBe(
    `the server at ${url} is not InfluxDB: its answer has more than 64 MB: check --influx`,
  );
}, 60_000);
test('a time limit for a program that ignores signals', async () => {
  const hanging = async () => {
    const child = await startChild({
      command: 'sh',
      args: ['-c', "trap '' INT TERM; echo up; while :; do sleep 1; done"],
    });
    await once(child.process.stdout as Readable, 'data');
    return child;
  };
  const late = await hanging();
  const atEnd = limitChild(late, new AbortController().signal, 0.1);
  expect((await late.exited).signal).toBe('SIGKILL');
  expect(atEnd()).toBe(true);
  const interrupted = await hanging();
  const atItsEnd = limitChild(interrupted, AbortSignal.abort(), 600);
  expect((await interrupted.exited).signal).toBe('SIGKILL');
  expect(atItsEnd()).toBe(false);
});
