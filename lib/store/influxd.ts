// Opens the database of a run: a local influxd by default, or somebody's InfluxDB 1.x or 2.x with --influx.
import { setTimeout as delay } from 'node:timers/promises';
import { UserError } from '../errors.ts';
import { typed } from '../setup/paths.ts';
import {
  answers,
  InfluxError,
  parseInfluxUrl,
  ping,
  pingTimeoutMs,
  query,
  writeLines,
  type Influx,
  type Series,
} from './client.ts';
import { chooseK6Output, type K6Output } from './k6-output.ts';
import { quoteIdentifier } from './line-protocol.ts';
import { startLocalInfluxd, type LocalInfluxd, type LocalOptions } from './local.ts';

/** Without `url` a local influxd is started, which most of them are for. */
interface StoreOptions extends Partial<LocalOptions> {
  folder: string;
  /** Value of --influx. */
  url?: string;
  /** How long a request is tried again while the database restarts or is busy; default 10 s. */
  retryForMs?: number;
}

export interface Store {
  /** For who reads the database directly. The url of a local one may change when it is revived. */
  influx: Influx;
  /** e.g. "1.6.7" */
  version: string;
  /** Process id of the local influxd as it runs now; null for an external one. */
  pid(): number | null;
  /** How k6 writes there. Ask anew for every round: the port may have changed. */
  k6Output(): K6Output;
  /** Writes line protocol (empty lines are skipped). Throws an InfluxError when the database does not take it. */
  write(lines: readonly string[]): Promise<void>;
  /** The same of lines that are nowhere else: what the database is away for is kept, and goes before the next of them. */
  writeOrKeep(lines: readonly string[]): Promise<void>;
  /** Runs one InfluxQL statement. Throws an InfluxError. */
  query(influxql: string): Promise<Series[]>;
  /**
   * Starts a local influxd again when it has died, hangs or has lost its folder. Returns whether the database answers; one
   * that hung a moment ago is not asked, unless `anew`, so that it costs a run its time once.
   */
  revive(anew?: boolean): Promise<boolean>;
  /** Ends a local influxd. May be called twice. */
  close(): Promise<void>;
}

/** Opens the store, its database made where needed (not to look at somebody's). Throws a UserError: no influxd, folder in use, unreachable, no access, no bucket. */
export async function openStore(options: StoreOptions): Promise<Store> {
  const { purpose = 'run', url, retryForMs } = options;
  if (url !== undefined) {
    const influx = parseInfluxUrl(url, process.env['INFLUX_TOKEN']);
    return await storeOn(influx, await prepare(influx, purpose === 'run'), null, retryForMs);
  }
  const local = await startLocalInfluxd({
    ...options,
    influxdBinary: options.influxdBinary ?? 'influxd',
    purpose,
  });
  try {
    return await storeOn(local.influx, await prepare(local.influx, true), local, retryForMs);
  } catch (error) {
    await local.stop();
    throw error;
  }
}

/** Makes sure that the database is there and may be read; makes it when `mayMake`. Returns the version. */
async function prepare(influx: Influx, mayMake: boolean): Promise<string> {
  const version = await ping(influx);
  const name = influx.database;
  const databases = await query(influx, 'SHOW DATABASES');
  if (databases.some((series) => series.values.some(([value]) => value === name))) return version;
  if (!version.startsWith('1.')) {
    throw new UserError(
      `InfluxDB ${version} at ${influx.url} shows this token no bucket ${name}: make it (influx bucket create --name ${name}), or give a token that may read and write it`,
    );
  }
  if (!mayMake)
    throw new UserError(
      `InfluxDB ${version} at ${influx.url} has no database ${name} yet: run a scenario into it first (${typed('scenario')} NAME --influx URL)`,
    );
  try {
    await query(influx, `CREATE DATABASE ${quoteIdentifier(name)}`);
  } catch (error) {
    if (!(error instanceof InfluxError)) throw error;
    throw new UserError(`${error.message}; somebody who may has to run: CREATE DATABASE ${name}`);
  }
  return version;
}

/** For how long a database that hung is let alone. */
const silenceMs = 30_000;

async function storeOn(
  influx: Influx,
  version: string,
  local: LocalInfluxd | null,
  retryForMs = 10_000,
): Promise<Store> {
  const k6Output = await chooseK6Output(influx, version);
  let silentUntilMs = 0;
  let kept: readonly string[] = [];

  async function revive(anew = false): Promise<boolean> {
    if (!anew && performance.now() < silentUntilMs) return false;
    const askedAtMs = performance.now();
    const there = await (local === null ? answers(influx) : local.revive());
    // Timers may be a little early.
    silentUntilMs =
      !there && performance.now() - askedAtMs >= 0.9 * pingTimeoutMs
        ? performance.now() + silenceMs
        : 0;
    return there;
  }

  /**
   * A local influxd that has died is started again on the way; both writing and asking twice do no harm. There is always a second
   * try: one request may wait for as long as all tries together should take.
   */
  async function persistently<T>(operation: () => Promise<T>): Promise<T> {
    const deadline = performance.now() + retryForMs;
    for (let waitMs = 100, tries = 1; ; waitMs = Math.min(2 * waitMs, 2000), tries++) {
      if (performance.now() < silentUntilMs)
        throw new InfluxError(`InfluxDB at ${influx.url} does not answer: it hangs`, null);
      try {
        return await operation();
      } catch (error) {
        if (!(error instanceof InfluxError) || !error.transient) throw error;
        if (tries > 1 && performance.now() + waitMs > deadline) {
          const failure = local?.failure() ?? null;
          throw failure === null
            ? error
            : new InfluxError(`${error.message}; ${failure}`, error.status);
        }
      }
      await revive();
      await delay(waitMs);
    }
  }

  async function write(lines: readonly string[]): Promise<void> {
    const points = lines.filter((line) => line !== '');
    await persistently(() => writeLines(influx, points));
  }

  return {
    influx,
    version,
    pid: () => local?.pid() ?? null,
    k6Output,
    write,
    writeOrKeep: async (lines) => {
      const all = [...kept, ...lines];
      kept = [];
      await write(all).catch((error: unknown) => {
        // What it refuses it would refuse again. Another call may have failed meanwhile.
        if (error instanceof InfluxError && error.transient) kept = [...all, ...kept];
        throw error;
      });
    },
    query: (influxql) => persistently(() => query(influx, influxql)),
    revive,
    close: async () => local?.stop(),
  };
}
