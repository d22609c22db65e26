// The influxd that bakeoff starts: its folder, lock, config, user and restarts.
import { randomBytes } from 'node:crypto';
import { closeSync, existsSync, readFileSync, statfsSync, statSync, writeFileSync } from 'node:fs';
import { getPriority } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { callerOwning } from '../../../bin/trust.mjs';
import { messageOf, UserError, systemError } from '../../errors.ts';
import { linkOf, makeFolder, makePrivateFolder, namesIn, textOf } from '../../files.ts';
import { holder, lockFile, writeHolder } from '../../machine/locks.ts';
import {
  continueWhenOrphaned,
  leaveToCaller,
  pin,
  startLogged,
  prioritise,
  withoutVariables,
  type Child,
} from '../../process.ts';
import { lastLines } from '../../program-logs.ts';
import { mayGoFirst } from '../../runner/priority.ts';
import { listensOn, loopbackAddress } from '../../servers/ports.ts';
import { database, type Influx } from '../../influx/address.ts';
import { answers, hasDatabase, InfluxError, patiently, query } from '../../influx/client.ts';
import { hasUser, makeFirstUser, socketName } from './first-user.ts';
import { quoteIdentifier, quoteString } from '../../influx/line-protocol.ts';

export interface LocalOptions {
  /** Default: the influxd on PATH. */
  influxdBinary?: string | undefined;
  /** Keeps the data, config, log and lock of the local influxd; made if missing. */
  folder: string;
  /** `view` makes no database at a URL and does not move influxd. Default `run`. */
  purpose?: 'run' | 'view';
  /** Cores of the local influxd: the generator's. */
  cpus?: readonly number[] | undefined;
  /** Ends the wait for the start, which then rejects with the signal's reason. */
  signal?: AbortSignal | undefined;
}

/** influxd opens every shard of the history before it listens, so on a busy machine its start may take longer than a request may. */
export const startTimeoutMs = 120_000;
/** How long another influxd may hold the folder without an answer: it starts or ends. */
const otherTimeoutMs = 60_000;
/** A tenth of a core for which it contends with k6, which may go first: several times the need of a load's points. */
const niceness = (): number => (mayGoFirst() ? 0 : Math.min(getPriority() + 10, 19));
const user = 'bakeoff';

const lockIn = (folder: string): string => join(folder, 'influxd.lock');
const logIn = (folder: string): string => join(folder, 'influxd.log');
const passwordIn = (folder: string): string => join(folder, 'password');
/** The influxd that was started last in the folder. */
const pidIn = (folder: string): number => Number(textOf(lockIn(folder)));

/**
 * Starts the influxd of a folder, or joins the one that runs. If it does not start for a run, `failure` says why. Throws UserError, or
 * the signal's reason.
 */
