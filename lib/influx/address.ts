// The address of an InfluxDB (the value of --influx), its credentials, and the settings with which k6's own output writes there.
import { readFileSync } from 'node:fs';
import { UserError, messageOf } from '../errors.ts';

/** The name of bakeoff's database: in 2.x of its bucket. */
export const database = 'bakeoff';

export interface Influx {
  /** Without credentials and without a slash at the end. */
  url: string;
  /** Null when none were given. For 2.x the password is the token, and the user name any text. */
  credentials: { user: string; password: string } | null;
}

/**
 * Reads the value of --influx: http(s)://[user:password@|token@]host[:port], with credentials percent-encoded where needed.
 * @param token from influxToken, a token or user:password; used if the URL has no credentials
 */
export function parseInfluxUrl(text: string, token?: string): Influx {
  const wrong = new UserError(
    '--influx takes a URL such as http://localhost:8086, with user:password@ or token@ before the host where one is needed (a % in them is written %25, an @ %40)',
    2,
  );
  let url: URL;
  let credentials: Influx['credentials'];
  try {
    url = new URL(text);
    credentials = credentialsOf(url, token);
  } catch {
    throw wrong;
  }
  const path = url.pathname.replace(/\/+$/, '');
  if (!/^https?:$/.test(url.protocol) || url.search !== '' || url.hash !== '') throw wrong;
  if (path !== '' && path !== `/${database}`) {
    throw new UserError(`--influx takes no path: the database is always ${database}`, 2);
  }
  return { url: url.origin, credentials };
}

function credentialsOf(url: URL, token: string | undefined): Influx['credentials'] {
  const user = decodeURIComponent(url.username);
  const password = decodeURIComponent(url.password);
  if (password !== '') return { user: user === '' ? 'token' : user, password };
  if (user !== '') return { user: 'token', password: user };
  const [, account = 'token', secret = token] = /^([^:]*):(.+)$/s.exec(token ?? '') ?? [];
  return secret === undefined || secret === '' ? null : { user: account, password: secret };
}

/** Returns INFLUX_TOKEN, or the content of the file that INFLUX_TOKEN_FILE names. Throws a UserError if it cannot be read. */
export function influxToken(env: NodeJS.ProcessEnv): string | undefined {
  const file = env['INFLUX_TOKEN_FILE'];
  if (env['INFLUX_TOKEN'] || !file) return env['INFLUX_TOKEN'];
  try {
    return readFileSync(file, 'utf8').trim();
  } catch (error) {
    throw new UserError(`INFLUX_TOKEN_FILE cannot be read: ${messageOf(error)}`);
  }
}

/** Tags that k6 turns into string fields. These are its defaults; they are stated so that no other setting changes them. */
export const tagsAsFields = ['vu', 'iter', 'url'] as const;

export const outputEnv = {
  K6_INFLUXDB_TAGS_AS_FIELDS: tagsAsFields.join(','),
  K6_INFLUXDB_PUSH_INTERVAL: '1s',
};

/** k6's options for writing to the database. They are in the environment, because every user of the machine may read a command line. */
export function ownOutput(influx: Influx) {
  return {
    out: [`influxdb=${influx.url}/${database}`],
    env: {
      ...outputEnv,
      K6_INFLUXDB_USERNAME: influx.credentials?.user ?? '',
      K6_INFLUXDB_PASSWORD: influx.credentials?.password ?? '',
      K6_INFLUXDB_PRECISION: 'ns',
      K6_INFLUXDB_RETENTION: '',
    },
  };
}

/** Counts the writes that failed, in the log of k6's own output or of xk6-output-influxdb. */
export function failedWritesIn(log: string): number {
  return log.match(/^Couldn't (?:write stats|send metrics points)/gm)?.length ?? 0;
}
