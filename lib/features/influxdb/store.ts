// The database of a run: an influxd that bakeoff starts, or the InfluxDB 1.x or 2.x of --influx.
import { setTimeout as delay } from 'node:timers/promises';
import { UserError } from '../../errors.ts';
import { typed } from '../../setup/paths.ts';
import {
  database,
  type Influx,
  influxToken,
  outputEnv,
  ownOutput,
  parseInfluxUrl,
} from '../../influx/address.ts';
import {
  answers,
  hasDatabase,
  InfluxError,
  organizationId,
  patiently,
  ping,
  pingTimeoutMs,
  query,
  writeLines,
} from '../../influx/client.ts';
import { quoteIdentifier } from '../../influx/line-protocol.ts';
import { startLocalInfluxd, startTimeoutMs, type LocalOptions } from './local-influxd.ts';
import type { SampleOutput } from '../../runner/plan.ts';

export interface StoreOptions extends LocalOptions {
  /** Value of --influx; without it a local influxd is started. */
  url?: string | undefined;
  /** How long a request is tried again while the database restarts or is busy; default 10 s. */
  retryForMs?: number;
}

export type Store = Awaited<ReturnType<typeof storeOn>>;

/**
 * Opens the database, and makes it if it is missing. A local influxd that does not start for a run leaves a store that is down until
 * `reopen`. Throws a UserError with the remedy.
 */
export async function openStore(options: StoreOptions): Promise<Store> {
  const { purpose = 'run', url, retryForMs } = options;
  if (url !== undefined) {
    const influx = parseInfluxUrl(url, influxToken(process.env));
    return storeOn(influx, await prepare(influx, purpose === 'run'), null, retryForMs);
  }
  const local = await startLocalInfluxd(options);
  try {
    const ask = () => {
      options.signal?.throwIfAborted();
      return prepare(local.influx, true);
    };
    const version = local.failure() === null ? await patiently(startTimeoutMs, ask) : '';
    return await storeOn(local.influx, version, local, retryForMs);
  } catch (error) {
    await local.stop();
    throw error;
  }
}

async function prepare(influx: Influx, mayMake: boolean): Promise<string> {
  const version = await ping(influx);
  if (await hasDatabase(influx)) return version;
  const at = `InfluxDB ${version} at ${influx.url}`;
  if (!version.startsWith('1.'))
    throw new UserError(
      `${at} shows this token no bucket ${database}: make it (influx bucket create --name ${database}), or give a token that may read and write it`,
    );
  if (!mayMake)
    throw new UserError(
      `${at} has no database ${database} yet: run a scenario into it first (${typed('scenario')} NAME --influx URL)`,
    );
  try {
    await query(influx, `CREATE DATABASE ${quoteIdentifier(database)}`);
  } catch (error) {
    if (!(error instanceof InfluxError)) throw error;
    throw new UserError(`${error.message}; an administrator must run: CREATE DATABASE ${database}`);
  }
  return version;
}

const silenceMs = 30_000;

type LocalInfluxd = Awaited<ReturnType<typeof startLocalInfluxd>>;

async function storeOn(
  influx: Influx,
  version: string,
  local: LocalInfluxd | null,
  retryForMs = 10_000,
) {
  // The version of a local influxd is unknown until it starts.
  const k6Output = await chooseK6Output(influx, local === null ? version : '1.');
  const reached = new ReachedDatabase(influx, local, retryForMs);
  let kept: readonly string[] = [];

  /** Writes line protocol. Throws an InfluxError when the database refuses it. */
  const write = (lines: readonly string[]) => {
    const filled = lines.filter((line) => line !== '');
    return reached.persistently(() => writeLines(influx, filled));
  };
  return {
    /** The client for direct access. The url of a local influxd may change when it is started again. */
    influx,
    /** e.g. "1.6.7" */
    version,
    /** Returns k6's output to the database. Ask again for every round: the port may have changed. */
    k6Output,
    write,
    /** Like write, for lines that are in no file: if the database is unavailable, the next call sends them. */
    writeOrKeep: async (lines: readonly string[]) => {
      const all = [...kept, ...lines];
      kept = [];
      await write(all).catch((error: unknown) => {
        // Refused lines would be refused again. A parallel call may have failed meanwhile.
        if (error instanceof InfluxError && error.transient) kept = [...all, ...kept];
        throw error;
      });
    },
    /** Runs an InfluxQL statement. Throws an InfluxError. */
    query: (influxql: string) => reached.persistently(() => query(influx, influxql)),
    /**
     * Restarts a local influxd that has died, hangs or has lost its folder. Returns whether the database answers. A database that hung
     * less than 30 s ago is not asked, so that it delays a run only once.
     */
    revive: () => reached.revive(),
    /** Like revive; also starts a local influxd that did not start before, which may take minutes. */
    reopen: () => reached.reopen(),
    /** Returns why the local influxd did not start; null if it did. */
    failure: () => reached.failure(),
    /** Ends a local influxd. May be called twice. */
    close: async () => local?.stop(),
  };
}