export async function startLocalInfluxd(options: LocalOptions) {
  const { folder, purpose = 'run', cpus } = options;
  const influx: Influx = { url: '', credentials: null };
  /** Null when another process has started it. */
  let child: Child | null = null;
  let pid = 0;
  let failure: string | null = null;
  let stopped = false;
  let reviving: Promise<boolean> | null = null;

  async function startOrJoin(isRestart: boolean, signal?: AbortSignal) {
    makePrivateFolder(folder);
    const deadline = performance.now() + otherTimeoutMs;
    for (let waitSeconds = 0; ; waitSeconds = 1) {
      signal?.throwIfAborted();
      const lock = await lockFile(lockIn(folder), waitSeconds);
      if (lock !== null) {
        const launched = launchUsable({ ...options, signal }, lock, isRestart);
        child = await launched.finally(() => closeSync(lock));
        pid = child.pid;
        Object.assign(influx, reachedIn(folder));
        return;
      }
      const other = await runningInfluxd(folder);
      if (other !== undefined) {
        child = null;
        pid = pidIn(folder);
        Object.assign(influx, other);
        // It must not use the server's cores.
        if (purpose === 'run' && cpus !== undefined) await pin(pid, cpus);
        return;
      }
      if (performance.now() > deadline) throw noAnswer(folder);
    }
  }

  async function revive() {
    if (stopped) return false;
    // A busy influxd gets a second chance.
    if (
      (await keepsData(pid, influx, folder)) &&
      ((await answers(influx)) || (await answers(influx)))
    )
      return true;
    try {
      await child?.stop(1000);
      await startOrJoin(true);
      failure = null;
      return true;
    } catch (error) {
      failure = messageOf(fileError(error, folder));
      return false;
    }
  }

  await startOrJoin(false, options.signal).catch((error: unknown) => {
    const explained = fileError(error, folder);
    // A run can do without it.
    if (purpose !== 'run' || options.signal?.aborted || !(explained instanceof UserError))
      throw explained;
    failure = explained.message;
  });
  return {
    influx,
    /** Returns why the last restart failed; null if it did not. */
    failure: () => failure,
    /** Returns whether influxd answers, after a restart if needed. */
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

/**
 * Returns whether the process is still the influxd of the folder, and has its files. Another program may use its port by now; and after its
 * files were deleted, influxd goes on and answers from memory.
 */
async function keepsData(pid: number, { url }: Influx, folder: string): Promise<boolean> {
  return (
    pidIn(folder) === pid &&
    listensOn(pid, { address: loopbackAddress, port: Number(url.split(':')[2]) }) &&
    ['meta', 'data', 'wal', 'password'].every((name) => existsSync(join(folder, name))) &&
    !(await keepsDeletedFiles(pid, folder))
  );
}

function noAnswer(folder: string): UserError {
  return new UserError(
    `influxd${holder(lockIn(folder))} uses ${folder} and does not answer: end it, then start again`,
  );
}

const compactionMs = 300;

/** Returns whether influxd has files open that others have deleted. Files that it deletes itself, after a compaction, it closes soon. */
async function keepsDeletedFiles(pid: number, folder: string): Promise<boolean> {
  if (!hasDeletedFiles(pid, folder)) return false;
  await delay(compactionMs);
  return hasDeletedFiles(pid, folder);
}

function hasDeletedFiles(pid: number, folder: string): boolean {
  const open = namesIn(`/proc/${pid}/fd`).map((name) => linkOf(`/proc/${pid}/fd/${name}`));
  return open.some((file) => file.startsWith(`${folder}/`) && file.endsWith(' (deleted)'));
}

function reachedIn(folder: string): Influx {
  return {
    url: `http://${addressIn(textOf(logIn(folder)))}`,
    credentials: { user, password: textOf(passwordIn(folder)) },
  };
}

function addressIn(log: string): string | undefined {
  return [...log.matchAll(/msg="Listening on HTTP".* addr=(127\.0\.0\.1:\d+)/g)].at(-1)?.[1];
}

/** The influxd that has the folder's lock; undefined while it does not answer. */
async function runningInfluxd(folder: string): Promise<Influx | undefined> {
  const influx = reachedIn(folder);
  const port = Number(influx.url.split(':')[2]);
  // Another program that got its old port must not see the password.
  if (!port || !listensOn(pidIn(folder), { address: loopbackAddress, port })) return undefined;
  const isReady = (await answers(influx)) && (await hasDatabase(influx).catch(() => false));
  return isReady ? influx : undefined;
}

async function launchUsable(
  options: LocalOptions,
  lock: number,
  isRestart: boolean,
): Promise<Child> {
  const { folder, signal } = options;
  const anyPort = '127.0.0.1:0';
  // Other processes may still use the last address.
  const lastAddress = addressIn(textOf(logIn(folder))) ?? anyPort;
  // influxd makes this folder with the first points. Until then its absence would look like a deletion.
  makeFolder(join(folder, 'wal'));
  const password = randomBytes(24).toString('base64url');
  if (!existsSync(passwordIn(folder)))
    writeFileSync(passwordIn(folder), password, { mode: 0o600, flush: true });
  if (!isRestart) writeFileSync(logIn(folder), '');
  if (!hasUser(folder)) await launchForUser(options, lock);
  let { child, damaged } = await launch(options, lock, lastAddress).catch((error: unknown) => {
    const isTaken = lastAddress !== anyPort && messageOf(error).includes(' bind: ');
    if (!isTaken || options.signal?.aborted) throw error;
    return launch(options, lock, anyPort);
  });
  if (damaged !== undefined) {
    // influxd would write behind the old end of the truncated file, and its next start would discard all new points.
    await child.stop(10_000);
    if (!isRestart)
      console.error(
        `InfluxDB found ${damaged} damaged, as after a crash: the newest figures of earlier runs may be lost`,
      );
    ({ child } = await launch(options, lock, addressIn(textOf(logIn(folder))) ?? anyPort));
  }
  try {
    await makeDatabase(folder, child, signal);
  } catch (error) {
    await child.stop(10_000);
    throw error;
  }
  // It shares the generator's cores: queries may wait, the load may not.
  await prioritise(child.pid, niceness());
  return child;
}

/** Starts an influxd that only this user can reach, makes the database user, and ends it. */
async function launchForUser(options: LocalOptions, lock: number): Promise<void> {
  const { folder, signal } = options;
  const { credentials } = reachedIn(folder);
  const password = quoteString(credentials?.password ?? '');
  const statement = `CREATE USER ${quoteIdentifier(user)} WITH PASSWORD ${password} WITH ALL PRIVILEGES`;
  const { child, stillStarts } = await startInfluxd(options, lock, nowhere, true);
  try {
    const check = async () => {
      signal?.throwIfAborted();
      await stillStarts();
    };
    await makeFirstUser(folder, child.pid, { url: '', credentials }, statement, check);
  } finally {
    await child.stop(10_000);
  }
}

async function makeDatabase(folder: string, child: Child, signal?: AbortSignal): Promise<void> {
  const influx = reachedIn(folder);
  const statement = `CREATE DATABASE ${quoteIdentifier(database)}`;
  try {
    await patiently(startTimeoutMs, async () => {
      signal?.throwIfAborted();
      if (child.hasExited()) throw new UserError('influxd ended at its start');
      await query(influx, statement);
    });
  } catch (error) {
    if (!(error instanceof InfluxError) || (error.status !== 401 && error.status !== 403))
      throw error;
    throw new UserError(
      `influxd refuses the password in ${passwordIn(folder)} (status ${error.status}): put back the one that its data was made with, or move ${folder} away to start afresh`,
    );
  }
}

/**
 * Starts influxd. `stillStarts` throws UserError once influxd has ended, or has taken too long.
 * @param bySocket it listens in its folder too
 */
async function startInfluxd(
  { influxdBinary = 'influxd', folder, cpus }: LocalOptions,
  lock: number,
  address: string,
  bySocket = false,
) {
  const [configFile, logFile] = [join(folder, 'influxd.conf'), logIn(folder)];
  const logStart = statSync(logFile, { throwIfNoEntry: false })?.size ?? 0;
  writeFileSync(configFile, influxdConfig(folder, address, bySocket));
  // The owner of the folder starts an influxd there too.
  const caller = callerOwning(folder);
  await leaveToCaller(folder);
  // INFLUXDB_… variables would override the config file.
  const env = withoutVariables(process.env, 'INFLUXDB_');
  const args = ['run', '-config', configFile];
  const child = await startLogged(
    {
      command: influxdBinary,
      args,
      user: caller,
      cwd: folder,
      cpus,
      env,
      orphanedBy: 'TERM',
      isSpared: true,
    },
    logFile,
    'a',
    lock,
  );
  continueWhenOrphaned(child);
  writeHolder(lock, child.pid);
  const deadline = performance.now() + startTimeoutMs;
  return {
    child,
    log: () => readFileSync(logFile).subarray(logStart).toString(),
    async stillStarts() {
      if (child.hasExited())
        throw new UserError(
          `influxd does not start: ${await startError(logFile, logStart)} (its log: ${logFile})`,
        );
      if (performance.now() > deadline)
        throw new UserError(
          `influxd did not listen within ${startTimeoutMs / 1000} s (its log: ${logFile})`,
        );
    },
  };
}

/** Starts influxd and returns once it listens, with the file that it had to truncate, if any. */
async function launch(options: LocalOptions, lock: number, address: string) {
  const { child, log, stillStarts } = await startInfluxd(options, lock, address);
  try {
    for (;;) {
      options.signal?.throwIfAborted();
      await stillStarts();
      const logText = log();
      // influxd picks a free port itself, so that no other program can take the port in between.
      const at = addressIn(logText);
      if (at !== undefined && (await answers({ url: `http://${at}`, credentials: null })))
        return { child, damaged: /msg="File corrupt".* path=("[^"]*"|\S+)/.exec(logText)?.[1] };
      await delay(20);
    }
  } catch (error) {
    await child.stop(1000);
    throw error;
  }
}

/** A failed start ends its log with a plain line. On a full disk the log stays empty. */
async function startError(logFile: string, logStart: number): Promise<string> {
  const lines = await lastLines(logFile, logStart);
  return (
    lines.findLast((text) => /^(?!ts=)| lvl=(error|fatal) /.test(text)) ??
    lines.at(-1) ??
    (statfsSync(logFile).bavail === 0 ? 'the disk is full' : 'it ended without a word')
  );
}

function fileError(error: unknown, folder: string): unknown {
  const { code } = systemError(error);
  if (error instanceof UserError || code === undefined) return error;
  const reason = code === 'ENOSPC' ? 'the disk is full' : messageOf(error);
  return new UserError(`cannot use ${folder} for InfluxDB's data: ${reason}`);
}

/** An address that nothing can connect to: TCP does not reach multicast addresses. */
const nowhere = '224.0.0.1:0';

/** Config file of the local influxd. Versions ignore keys that they do not know. */
function influxdConfig(folder: string, address: string, bySocket: boolean): string {
  const path = (name: string) => JSON.stringify(join(folder, name));
  return `# Written by bakeoff at every start.
reporting-disabled = true
reporting-enabled = false
# Backups need no password and get all data, and their listener cannot be turned off.
bind-address = ${JSON.stringify(nowhere)}

[meta]
  dir = ${path('meta')}

[data]
  dir = ${path('data')}
  wal-dir = ${path('wal')}
  # On disk, so that a long history costs neither memory nor a slow start.
  index-version = "tsi1"
  query-log-enabled = false

[http]
  bind-address = ${JSON.stringify(address)}
  unix-socket-enabled = ${bySocket}
  bind-socket = ${JSON.stringify(socketName)}
  auth-enabled = true
  log-enabled = false
  pprof-enabled = false
  # k6 sends everything that it has in one request.
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
