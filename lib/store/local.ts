// The influxd that bakeoff runs itself: one folder, one influxd on it, ended with its last user.
//
// Three locks keep it that way. `run.lock` is held by what measures and `view.lock` by what only looks: of each there is
// one at a time, and the two share an influxd. `influxd.lock` is held by influxd itself (it inherits the descriptor), since
// influxd does not notice a second one on the same folders: who gets it starts influxd, and the other one joins. When a
// runner was killed, the next one waits here until the old influxd has ended.
//
// influxd asks for a password, and lets whoever comes first make its first user. So that is done before it listens: in a
// start of its own, by a socket in the folder, which is its owner's alone.
import { closeSync, existsSync, fstatSync, readFileSync, statfsSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { messageOf, UserError } from '../errors.ts';
import { lastLines } from '../log-file.ts';
import { pin, startLogged, weighSession, withoutVariables, type Child } from '../process.ts';
import { textOf } from '../read-if-there.ts';
import { answers, InfluxError, query, type Influx } from './client.ts';
import { influxdConfig, type InfluxdAccess } from './influxd-config.ts';
import { keptCredentials, lacksUser, makeUser, passwordFile } from './influxd-user.ts';
import { holder, lockFile, takeLock, writeHolder } from '../lock-file.ts';
import { makePrivateFolder } from '../folders.ts';
import { quoteIdentifier } from './line-protocol.ts';
import { database } from './schema.ts';

export interface LocalInfluxd {
  /** Where it listens now; another port after a revival only when somebody else has taken the old one. */
  influx: Influx;
  pid(): number;
  /** Starts it again when it has ended, hangs or has lost its folder, or joins the one that is there. Whether it answers; when not, `failure()` says why. */
  revive(): Promise<boolean>;
  failure(): string | null;
  /** Gives the folder free, and ends influxd if it was started here: what looks waits for a run to end before. May be called twice. */
  stop(): Promise<void>;
}

/** What the database is opened for: to measure, or to look at what is or will be measured. */
export type Purpose = 'run' | 'view';

export interface LocalOptions {
  /** As lib/setup found it. */
  influxdBinary: string;
  /** Its data (kept from run to run), config, log and locks go below it; made when it is not there. */
  folder: string;
  /** What only looks shares a local influxd with a run. */
  purpose: Purpose;
  /** The generator's cores. */
  cpus?: readonly number[] | undefined;
  /** Ends the wait for the start, which then rejects with its reason. */
  signal?: AbortSignal | undefined;
  /** Told when stop() has to wait for a run that uses the influxd started here. */
  onWait?: (() => void) | undefined;
}

/** How long a start may take: influxd opens every shard of the history before it listens. */
const startTimeoutMs = 120_000;
/** A tenth of a core where it is wanted by others too: several times what the points of a load take. */
const lateNice = 10;
/** How long the influxd of a killed runner may take to end. */
const endingSeconds = 20;

/** Starts influxd, or joins the other purpose's. Throws a UserError when its own purpose has the folder already, or when influxd does not start. */
export async function startLocalInfluxd(options: LocalOptions): Promise<LocalInfluxd> {
  const { folder, purpose } = options;
  let ownLock = await lockFolder(folder, purpose).catch((error: unknown) => { throw fileError(error, folder); });
  const influx: Influx = { url: '', database, credentials: null };
  /** Null when somebody else has started it. */
  let child: Child | null = null;
  let pid = 0;
  let failure: string | null = null;
  let stopped = false;
  let reviving: Promise<boolean> | null = null;

  /** Where the influxd of this folder said last that it listens; undefined where none ever did. */
  const lastAddress = (): string | undefined => addressIn(textOf(join(folder, logName)));

  /** @param oldAddress of before a revival: others go on using it, and the log goes on */
  async function startOrJoin(oldAddress?: string, signal?: AbortSignal): Promise<void> {
    const deadline = performance.now() + startTimeoutMs;
    for (;;) {
      const shared = await isHeld(folder, otherPurpose(purpose));
      signal?.throwIfAborted();
      const lock = await lockFile(join(folder, lockName), shared ? 0 : endingSeconds);
      if (lock !== null) {
        const started = await launchInfluxd({ ...options, signal }, lock, shared ? oldAddress ?? lastAddress() : oldAddress, oldAddress !== undefined);
        child = started.child;
        pid = child.pid;
        influx.url = `http://${started.address}`;
        influx.credentials = keptCredentials(folder);
        return;
      }
      const address = lastAddress();
      if (shared && address !== undefined && await answers({ ...influx, url: `http://${address}` })) {
        child = null;
        pid = Number(readFileSync(join(folder, lockName), 'utf8'));
        influx.url = `http://${address}`;
        influx.credentials = keptCredentials(folder);
        if (influx.credentials === null) throw new UserError(`an older bakeoff${holder(join(folder, `${otherPurpose(purpose)}.lock`))} runs an InfluxDB without a password in ${folder}: end it, then start again`);
        // It must not take the server's cores.
        if (purpose === 'run' && options.cpus !== undefined) await pin(pid, options.cpus);
        return;
      }
      if (!shared || performance.now() > deadline) {
        throw new UserError(`influxd${holder(join(folder, lockName))} of an earlier run has not ended yet and still uses ${folder}: end it, then start again`);
      }
      await delay(50);
    }
  }

  /** influxd goes on where its files were deleted, and answers from what it has in memory. */
  function keepsData(): boolean {
    return !isUnlinked(ownLock) && existsSync(join(folder, 'data')) && !lacksUser(folder);
  }

  async function revive(): Promise<boolean> {
    if (stopped) return false;
    const isKept = keepsData();
    if (isKept && await answers(influx)) return true;
    try {
      if (child !== null && isKept) {
        // The kernel refuses connections to a killed process a moment before we hear of its end.
        await Promise.race([child.exited, delay(1000, undefined, { ref: false })]);
        if (!child.hasExited() && await answers(influx)) return true;
      }
      if (child !== null) {
        await Promise.race([child.stop(1000), delay(5000, undefined, { ref: false })]);
        // It waits for a disk that does not answer.
        if (!child.hasExited()) throw new UserError(`influxd (process ${child.pid}) hangs and cannot be ended`);
      }
      if (isUnlinked(ownLock)) {
        const unlinked = ownLock;
        ownLock = await lockFolder(folder, purpose);
        closeSync(unlinked);
      }
      await startOrJoin(new URL(influx.url).host);
      failure = null;
      return true;
    } catch (error) {
      failure = messageOf(fileError(error, folder));
      return false;
    }
  }

  try {
    await startOrJoin(undefined, options.signal);
  } catch (error) {
    closeSync(ownLock);
    throw fileError(error, folder);
  }
  return {
    influx,
    pid: () => pid,
    failure: () => failure,
    revive: () => (reviving ??= revive().finally(() => { reviving = null; })),
    stop: async () => {
      if (stopped) return;
      stopped = true;
      await reviving;
      if (purpose === 'view' && child !== null && await isHeld(folder, 'run')) {
        options.onWait?.();
        while (!child.hasExited() && await isHeld(folder, 'run')) await delay(250);
      }
      await child?.stop(10_000);
      closeSync(ownLock);
    },
  };
}

const lockName = 'influxd.lock';

function isUnlinked(descriptor: number): boolean {
  return fstatSync(descriptor).nlink === 0;
}

function otherPurpose(purpose: Purpose): Purpose {
  return purpose === 'run' ? 'view' : 'run';
}

async function lockFolder(folder: string, purpose: Purpose): Promise<number> {
  makePrivateFolder(folder);
  return takeLock(join(folder, `${purpose}.lock`), (by) => (purpose === 'run'
    ? `another run of bakeoff${by} is using ${folder}: wait until it is done, or end it`
    : `the database in ${folder} is being shown already${by}: look there, or end it`));
}

/** Whether somebody uses the folder for that purpose. */
async function isHeld(folder: string, purpose: Purpose): Promise<boolean> {
  const lock = await lockFile(join(folder, `${purpose}.lock`));
  if (lock !== null) closeSync(lock);
  return lock === null;
}

/** Starts influxd on an address, or on any free port where there is none or it is taken. It takes over the lock. */
async function launchInfluxd(options: LocalOptions, lock: number, address: string | undefined, keepLog: boolean): Promise<{ child: Child; address: string }> {
  const { folder } = options;
  const listenAt = (at: string): Promise<{ child: Child; ready: string }> => launch(options, lock, { address: at }, async (log) => {
    const found = addressIn(log);
    return found !== undefined && await answers({ url: `http://${found}`, database, credentials: null }) ? found : undefined;
  });
  try {
    if (!keepLog) writeFileSync(join(folder, logName), '');
    if (lacksUser(folder)) await launchForUser(options, lock);
    const anyPort = '127.0.0.1:0';
    const { child, ready } = address === undefined ? await listenAt(anyPort) : await listenAt(address).catch(() => listenAt(anyPort));
    await makeDatabase({ url: `http://${ready}`, database, credentials: keptCredentials(folder) }, folder, child);
    // It shares the generator's cores, and what it is asked by who watches may wait where the load may not.
    await weighSession(child.pid, lateNice);
    return { child, address: ready };
  } finally {
    closeSync(lock);
  }
}

/** Has influxd make its user where nobody else can reach it, and ends it again. */
async function launchForUser(options: LocalOptions, lock: number): Promise<void> {
  const socket = 'setup.sock';
  const { child } = await launch(options, lock, { socket }, async (log) => (log.includes('msg="Listening on unix socket"') ? true : undefined));
  try {
    // A socket's address is no longer than 107 bytes; the folder's may be.
    await makeUser(options.folder, `/proc/${child.pid}/cwd/${socket}`);
  } finally {
    await child.stop(10_000);
  }
}

/** Makes the database where it is not there. Throws a UserError, with influxd ended, when its users and the kept password do not go together. */
async function makeDatabase(influx: Influx, folder: string, child: Child): Promise<void> {
  try {
    await query(influx, `CREATE DATABASE ${quoteIdentifier(database)}`);
  } catch (error) {
    if (!(error instanceof InfluxError) || (error.status !== 401 && error.status !== 403)) return;
    await child.stop(10_000);
    throw new UserError(`influxd does not take the password in ${passwordFile(folder)} (status ${error.status}): put back the one that its data was made with; where the data has no users, remove the file`);
  }
}

/** Starts influxd, which takes over the lock, and returns when `ready` has an answer to what it has logged since. */
async function launch<T>(
  options: LocalOptions, lock: number, access: InfluxdAccess, ready: (log: string) => Promise<T | undefined>,
): Promise<{ child: Child; ready: T }> {
  const { influxdBinary, folder, cpus, signal } = options;
  const [configFile, logFile] = [join(folder, 'influxd.conf'), join(folder, logName)];
  const logStart = statSync(logFile, { throwIfNoEntry: false })?.size ?? 0;
  writeFileSync(configFile, influxdConfig(folder, access));
  // INFLUXDB_… variables would override the config file.
  const env = withoutVariables(process.env, 'INFLUXDB_');
  const child = await startLogged({ command: influxdBinary, args: ['run', '-config', configFile], cwd: folder, cpus, env }, logFile, 'a', lock);
  try {
    writeHolder(lock, child.pid);
    return { child, ready: await started(child, logFile, logStart, ready, signal) };
  } catch (error) {
    await child.stop(1000);
    throw error;
  }
}

const logName = 'influxd.log';

function addressIn(log: string): string | undefined {
  return [...log.matchAll(/msg="Listening on HTTP".* addr=(127\.0\.0\.1:\d+)/g)].at(-1)?.[1];
}

/** What influxd's own log says, its address among it: it picks a free port itself, so nobody can take it in between. */
async function started<T>(child: Child, logFile: string, logStart: number, ready: (log: string) => Promise<T | undefined>, signal: AbortSignal | undefined): Promise<T> {
  const deadline = performance.now() + startTimeoutMs;
  for (;;) {
    signal?.throwIfAborted();
    if (child.hasExited()) {
      const lines = await lastLines(logFile, logStart);
      // A failed start ends in a plain line such as "run: open server: …".
      const complaint = lines.findLast((text) => !text.startsWith('ts=') || / lvl=(error|fatal) /.test(text)) ?? lines.at(-1);
      // With a full disk it cannot write its last words either.
      const reason = complaint ?? (statfsSync(logFile).bavail === 0 ? 'the disk is full' : 'it ended without a word');
      throw new UserError(`influxd does not start: ${reason} (its log: ${logFile})`);
    }
    const answer = await ready(readFileSync(logFile).subarray(logStart).toString());
    if (answer !== undefined) return answer;
    if (performance.now() > deadline) throw new UserError(`influxd did not listen within ${startTimeoutMs / 1000} s (its log: ${logFile})`);
    await delay(20);
  }
}

function fileError(error: unknown, folder: string): unknown {
  const code = (error as NodeJS.ErrnoException).code;
  if (error instanceof UserError || code === undefined) return error;
  const reason = code === 'ENOSPC' ? 'the disk is full' : (error as Error).message;
  return new UserError(`cannot use ${folder} for InfluxDB's data: ${reason}`);
}
