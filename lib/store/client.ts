// InfluxDB's HTTP API 1.x, which 2.x serves too, with a bucket as database and a token as password.
import { readFileSync } from 'node:fs';
import { UserError } from '../errors.ts';
import { isObject } from '../form.ts';
import { database } from './schema.ts';

export interface Influx {
  /** Without credentials and without a slash at the end. */
  url: string;
  /** Null when none were given. For 2.x the password is the token, and the user name any text. */
  credentials: { user: string; password: string } | null;
}

export interface Series {
  name: string;
  tags?: Record<string, string>;
  columns: string[];
  values: (string | number | boolean | null)[][];
}

/** A line for the user. `status` is null when there was no answer. */
export class InfluxError extends UserError {
  readonly status: number | null;
  constructor(message: string, status: number | null) {
    super(message);
    this.status = status;
  }
  /** Whether the same request may succeed a moment later. */
  get transient(): boolean {
    return this.status === null || this.status >= 500 || this.status === 408 || this.status === 429;
  }
}

const requestTimeoutMs = 10_000;
/** The batch size that InfluxDB's documentation recommends. */
export const linesPerRequest = 5000;

/**
 * Reads the value of --influx: http(s)://[user:password@|token@]host[:port], credentials percent-encoded where needed.
 * @param token as influxToken returns it, a token or user:password; used when the URL names no credentials
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

/** The token of INFLUX_TOKEN, or of the file that INFLUX_TOKEN_FILE names. Throws a UserError if it cannot be read. */
export function influxToken(env: NodeJS.ProcessEnv): string | undefined {
  const file = env['INFLUX_TOKEN_FILE'];
  if (env['INFLUX_TOKEN'] || !file) return env['INFLUX_TOKEN'];
  try {
    return readFileSync(file, 'utf8').trim();
  } catch (error) {
    throw new UserError(`INFLUX_TOKEN_FILE cannot be read: ${(error as Error).message}`);
  }
}

/** A database that takes longer for a ping hangs. */
export const pingTimeoutMs = 2000;

/** Returns InfluxDB's version, e.g. "1.6.7". Throws an InfluxError, also for InfluxDB 3. */
export async function ping(influx: Influx, timeoutMs = requestTimeoutMs): Promise<string> {
  const { response, text } = await request(influx, 'GET', '/ping', { timeoutMs });
  const version = response.headers.get('X-Influxdb-Version');
  // InfluxDB 3 wants a token even for a ping.
  if (version === null && response.status === 401) throw failure(influx, response, text);
  if (version?.startsWith('3.'))
    throw new InfluxError(
      `InfluxDB ${version} at ${influx.url} is not supported, because its InfluxQL cannot make databases: use InfluxDB 2.x or 1.x`,
      response.status,
    );
  if (version === null)
    throw new InfluxError(
      `what answers at ${influx.url} is not InfluxDB: check --influx`,
      response.status,
    );
  return version.replace(/^v/, '');
}

/** Within 2 s, both a ping and a query: a database may hang in queries alone. */
export function answers(influx: Influx): Promise<boolean> {
  const asked = request(influx, 'POST', '/query', {
    body: new URLSearchParams({ q: 'SHOW DATABASES' }),
    timeoutMs: pingTimeoutMs,
  });
  return Promise.all([ping(influx, pingTimeoutMs), asked]).then(
    () => true,
    () => false,
  );
}

/** Runs an InfluxQL statement. Times come back as RFC 3339 with nanoseconds. Throws an InfluxError. */
export async function query(influx: Influx, influxql: string): Promise<Series[]> {
  const form = new URLSearchParams({ db: database, q: influxql });
  const { response, text } = await request(influx, 'POST', '/query', { body: form });
  if (!response.ok) throw failure(influx, response, text);
  const answer = parsed(influx, response, text) as {
    error?: string;
    results?: {
      error?: string;
      partial?: boolean;
      series?: unknown;
    }[];
  };
  const result = answer.results?.[0];
  const error =
    answer.error ??
    result?.error ??
    (result?.partial === true ? 'the answer was cut off by max-row-limit' : undefined);
  if (error !== undefined)
    throw new InfluxError(`InfluxDB at ${influx.url}: ${textOfError(error)}`, response.status);
  const series = result?.series ?? [];
  if (!Array.isArray(series) || !series.every(isSeries)) throw noInflux(influx, response, text);
  // InfluxDB leaves out empty `values`.
  return series.map((one) => ({ ...one, values: one.values ?? [] }));
}

