// Opens the database of a run: a local influxd by default, or somebody's InfluxDB 1.x or 2.x with --influx.
import { randomBytes } from 'node:crypto';
import { closeSync, existsSync, readFileSync, statSync, statfsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { UserError, messageOf } from '../errors.ts';
import { makeFolder, makePrivateFolder, textOf } from '../files.ts';
import { holder, lockFile, writeHolder } from '../lock-file.ts';
import { type Child, lastLines, pin, startLogged, weighSession, withoutVariables } from '../process.ts';
import { listensOn, loopbackAddress } from '../servers/ports.ts';
import { typed } from '../setup/paths.ts';
import { type Influx, InfluxError, type K6Output, type Series, answers, chooseK6Output, parseInfluxUrl, ping, pingTimeoutMs, query, writeLines } from './client.ts';
import { quoteIdentifier, quoteString } from './line-protocol.ts';
import { database } from './schema.ts';

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

// The influxd that bakeoff runs itself: one folder, one influxd on it.
//
// influxd does not notice another influxd on the same folder. So it holds `influxd.lock` while it runs (it inherits the
// descriptor). The process that gets the lock starts influxd and ends it. Other processes join it, and start it again after
// it has ended.
//
// Every user of the machine can reach loopback, so influxd asks for a password. Each folder has its own, kept in a file that
// only its owner can read.
export interface LocalInfluxd {
  /** Where it listens now. After a revival it has another port only if the old one was taken. */
  influx: Influx;
  pid(): number;
  /** Starts influxd again when it has ended, hangs or has lost its files, or joins the one that is there. Returns whether it answers; if not, `failure()` says why. */
  revive(): Promise<boolean>;
  failure(): string | null;
  /** Ends influxd if it was started here. May be called twice. */
  stop(): Promise<void>;
}

export interface LocalOptions {
  /** As lib/setup found it. */
  influxdBinary: string;
  /** Its data (kept from run to run), config, log and lock go below it; made when it is not there. */
  folder: string;
  /** To measure, or to look at results. */
  purpose: 'run' | 'view';
  /** The generator's cores. */
  cpus?: readonly number[] | undefined;
  /** Ends the wait for the start, which then rejects with its reason. */
  signal?: AbortSignal | undefined;
}

/** How long a start may take: influxd opens every shard of the history before it listens. */
const startTimeoutMs = 120_000;
/** How long to wait for an influxd that does not answer any more to end, as after a killed run. */
const endTimeoutMs = 20_000;
/** A tenth of a core where it is wanted by others too: several times what the points of a load take. */
const lateNice = 10;

const lockName = 'influxd.lock';
const logName = 'influxd.log';
const user = 'bakeoff';

/** Starts influxd, or joins the one of the folder. Throws a UserError when neither is possible. */
export async function startLocalInfluxd(options: LocalOptions): Promise<LocalInfluxd> {
  const { folder, purpose, cpus } = options;
  const influx: Influx = { url: '', database, credentials: null };
  /** Null when somebody else has started it. */
  let child: Child | null = null;
  let pid = 0;
  let failure: string | null = null;
  let stopped = false;
  let reviving: Promise<boolean> | null = null;

  /** @param again continues the log, for a revival */
  async function startOrJoin(again: boolean, signal?: AbortSignal): Promise<void> {
    makePrivateFolder(folder);
    const beganAtMs = performance.now();
    for (let tries = 0; ; tries++) {
      signal?.throwIfAborted();
      const lock = await lockFile(join(folder, lockName), tries === 0 ? 0 : 1);
      if (lock !== null) {
        const started = await launchInfluxd({ ...options, signal }, lock, again);
        child = started.child;
        pid = child.pid;
        Object.assign(influx, started.influx);
        return;
      }
      const address = addressIn(textOf(join(folder, logName)));
      const found: Influx = {
        ...influx,
        url: `http://${address}`,
        credentials: { user, password: textOf(passwordFile(folder)) },
      };
      // Who else has come to have its port is not told the password.
      const lastPid = holderOf(folder);
      const listens =
        address !== undefined &&
        listensOn(lastPid, { address: loopbackAddress, port: Number(address.split(':')[1]) });
      if (listens && (await isReady(found))) {
        child = null;
        pid = lastPid;
        Object.assign(influx, found);
        // It must not take the server's cores.
        if (purpose === 'run' && cpus !== undefined) await pin(pid, cpus);
        return;
      }
      // One that lives and does not listen is still starting.
      const starts = address === undefined || (!listens && existsSync(`/proc/${lastPid}`));
      if (performance.now() - beganAtMs > (starts ? startTimeoutMs : endTimeoutMs)) {
        throw new UserError(
          `influxd${holder(join(folder, lockName))} uses ${folder} and does not answer: end it, then start again`,
        );
      }
    }
  }

  /** After its files were deleted, influxd goes on and answers from memory. */
  function keepsData(): boolean {
    return (
      holderOf(folder) === pid &&
      ['meta', 'data', 'wal', 'password'].every((name) => existsSync(join(folder, name)))
    );
  }

  async function revive(): Promise<boolean> {
    if (stopped) return false;
    // One that is busy gets a second chance.
    if (keepsData() && ((await answers(influx)) || (await answers(influx)))) return true;
    try {
      if (child !== null) {
        await Promise.race([child.stop(1000), delay(5000, undefined, { ref: false })]);
        // It waits for a disk that does not answer.
        if (!child.hasExited())
          throw new UserError(`influxd (process ${child.pid}) hangs and cannot be ended`);
      }
      await startOrJoin(true);
      failure = null;
      return true;
    } catch (error) {
      failure = messageOf(fileError(error, folder));
      return false;
    }
  }

  await startOrJoin(false, options.signal).catch((error: unknown) => {
    throw fileError(error, folder);
  });
  return {
    influx,
    pid: () => pid,
    failure: () => failure,
    revive: () =>
      (reviving ??= revive().finally(() => {
        reviving = null;
      })),
    stop: async () => {
      stopped = true;
      await reviving;
      await child?.stop(10_000);
    },
  };
}

function passwordFile(folder: string): string {
  return join(folder, 'password');
}

/** The process id of the influxd that was started last in the folder. */
function holderOf(folder: string): number {
  return Number(textOf(join(folder, lockName)));
}

/** Returns whether influxd accepts the password and has the database. */
async function isReady(influx: Influx): Promise<boolean> {
  if (!(await answers(influx))) return false;
  const databases = await query(influx, 'SHOW DATABASES').catch(() => []);
  return databases.some(({ values }) => values.some(([name]) => name === database));
}

/** Starts influxd at its last address, which other processes may still use, or on any free port. It takes over the lock. */
async function launchInfluxd(
  options: LocalOptions,
  lock: number,
  again: boolean,
): Promise<{ child: Child; influx: Influx }> {
  const { folder } = options;
  const logFile = join(folder, logName);
  const anyPort = '127.0.0.1:0';
  const lastAddress = addressIn(textOf(logFile)) ?? anyPort;
  try {
    // influxd makes this folder with its first points only, so until then it would look deleted.
    makeFolder(join(folder, 'wal'));
    if (!existsSync(passwordFile(folder)))
      writeFileSync(passwordFile(folder), randomBytes(24).toString('base64url'), {
        mode: 0o600,
        flush: true,
      });
    if (!again) writeFileSync(logFile, '');
    let started = await launch(options, lock, lastAddress).catch((error: unknown) => {
      if (
        lastAddress === anyPort ||
        options.signal?.aborted ||
        !messageOf(error).includes(' bind: ')
      )
        throw error;
      return launch(options, lock, anyPort);
    });
    if (started.damaged !== undefined) {
      // influxd has truncated the file, but would write on behind its old end. Its next start would then discard all new points.
      await started.child.stop(10_000);
      if (!again)
        console.error(
          `InfluxDB found ${started.damaged} damaged, as after a crash: the newest figures of earlier runs may be lost`,
        );
      started = await launch(options, lock, started.address);
    }
    const { child, address } = started;
    const influx: Influx = {
      url: `http://${address}`,
      database,
      credentials: { user, password: readFileSync(passwordFile(folder), 'utf8') },
    };
    await makeUserAndDatabase(influx, folder).catch(async (error: unknown) => {
      await child.stop(10_000);
      throw error;
    });
    // It shares the generator's cores: queries may wait, the load may not.
    await weighSession(child.pid, lateNice);
    return { child, influx };
  } finally {
    closeSync(lock);
  }
}

/** Creates the user and the database if they are missing. Without users, influxd accepts nothing but the creation of the first one. */
async function makeUserAndDatabase(influx: Influx, folder: string): Promise<void> {
  const password = influx.credentials?.password ?? '';
  try {
    await query(
      influx,
      `CREATE USER ${quoteIdentifier(user)} WITH PASSWORD ${quoteString(password)} WITH ALL PRIVILEGES`,
    );
    await query(influx, `CREATE DATABASE ${quoteIdentifier(database)}`);
  } catch (error) {
    if (!(error instanceof InfluxError) || (error.status !== 401 && error.status !== 403))
      throw error;
    throw new UserError(
      `influxd does not take the password in ${passwordFile(folder)} (status ${error.status}): put back the one that its data was made with, or move ${folder} away to begin anew`,
    );
  }
}

/** Starts influxd, which takes over the lock, and returns once it listens. `damaged` is a file that it had to truncate. */
async function launch(
  options: LocalOptions,
  lock: number,
  address: string,
): Promise<{ child: Child; address: string; damaged: string | undefined }> {
  const { influxdBinary, folder, cpus, signal } = options;
  const [configFile, logFile] = [join(folder, 'influxd.conf'), join(folder, logName)];
  const logStart = statSync(logFile, { throwIfNoEntry: false })?.size ?? 0;
  writeFileSync(configFile, influxdConfig(folder, address));
  // INFLUXDB_… variables would override the config file.
  const env = withoutVariables(process.env, 'INFLUXDB_');
  const child = await startLogged(
    { command: influxdBinary, args: ['run', '-config', configFile], cwd: folder, cpus, env },
    logFile,
    'a',
    lock,
  );
  try {
    writeHolder(lock, child.pid);
    return { child, ...(await listening(child, logFile, logStart, signal)) };
  } catch (error) {
    await child.stop(1000);
    throw error;
  }
}

function addressIn(log: string): string | undefined {
  return [...log.matchAll(/msg="Listening on HTTP".* addr=(127\.0\.0\.1:\d+)/g)].at(-1)?.[1];
}

/** Waits for what influxd's own log says, its address among it: it picks a free port itself, so nobody can take it in between. */
async function listening(
  child: Child,
  logFile: string,
  logStart: number,
  signal: AbortSignal | undefined,
): Promise<{ address: string; damaged: string | undefined }> {
  const deadline = performance.now() + startTimeoutMs;
  for (;;) {
    signal?.throwIfAborted();
    if (child.hasExited()) {
      const lines = await lastLines(logFile, logStart);
      // A failed start ends in a plain line such as "run: open server: …".
      const complaint =
        lines.findLast((text) => !text.startsWith('ts=') || / lvl=(error|fatal) /.test(text)) ??
        lines.at(-1);
      // With a full disk it cannot write its last words either.
      const reason =
        complaint ??
        (statfsSync(logFile).bavail === 0 ? 'the disk is full' : 'it ended without a word');
      throw new UserError(`influxd does not start: ${reason} (its log: ${logFile})`);
    }
    const log = readFileSync(logFile).subarray(logStart).toString();
    const address = addressIn(log);
    if (
      address !== undefined &&
      (await answers({ url: `http://${address}`, database, credentials: null }))
    ) {
      return { address, damaged: /msg="File corrupt".* path=("[^"]*"|\S+)/.exec(log)?.[1] };
    }
    if (performance.now() > deadline)
      throw new UserError(
        `influxd did not listen within ${startTimeoutMs / 1000} s (its log: ${logFile})`,
      );
    await delay(20);
  }
}

function fileError(error: unknown, folder: string): unknown {
  const code = (error as NodeJS.ErrnoException).code;
  if (error instanceof UserError || code === undefined) return error;
  const reason = code === 'ENOSPC' ? 'the disk is full' : (error as Error).message;
  return new UserError(`cannot use ${folder} for InfluxDB's data: ${reason}`);
}

/**
 * An address that influxd can listen on and nobody connect to: the kernel makes no TCP connection to a multicast group.
 * influxd cannot be told to leave a listener out.
 */
const nowhere = '224.0.0.1:0';

/** The config file of the influxd that bakeoff runs itself. Keys that a version does not know are ignored by it (Debian's 1.6 says reporting-enabled, others reporting-disabled). */
export function influxdConfig(folder: string, address: string): string {
  const path = (name: string): string => JSON.stringify(join(folder, name));
  return `# Written by bakeoff at every start.
reporting-disabled = true
reporting-enabled = false
# RPC, for backups, asks for no password and hands out all data.
bind-address = "${nowhere}"

[meta]
  dir = ${path('meta')}

[data]
  dir = ${path('data')}
  wal-dir = ${path('wal')}
  # On disk, so that a long history of runs costs neither memory nor a slow start.
  index-version = "tsi1"
  query-log-enabled = false

[http]
  bind-address = ${JSON.stringify(address)}
  auth-enabled = true
  log-enabled = false
  pprof-enabled = false
  # k6 sends what it has in one request, however large.
  max-body-size = 0

[logging]
  format = "logfmt"
  suppress-logo = true

[monitor]
  store-enabled = false

[continuous_queries]
  enabled = false

[retention]
  enabled = false

[shard-precreation]
  enabled = false

[subscriber]
  enabled = false
`;
}
