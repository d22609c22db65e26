// The database of a run: an influxd that bakeoff starts, or the InfluxDB 1.x or 2.x of --influx.
import { setTimeout as delay } from 'node:timers/promises';
import { UserError } from '../errors.ts';
import { typed } from '../setup/paths.ts';
import {
  answers,
  chooseK6Output,
  hasDatabase,
  InfluxError,
  influxToken,
  parseInfluxUrl,
  ping,
  pingTimeoutMs,
  query,
  writeLines,
  type Influx,
} from './client.ts';
import { quoteIdentifier } from './line-protocol.ts';
import { patiently, startLocalInfluxd, type LocalOptions } from './local-influxd.ts';
import { database } from './schema.ts';

interface StoreOptions extends LocalOptions {
  /** Value of --influx; without it a local influxd is started. */
  url?: string | undefined;
  /** How long a request is tried again while the database restarts or is busy; default 10 s. */
  retryForMs?: number;
}

export type Store = Awaited<ReturnType<typeof storeOn>>;

/**
 * Opens the database, which is made if missing. A local influxd that does not start for a run leaves a store that is down until `reopen`.
 * Throws a UserError with the remedy.
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
    const version = local.failure() === null ? await patiently(ask) : '';
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

async function storeOn(
  influx: Influx,
  version: string,
  local: Awaited<ReturnType<typeof startLocalInfluxd>> | null,
  retryForMs = 10_000,
) {
  // The version of a local influxd is unknown until it starts.
  const k6Output = await chooseK6Output(influx, local === null ? version : '1.');
  let isDown = local !== null && local.failure() !== null;
  let silentUntilMs = 0;
  let kept: readonly string[] = [];

  async function revive(): Promise<boolean> {
    if (isDown || performance.now() < silentUntilMs) return false;
    const askedAtMs = performance.now();
    const isThere = await (local === null ? answers(influx) : local.revive());
    // Timers may be a little early.
    const hangs = !isThere && performance.now() - askedAtMs >= 0.9 * pingTimeoutMs;
    silentUntilMs = hangs ? performance.now() + silenceMs : 0;
    return isThere;
  }

  async function reopen(): Promise<void> {
    if (local !== null && isDown) isDown = !(await local.revive());
    else await revive();
  }

  /** Tries at least twice, and revives the database in between. Both may be done twice. */
  async function persistently<T>(operation: () => Promise<T>) {
    const deadline = performance.now() + retryForMs;
    for (let waitMs = 100, tries = 1; ; waitMs = Math.min(2 * waitMs, 2000), tries++) {
      if (isDown) throw new InfluxError(`InfluxDB did not start: ${local?.failure()}`, null);
      if (performance.now() < silentUntilMs)
        throw new InfluxError(`InfluxDB at ${influx.url} does not answer: it hangs`, null);
      try {
        return await operation();
      } catch (error) {
        if (!(error instanceof InfluxError) || !error.transient) throw error;
        if (tries > 1 && performance.now() + waitMs > deadline) {
          const failure = local?.failure();
          throw failure ? new InfluxError(`${error.message}; ${failure}`, error.status) : error;
        }
      }
      await revive();
      await delay(waitMs);
    }
  }

  /** Writes line protocol. Throws an InfluxError when the database refuses it. */
  const write = (lines: readonly string[]) => {
    const filled = lines.filter((line) => line !== '');
    return persistently(() => writeLines(influx, filled));
  };
  return {
    /** For direct access. The url of a local influxd may change when it is started again. */
    influx,
    /** e.g. "1.6.7" */
    version,
    /** Process id of the local influxd; null for an external database. */
    pid: () => local?.pid() ?? null,
    /** How k6 writes there. Ask again for every round: the port may have changed. */
    k6Output,
    write,
    /** Like write, for lines that no file has: if the database is unavailable, the next call sends them. */
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
    query: (influxql: string) => persistently(() => query(influx, influxql)),
    /**
     * Starts a local influxd again if it has died, hangs or has lost its folder. Returns whether the database answers.
     * A database that hung less than 30 s ago gets no request, so that it delays a run only once.
     */
    revive,
    /** Like revive. Also starts a local influxd that did not start before, which may take minutes. */
    reopen,
    /** Why the local influxd did not start; null if it did. */
    failure: () => (isDown ? (local?.failure() ?? null) : null),
    /** Ends a local influxd. May be called twice. */
    close: async () => local?.stop(),
  };
}
