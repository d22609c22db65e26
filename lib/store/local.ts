// The influxd that bakeoff runs itself: one folder, one influxd on it, ended with the run.
//
// Two locks keep it that way. `run.lock` is held by the runner: a second run is refused. `influxd.lock` is held by
// influxd itself (it inherits the descriptor), since influxd does not notice a second one on the same folders: when a
// runner was killed, the next one waits here until the old influxd has ended.
import { closeSync, openSync, readFileSync, statfsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { UserError } from '../errors.ts';
import { startChild, type Child } from '../process.ts';
import { ping, type Influx } from './client.ts';
import { holder, lockFile, writeHolder } from '../lock-file.ts';
import { makeFolder } from '../make-folder.ts';
import { database } from './schema.ts';

export interface LocalInfluxd {
  /** Where it listens now; another port after a revival only when somebody else has taken the old one. */
  influx: Influx;
  pid(): number;
  /** Starts it again when it has died. Whether it answers; when not, `failure()` says why. */
  revive(): Promise<boolean>;
  failure(): string | null;
  /** Ends influxd and gives the folder free. May be called twice. */
  stop(): Promise<void>;
}

export interface LocalOptions {
  binary: string;
  /** Data, config, log and locks go below it; made when it is not there. */
  folder: string;
  cpus?: readonly number[] | undefined;
}

/** How long a start may take: influxd opens every shard of the history before it listens. */
const startTimeoutMs = 120_000;
/** How long the influxd of a killed runner may take to end. */
const endingSeconds = 20;

/** Starts influxd. Throws a UserError when another run has the folder, or when influxd does not start. */
export async function startLocalInfluxd(options: LocalOptions): Promise<LocalInfluxd> {
  const runLock = await takeRunLock(options.folder);
  const influx: Influx = { url: '', database, credentials: null };
  let child: Child;
  let failure: string | null = null;
  let stopped = false;
  let reviving: Promise<boolean> | null = null;

  async function launch(address: string, keepLog: boolean): Promise<void> {
    const started = await launchInfluxd(options, address, keepLog);
    child = started.child;
    influx.url = `http://${started.address}`;
  }

  async function revive(): Promise<boolean> {
    if (stopped) return false;
    if (await answers(influx)) return true;
    // The kernel refuses connections to a killed process a moment before we hear of its end.
    await Promise.race([child.exited, delay(2000, undefined, { ref: false })]);
    if (!child.hasExited()) return answers(influx);
    try {
      // The old port first: k6 goes on writing to it.
      await launch(new URL(influx.url).host, true).catch(() => launch('127.0.0.1:0', true));
      failure = null;
      return true;
    } catch (error) {
      failure = error instanceof Error ? error.message : String(error);
      return false;
    }
  }

  try {
    await launch('127.0.0.1:0', false);
  } catch (error) {
    closeSync(runLock);
    throw error;
  }
  return {
    influx,
    pid: () => child.pid,
    failure: () => failure,
    revive: () => (reviving ??= revive().finally(() => { reviving = null; })),
    stop: async () => {
      if (stopped) return;
      stopped = true;
      await reviving;
      await child.stop(10_000);
      closeSync(runLock);
    },
  };
}

async function takeRunLock(folder: string): Promise<number> {
  try {
    makeFolder(folder);
    const file = join(folder, 'run.lock');
    const lock = await lockFile(file);
    if (lock === null) {
      throw new UserError(`another run of bakeoff${holder(file)} is using ${folder}: wait until it is done, or end it`);
    }
    writeHolder(lock, process.pid);
    return lock;
  } catch (error) {
    throw fileError(error, folder);
  }
}

/** Starts influxd on an address with port 0 for any free one, and returns when it answers. */
async function launchInfluxd(options: LocalOptions, address: string, keepLog: boolean): Promise<{ child: Child; address: string }> {
  const { folder } = options;
  const [configFile, logFile, lockName] = [join(folder, 'influxd.conf'), join(folder, 'influxd.log'), join(folder, 'influxd.lock')];
  const lock = await lockFile(lockName, endingSeconds);
  if (lock === null) {
    throw new UserError(`influxd${holder(lockName)} of an earlier run has not ended yet and still uses ${folder}: end it, then start again`);
  }
  let child: Child;
  let logStart = 0;
  try {
    writeFileSync(configFile, influxdConfig(folder, address));
    const log = openSync(logFile, keepLog ? 'a' : 'w');
    logStart = keepLog ? readFileSync(logFile).length : 0;
    try {
      child = await startChild({
        command: options.binary,
        args: ['run', '-config', configFile],
        ...(options.cpus === undefined ? {} : { cpus: options.cpus }),
        // INFLUXDB_… variables would override the config file.
        env: Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('INFLUXDB_'))),
        stdio: ['ignore', log, log, lock],
      });
    } finally {
      closeSync(log);
    }
    writeHolder(lock, child.pid);
  } catch (error) {
    throw fileError(error, folder);
  } finally {
    closeSync(lock);
  }
  const readLog = (): string => readFileSync(logFile).subarray(logStart).toString();
  try {
    return { child, address: await listening(child, readLog, logFile) };
  } catch (error) {
    await child.stop(1000);
    throw error;
  }
}

