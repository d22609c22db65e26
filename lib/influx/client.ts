// InfluxDB's HTTP API 1.x. InfluxDB 2.x serves it too, with a bucket as the database and a token as the password.
import { setTimeout as delay } from 'node:timers/promises';
import { UserError } from '../errors.ts';
import { isObject } from '../form.ts';
import { database, type Influx } from './address.ts';

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

/** A database that takes longer for a ping hangs. */
export const pingTimeoutMs = 2000;

/** Returns InfluxDB's version, such as "1.6.7". Throws an InfluxError, also for InfluxDB 3. */
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
      `the server at ${influx.url} is not InfluxDB: check --influx`,
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

/** Runs an InfluxQL statement. Times in the result are RFC 3339 with nanoseconds. Throws an InfluxError. */
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
  return series.map((partial) => ({ ...partial, values: partial.values ?? [] }));
}

function isSeries(value: unknown): value is Omit<Series, 'values'> & Partial<Series> {
  if (!isObject(value)) return false;
  const { values = [], columns = [] } = value;
  return Array.isArray(columns) && Array.isArray(values) && values.every(Array.isArray);
}

const textOfError = (error: unknown): string =>
  typeof error === 'string' ? error : JSON.stringify(error);

/** Returns whether this user sees bakeoff's database. Throws an InfluxError. */
export async function hasDatabase(influx: Influx): Promise<boolean> {
  const databases = await query(influx, 'SHOW DATABASES');
  return databases.some(({ values }) => values.some(([name]) => name === database));
}

/** Returns the id of the only 2.x organization with a bucket that this token may use. Throws an InfluxError. */
export async function organizationId(influx: Influx): Promise<string> {
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

/**
 * Writes in requests of at most 5000 lines, or fewer if the server refuses the size. Throws an InfluxError; for refused lines, after the
 * others are written.
 */
export async function writeLines(
  influx: Influx,
  lines: readonly string[],
  most = linesPerRequest,
): Promise<void> {
  const refusals: InfluxError[] = [];
  for (let from = 0; from < lines.length; from += most) {
    try {
      await writeSome(influx, lines.slice(from, from + most));
    } catch (error) {
      if (!(error instanceof InfluxError) || error.transient) throw error;
      refusals.push(error);
    }
  }
  if (refusals[0] !== undefined) throw refusals[0];
}

async function writeSome(influx: Influx, lines: readonly string[]): Promise<void> {
  const path = `/write?${new URLSearchParams({ db: database, precision: 'ns' })}`;
  const { response, text } = await request(influx, 'POST', path, { body: lines.join('\n') });
  if (response.ok) return;
  if (response.status !== 413 || lines.length === 1) throw failure(influx, response, text);
  await writeLines(influx, lines, Math.ceil(lines.length / 2));
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

/** Far more characters than any response to bakeoff has. A limit is needed, because the address may be any server. */
const mostLetters = 64e6;

async function textOf({ url }: Influx, { body, status }: Response): Promise<string> {
  const decoder = new TextDecoder();
  let text = '';
  // Leaving the loop ends the connection.
  for await (const part of body ?? []) {
    text += decoder.decode(part as Uint8Array, { stream: true });
    if (text.length > mostLetters)
      throw new InfluxError(
        `the server at ${url} is not InfluxDB: its answer has more than ${mostLetters / 1e6} MB: check --influx`,
        status,
      );
  }
  return text + decoder.decode();
}

export function basicAuthorization({ credentials }: Influx): string | undefined {
  const account = credentials && `${credentials.user}:${credentials.password}`;
  return account === null ? undefined : `Basic ${Buffer.from(account).toString('base64')}`;
}

/** Returns the reason of a failed fetch, which hides it in its cause, or in an AggregateError for a name with several addresses. */
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
    `the server at ${influx.url} is not InfluxDB, or something changes its answers: check --influx (status ${response.status}, it says: ${JSON.stringify(text.trim().slice(0, 80))})`,
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
    // The answer is not JSON; it may be a proxy's page.
  }
  const first = text.trim().split('\n')[0] ?? '';
  return first === '' ? undefined : first.slice(0, 200);
}

/** Asks again for up to `forMs`, while the error may pass. */
export async function patiently<T>(forMs: number, ask: () => Promise<T>): Promise<T> {
  for (const deadline = performance.now() + forMs; ; await delay(100)) {
    try {
      return await ask();
    } catch (error) {
      const mayTryAgain = error instanceof InfluxError && error.transient;
      if (!mayTryAgain || performance.now() > deadline) throw error;
    }
  }
}