function isSeries(value: unknown): value is Omit<Series, 'values'> & Partial<Series> {
  if (!isObject(value)) return false;
  const { values = [], columns = [] } = value;
  return Array.isArray(columns) && Array.isArray(values) && values.every(Array.isArray);
}

const textOfError = (error: unknown): string =>
  typeof error === 'string' ? error : JSON.stringify(error);

/** Whether this user sees bakeoff's database. Throws an InfluxError. */
export async function hasDatabase(influx: Influx): Promise<boolean> {
  const databases = await query(influx, 'SHOW DATABASES');
  return databases.some(({ values }) => values.some(([name]) => name === database));
}

async function organizationId(influx: Influx): Promise<string> {
  const token = `Token ${influx.credentials?.password ?? ''}`;
  const { response, text } = await request(
    influx,
    'GET',
    `/api/v2/buckets?${new URLSearchParams({ name: database })}`,
    { authorization: token },
  );
  if (!response.ok) throw failure(influx, response, text);
  const { buckets = [] } = parsed(influx, response, text) as { buckets?: { orgID: string }[] };
  const [first, second] = buckets;
  if (first !== undefined && second === undefined) return first.orgID;
  throw new InfluxError(
    `InfluxDB at ${influx.url} shows this token ${buckets.length === 0 ? 'no bucket' : `${buckets.length} buckets`} ${database}: give the token of one organization that has it`,
    response.status,
  );
}

/** In requests of at most 5000 lines, fewer when the server refuses the size. Throws an InfluxError. */
export async function writeLines(
  influx: Influx,
  lines: readonly string[],
  most = linesPerRequest,
): Promise<void> {
  const path = `/write?${new URLSearchParams({ db: database, precision: 'ns' })}`;
  for (let from = 0; from < lines.length; from += most) {
    const some = lines.slice(from, from + most);
    const { response, text } = await request(influx, 'POST', path, { body: some.join('\n') });
    if (response.ok) continue;
    if (response.status !== 413 || some.length === 1) throw failure(influx, response, text);
    await writeLines(influx, some, Math.ceil(some.length / 2));
  }
}

async function request(
  influx: Influx,
  method: string,
  path: string,
  {
    body,
    authorization = basicAuthorization(influx),
    timeoutMs = requestTimeoutMs,
  }: { body?: string | URLSearchParams; authorization?: string | undefined; timeoutMs?: number },
) {
  try {
    const response = await fetch(influx.url + path, {
      method,
      body: body ?? null,
      headers: authorization === undefined ? {} : { Authorization: authorization },
      redirect: 'error',
      signal: AbortSignal.timeout(timeoutMs),
    });
    return { response, text: await textOf(influx, response) };
  } catch (error) {
    if (error instanceof InfluxError) throw error;
    throw new InfluxError(
      `InfluxDB at ${influx.url} does not answer (${reasonOf(error, timeoutMs)})`,
      null,
    );
  }
}

/** Far more than any response to bakeoff, because the address may be any server. */
const mostLetters = 64e6;

async function textOf({ url }: Influx, { body, status }: Response): Promise<string> {
  const decoder = new TextDecoder();
  let text = '';
  // Leaving the loop ends the connection.
  for await (const part of body ?? []) {
    text += decoder.decode(part as Uint8Array, { stream: true });
    if (text.length > mostLetters)
      throw new InfluxError(
        `what answers at ${url} is not InfluxDB: its answer has more than ${mostLetters / 1e6} MB: check --influx`,
        status,
      );
  }
  return text + decoder.decode();
}

export function basicAuthorization({ credentials }: Influx): string | undefined {
  const account = credentials && `${credentials.user}:${credentials.password}`;
  return account === null ? undefined : `Basic ${Buffer.from(account).toString('base64')}`;
}