/** A database that may be away for a while. */
class ReachedDatabase {
  readonly #influx: Influx;
  readonly #local: LocalInfluxd | null;
  readonly #retryForMs: number;
  /** The local influxd did not start. */
  #isDown: boolean;
  #silentUntilMs = 0;

  constructor(influx: Influx, local: LocalInfluxd | null, retryForMs: number) {
    this.#influx = influx;
    this.#local = local;
    this.#retryForMs = retryForMs;
    this.#isDown = local !== null && local.failure() !== null;
  }

  async revive(): Promise<boolean> {
    if (this.#isDown || performance.now() < this.#silentUntilMs) return false;
    const askedAtMs = performance.now();
    const isThere = await (this.#local === null ? answers(this.#influx) : this.#local.revive());
    // Timers may be a little early.
    const hangs = !isThere && performance.now() - askedAtMs >= 0.9 * pingTimeoutMs;
    this.#silentUntilMs = hangs ? performance.now() + silenceMs : 0;
    return isThere;
  }

  async reopen(): Promise<void> {
    if (this.#local !== null && this.#isDown) this.#isDown = !(await this.#local.revive());
    else await this.revive();
  }

  failure(): string | null {
    return this.#isDown ? (this.#local?.failure() ?? null) : null;
  }

  /** Tries at least twice, and revives the database in between. Both may be done twice. */
  async persistently<T>(operation: () => Promise<T>): Promise<T> {
    const deadline = performance.now() + this.#retryForMs;
    for (let waitMs = 100, tries = 1; ; waitMs = Math.min(2 * waitMs, 2000), tries++) {
      if (this.#isDown)
        throw new InfluxError(`InfluxDB did not start: ${this.#local?.failure()}`, null);
      if (performance.now() < this.#silentUntilMs)
        throw new InfluxError(`InfluxDB at ${this.#influx.url} does not answer: it hangs`, null);
      try {
        return await operation();
      } catch (error) {
        if (!(error instanceof InfluxError) || !error.transient) throw error;
        if (tries > 1 && performance.now() + waitMs > deadline) {
          const failure = this.#local?.failure();
          throw failure ? new InfluxError(`${error.message}; ${failure}`, error.status) : error;
        }
      }
      await this.revive();
      await delay(waitMs);
    }
  }
}

/** Set by the image, whose k6 has xk6-output-influxdb. */
const outputVariable = 'BAKEOFF_K6_OUTPUT';
const outputs = ['influxdb', 'xk6-influxdb'];

/**
 * Chooses xk6-output-influxdb if BAKEOFF_K6_OUTPUT names it and the database is 2.x, else k6's own output. Returns a function, because a
 * local database's port may change.
 * @throws UserError for an unknown output; InfluxError if the organization is unclear
 */
async function chooseK6Output(influx: Influx, version: string): Promise<() => SampleOutput> {
  const wanted = process.env[outputVariable] || 'influxdb';
  if (!outputs.includes(wanted))
    throw new UserError(
      `${outputVariable}=${wanted} is not an output of k6 that bakeoff knows: set it to ${outputs.join(' or ')}, or unset it`,
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
