// The first user of a new influxd.
import { existsSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { UserError } from '../../errors.ts';
import type { Influx } from '../../influx/address.ts';
import { basicAuthorization } from '../../influx/client.ts';

/** In the working folder of influxd, since the path of a socket may not be long. */
export const socketName = 'first-user.sock';

/** This file stays with the data that has the user. */
const markerIn = (folder: string): string => join(folder, 'meta', 'has-user');

/** Returns whether the influxd of a folder was given its user. */
export function hasUser(folder: string): boolean {
  return existsSync(markerIn(folder));
}

const retryMs = 50;

/**
 * Makes the first user by a statement over the socket of a starting influxd. Without users influxd lets anybody make one, so it listens
 * only in its folder, which is closed to other users.
 * @param pid of the influxd
 * @param check throws to end the wait
 * @throws UserError if influxd refuses, or what `check` throws
 */
export async function makeFirstUser(
  folder: string,
  pid: number,
  influx: Influx,
  statement: string,
  check: () => Promise<void>,
): Promise<void> {
  for (;;) {
    await check();
    const answer = await post(`/proc/${pid}/cwd/${socketName}`, influx, statement);
    if (answer?.status === 200 && !answer.text.includes('"error"')) break;
    if (answer !== undefined && answer.status < 500)
      throw new UserError(
        `influxd cannot make a user (status ${answer.status}): move ${folder} away to start afresh`,
      );
    await delay(retryMs);
  }
  writeFileSync(markerIn(folder), '', { mode: 0o600 });
}

const answerLimitMs = 10_000;

/** undefined if nothing answers yet. */
function post(
  socketPath: string,
  influx: Influx,
  statement: string,
): Promise<{ status: number; text: string } | undefined> {
  return new Promise((resolve) => {
    const body = new URLSearchParams({ q: statement }).toString();
    const headers = {
      'Content-Type': 'application/x-www-form-urlencoded',
      Authorization: basicAuthorization(influx),
    };
    const asked = request({ socketPath, path: '/query', method: 'POST', headers }, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (part: string) => void (text += part));
      response.on('end', () => resolve({ status: response.statusCode ?? 0, text }));
    });
    asked.setTimeout(answerLimitMs, () => asked.destroy());
    asked.on('error', () => resolve(undefined)).end(body);
  });
}