/** fetch hides the reason in the cause, or for a name with several addresses in an AggregateError. */
function reasonOf(error: unknown, timeoutMs: number): string {
  if (!(error instanceof Error)) return String(error);
  if (error.name === 'TimeoutError') return `nothing within ${timeoutMs / 1000} s`;
  const cause = error.cause instanceof AggregateError ? error.cause.errors[0] : error.cause;
  return cause instanceof Error && cause.message !== '' ? cause.message : error.message;
}

function parsed(influx: Influx, response: Response, text: string): object {
  try {
    const answer: unknown = JSON.parse(text);
    if (typeof answer === 'object' && answer !== null) return answer;
  } catch {
    // Reported below.
  }
  throw noInflux(influx, response, text);
}

function noInflux(influx: Influx, response: Response, text: string): InfluxError {
  return new InfluxError(
    `what answers at ${influx.url} is not InfluxDB, or something changes its answers: check --influx (status ${response.status}, it says: ${JSON.stringify(text.trim().slice(0, 80))})`,
    response.status,
  );
}

function failure(influx: Influx, response: Response, text: string): InfluxError {
  const { status } = response;
  if (status === 401) {
    const what =
      influx.credentials === null
        ? 'wants a user name and password, or a token'
        : 'refuses the user name and password, or the token';
    return new InfluxError(
      `InfluxDB at ${influx.url} ${what}: give them in --influx (http://user:password@host:port, http://token@host:port) or in INFLUX_TOKEN`,
      status,
    );
  }
  return new InfluxError(
    `InfluxDB at ${influx.url}: ${detail(text) ?? response.statusText} (status ${status})`,
    status,
  );
}

function detail(text: string): string | undefined {
  try {
    const body = JSON.parse(text) as { error?: unknown; message?: unknown } | null;
    text = textOfError(body?.error ?? body?.message ?? '');
  } catch {
    // Not JSON: a proxy's page, perhaps.
  }
  const first = text.trim().split('\n')[0] ?? '';
  return first === '' ? undefined : first.slice(0, 200);
}

/** Tags that k6 turns into string fields: its default, stated so that nothing else changes it. */
export const tagsAsFields = ['vu', 'iter', 'url'] as const;

const outputEnv = {
  K6_INFLUXDB_TAGS_AS_FIELDS: tagsAsFields.join(','),
  K6_INFLUXDB_PUSH_INTERVAL: '1s',
};

/** k6's options for writing to the database. */
interface K6Output {
  /** Values of --out. */
  out: string[];
  env: Record<string, string>;
}

/** Set by the image, whose k6 has xk6-output-influxdb. */
const outputVariable = 'BAKEOFF_K6_OUTPUT';
const outputs = ['influxdb', 'xk6-influxdb'];

/**
 * xk6-output-influxdb if BAKEOFF_K6_OUTPUT names it and the database is 2.x, else k6's own output. Returns a function,
 * because a local database's port may change.
 * @throws UserError for an unknown output; InfluxError when the organization is unclear
 */
export async function chooseK6Output(influx: Influx, version: string): Promise<() => K6Output> {
  const wanted = process.env[outputVariable] || 'influxdb';
  if (!outputs.includes(wanted))
    throw new UserError(
      `${outputVariable}=${wanted} is no output of k6 that bakeoff knows: set it to ${outputs.join(' or ')}, or unset it`,
    );
  if (wanted === 'influxdb' || version.startsWith('1.')) return () => ownOutput(influx);
  const organization = await organizationId(influx);
  return () => ({
    out: [`xk6-influxdb=${influx.url}/${database}`],
    env: {
      K6_INFLUXDB_ORGANIZATION: organization,
      K6_INFLUXDB_TOKEN: influx.credentials?.password ?? '',
      ...outputEnv,
      // A duration, unlike in k6's own output.
      K6_INFLUXDB_PRECISION: '1ns',
    },
  });
}

/** Settings are in the environment, because every user of the machine may read a command line. */
export function ownOutput(influx: Influx): K6Output {
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
