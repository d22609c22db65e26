// The one user of the influxd that bakeoff runs itself: everybody on the machine can reach loopback, so who has no password
// neither reads nor writes. Its password is made per folder and kept in it, for its owner alone.
import { randomBytes } from 'node:crypto';
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { UserError } from '../errors.ts';
import type { Influx } from './client.ts';
import { quoteIdentifier, quoteString } from './line-protocol.ts';

const user = 'bakeoff';

/** Where the password is kept: it is there once influxd knows it. */
export function passwordFile(folder: string): string {
  return join(folder, 'password');
}

/** What influxd takes; null when it has no user yet. */
export function keptCredentials(folder: string): Influx['credentials'] {
  try {
    return { user, password: readFileSync(passwordFile(folder), 'utf8') };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
}

/** Whether influxd has no user to let in: its folder is new, or of before there were passwords. */
export function lacksUser(folder: string): boolean {
  return keptCredentials(folder) === null || !existsSync(join(folder, 'meta/meta.db'));
}

/**
 * Makes the user, with all that influxd holds kept. A new password is on the disk before influxd has it, and takes its
 * place when influxd has: whenever this is cut short, the next start goes on with the same one.
 * @param socket of an influxd that nobody else can reach
 * @throws UserError when influxd has users already
 */
export async function makeUser(folder: string, socket: string): Promise<void> {
  const kept = keptCredentials(folder);
  const candidate = join(folder, 'password.new');
  const earlier = existsSync(candidate) ? readFileSync(candidate, 'utf8') : '';
  const password = kept?.password || earlier || randomBytes(24).toString('base64url');
  if (kept === null && earlier === '') writeFileSync(candidate, password, { mode: 0o600, flush: true });
  const answer = await ask(socket, `CREATE USER ${quoteIdentifier(user)} WITH PASSWORD ${quoteString(password)} WITH ALL PRIVILEGES`, `${user}:${password}`);
  if (answer !== '{"results":[{"statement_id":0}]}') {
    throw new UserError(`influxd makes no user for bakeoff, since its data has others (${answer}): put back ${passwordFile(folder)}, or move ${folder} away to begin anew`);
  }
  if (kept === null) renameSync(candidate, passwordFile(folder));
}

/** fetch knows no Unix sockets. The password is taken no notice of while there is no user. */
async function ask(socketPath: string, influxql: string, auth: string): Promise<string> {
  const body = new URLSearchParams({ q: influxql }).toString();
  return new Promise((resolve, reject) => {
    const asked = request(
      { socketPath, path: '/query', method: 'POST', auth, timeout: 10_000, headers: { 'Content-Type': 'application/x-www-form-urlencoded' } },
      (response) => { text(response).then((answer) => resolve(answer.trim()), reject); },
    );
    asked.on('timeout', () => asked.destroy(new UserError('influxd does not answer')));
    asked.on('error', reject);
    asked.end(body);
  });
}