/** The address from influxd's own log: it picks a free port itself, so nobody can take it in between. */
async function listening(child: Child, readLog: () => string, logFile: string): Promise<string> {
  const deadline = performance.now() + startTimeoutMs;
  for (;;) {
    const exited = child.hasExited();
    const log = readLog();
    const address = /msg="Listening on HTTP".* addr=(127\.0\.0\.1:\d+)/.exec(log)?.[1];
    if (exited) {
      // With a full disk it cannot write its last words either.
      const reason = lastComplaint(log) ?? (statfsSync(logFile).bavail === 0 ? 'the disk is full' : 'it ended without a word');
      throw new UserError(`influxd does not start: ${reason} (its log: ${logFile})`);
    }
    if (address !== undefined && await answers({ url: `http://${address}`, database, credentials: null })) return address;
    if (performance.now() > deadline) throw new UserError(`influxd did not listen within ${startTimeoutMs / 1000} s (its log: ${logFile})`);
    await delay(20);
  }
}

/** The last error of the log, or else its last line. A failed start ends in a plain line such as "run: open server: …". */
function lastComplaint(log: string): string | undefined {
  const lines = log.split('\n').filter((text) => text.trim() !== '');
  const complaint = lines.findLast((text) => !text.startsWith('ts=') || / lvl=(error|fatal) /.test(text)) ?? lines.at(-1);
  return complaint?.trim();
}

async function answers(influx: Influx): Promise<boolean> {
  return ping(influx).then(() => true, () => false);
}

function fileError(error: unknown, folder: string): unknown {
  const code = (error as NodeJS.ErrnoException).code;
  if (error instanceof UserError || code === undefined) return error;
  const reason = code === 'ENOSPC' ? 'the disk is full' : (error as Error).message;
  return new UserError(`cannot use ${folder} for InfluxDB's data: ${reason}`);
}

/** Keys that a version does not know are ignored by it (Debian's 1.6 says reporting-enabled, others reporting-disabled). */
function influxdConfig(folder: string, address: string): string {
  const path = (name: string): string => JSON.stringify(join(folder, name));
  return `# Written by bakeoff at every start.
reporting-disabled = true
reporting-enabled = false
# RPC, for backups.
bind-address = "127.0.0.1:0"

[meta]
  dir = ${path('meta')}

[data]
  dir = ${path('data')}
  wal-dir = ${path('wal')}
  # On disk, so that a long history of runs costs neither memory nor a slow start.
  index-version = "tsi1"
  # For inmem only, if somebody changes the line above: runs are tags, so series grow with the history.
  max-series-per-database = 0
  max-values-per-tag = 0
  query-log-enabled = false

[http]
  bind-address = ${JSON.stringify(address)}
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
