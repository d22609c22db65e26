// All processes of one server, and how they end. Code in a config may leave its parent, its process group and its session, but it cannot
// leave its cgroup. Without a cgroup, root's servers are found by their user, which no other process has. A command runs as the user of
// bakeoff, and may leave its cgroup: its processes are found by session, descent and a variable of their environment, too.
import { randomUUID } from 'node:crypto';
import { existsSync, lstatSync, mkdirSync, readlinkSync, rmdirSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { ifThere, namesIn, readIfThere, textOf } from '../files.ts';
import { livingFolder, processIds, userOf } from '../proc-files.ts';
import { helper, helperIfThere, systemPath } from '../../bin/trust.mjs';
import { shellWord } from '../scenario/load/shell-words.ts';
import {
  becoming,
  run,
  sendIfThere,
  startChild,
  withUserUmask,
  wordsOf,
  type Before,
  type Child,
  type RunAs,
} from '../process.ts';
import { filesOfUser, openFolders } from './bounds.ts';
import { cpuSecondsOf } from './cgroup.ts';
import { statFields } from '../proc-files.ts';
import { processTree } from './usage.ts';

export type Scope = Awaited<ReturnType<typeof openScope>>;

/** Removing millions of files takes longer; then it continues in the background. */
const endMs = 15_000;
/** The time limit for ending leftovers of a killed bakeoff: a process that hangs in the kernel never ends. */
const leftMs = 5000;

/**
 * Makes a scope for the processes of a server. When `end` is called, or within 5 s if this process is killed, the processes are ended and
 * the folder is removed.
 * @param folder a folder of this process's user, in which only `temp` may belong to the server's user
 * @param user the server's user, as which nothing else runs; absent: the current user
 */
export async function openScope(folder: string, user?: RunAs) {
  const cgroup = await makeCgroup(path.basename(folder));
  const mark = `BAKEOFF_SIDE=${randomUUID()}`;
  const isMarked = user === undefined;
  const ending = { cgroup, user, mark, folder };
  const guard = await startEnding(ending);
  let leader: number | undefined;
  /** The start times of the processes that were found by descent, by id. */
  const seen = new Map<string, string>();

  /** Finds the leader's session, processes with the mark, and the descendants of both. A process that was found once stays a member. */
  function byDescent(thorough: boolean): string[] {
    const isOwn = (pid: string) =>
      (seen.has(pid) && seen.get(pid) === startOf(pid)) ||
      (leader !== undefined && Number(runningFields(pid)?.[3]) === leader) ||
      (thorough &&
        readIfThere(`${livingFolder(pid)}/environ`)
          ?.split('\0')
          .includes(mark));
    const roots = processIds('/proc').filter(isOwn);
    const all = new Set(roots.flatMap((root) => processTree('/proc', root)));
    const running = [...all].filter(runningFields);
    for (const pid of running) {
      const start = startOf(pid);
      if (start !== undefined) seen.set(pid, start);
    }
    return running;
  }

  /**
   * Returns the ids of running processes.
   * @param thorough also finds processes that only their environment identifies, which takes longer
   */
  function processes(thorough = false): string[] {
    if (cgroup !== undefined) return textOf(path.join(cgroup, 'cgroup.procs')).match(/\d+/g) ?? [];
    return user === undefined ? byDescent(thorough) : processesOf(user);
  }

  async function end(): Promise<void> {
    const left = isMarked ? byDescent(true) : [];
    const endBy = ({ pid, process, exited }: Child) => {
      // A server without a user of its own may have stopped it.
      sendIfThere(pid, 'SIGCONT');
      process.stdin?.on('error', () => undefined).end(`${left.join(' ')}\n`);
      return Promise.race([exited, delay(endMs, undefined, { ref: false })]);
    };
    const exit = await endBy(guard);
    // Somebody has killed it. If there is no other one, the next run ends what is left.
    if (exit?.signal) await startEnding(ending).then(endBy, () => undefined);
  }

  const enter: Before[] = [...withUserUmask];
  if (cgroup !== undefined) enter.push(['sh', '-c', joinCgroup, cgroup]);
  if (isMarked) enter.push(['env', mark]);
  if (user !== undefined) enter.push(...leavingKeys());
  let ended: Promise<void> | undefined;
  return {
    /** The prefix of a server's commands. */
    enter,
    processes,
    /**
     * CPU seconds of all processes that have run in the scope, including ended ones; undefined without a control group that counts them.
     */
    cpuSeconds: () => (cgroup === undefined ? undefined : cpuSecondsOf(cgroup)),
    /** Sets the server's first process, which leads a session. */
    led(pid: number): void {
      leader = pid;
    },
    /** Kills all that runs, and removes the folder. Never throws; may be called again. */
    end: () => (ended ??= end()),
  };
}

/** The numbers of the system calls keyctl(2) and setresuid(2), by Node's names of architectures. */
const systemCalls = new Map([
  ['x64', { keyctl: 250, setresuid: 117 }],
  ['arm64', { keyctl: 219, setresuid: 147 }],
]);

/**
 * Begins a new session keyring (KEYCTL_JOIN_SESSION_KEYRING) before a command: otherwise children of any user would get root's keyring,
 * with root's keys. Perl is the only program that is installed everywhere and can make this call; without Perl the keyring stays.
 */
function leavingKeys(): Before[] {
  const number = systemCalls.get(process.arch)?.keyctl;
  const perl = helperIfThere('perl');
  if (number === undefined || perl === undefined) return [];
  // Perl warns about a locale that is not installed.
  const script = `PERL_BADLANG=0 exec "$0" -e 'delete $ENV{PERL_BADLANG}; syscall(${number}, 1, 0); exec { $ARGV[0] } @ARGV; die "$ARGV[0]: $!\n"' -- "$@"`;
  return [['sh', '-c', script, perl]];
}

/**
 * Shell words that kill all processes of the user "$uid" at once, however fast they fork. A process of that user could be killed before it
 * does this. So this process has that user as its effective user only, and otherwise the next user, which no other process has (see
 * unprivilegedUser): it may signal them, but they may not signal it. Only Perl can make this call; without Perl, a process of that user
 * kills them.
 */
function killingAll(): string {
  const asUser = `as_user 1 "$@" sh -c 'kill -KILL -1'`;
  const number = systemCalls.get(process.arch)?.setresuid;
  if (number === undefined) return asUser;
  // The process must never be one that may signal others, such as process 1.
  const script = `my $uid = 0 + $ARGV[0]; my $next = $uid + 1; syscall(${number}, $next, $uid, $next);
    $< == $next && $> == $uid && !kill(0, 1) or exit 1; kill "KILL", -1`;
  return `if command -v perl; then timeout -s KILL 1 perl -e '${script}' "$uid"; else ${asUser}; fi`;
}

const joinCgroup = 'echo $$ >"$0/cgroup.procs" && exec "$@"';

function processesOf({ uid }: RunAs): string[] {
  return processIds('/proc').filter((pid) => userOf(pid) === uid && runningFields(pid));
}

/** An ended process may stay in the process table for a while. A process whose first thread has ended may run on. */
function runningFields(pid: string): string[] | undefined {
  const fields = statFields(`/proc/${pid}`);
  const [state = ''] = fields ?? [];
  const hasEnded = /^[ZX]$/.test(state);
  return hasEnded && namesIn(`/proc/${pid}/task`).length < 2 ? undefined : fields;
}

/** The start time in clock ticks since boot. The kernel uses ids again, so only id and start time together identify a process. */
function startOf(pid: string): string | undefined {
  return runningFields(pid)?.[19];
}

/**
 * Kills the processes that are left and removes the folder. It starts when its input has a line with ids, or 5 s after its input ends: so
 * long the servers of a killed bakeoff may end by themselves.
 * Its arguments are cgroup, mark, folder, and the server's user with the command that becomes this user, or nothing.
 */
const endScript = (folders: readonly string[]) => `
  cgroup=$1 mark=$2 folder=$3 uid=\${4:-0}
  [ $# -gt 4 ] && shift 4 || shift $#
  trap "" HUP INT TERM
  # Also if no process can be started, such as the next command, which ends this shell.
  trap '[ -z "$cgroup" ] || echo 1 >"$cgroup/cgroup.kill"' EXIT
  pids=
  # A process whose first thread has ended may run on, and one that has ended may stay in the table for a while.
  running() {
    for pid; do
      pid=\${pid#/proc/}
      pid=\${pid%/*}
      grep -qsE "^State:[[:space:]]+[^ZX]" "/proc/$pid/task/"*/status && echo "$pid"
    done
  }
  left() {
    [ -z "$cgroup" ] || cat "$cgroup/cgroup.procs"
    if [ "$uid" -eq 0 ]; then
      running $pids $(grep -lszxF "$mark" /proc/[0-9]*/environ)
    elif [ -z "$cgroup" ]; then
      running $(grep -lsE "^Uid:[[:space:]]+$uid[[:space:]]" /proc/[0-9]*/status)
    fi
  }
  # A process of the user may stop another one of the user, so that it does not end by itself.
  as_user() {
    limit=$1
    shift
    timeout -s KILL "$limit" "$@"
  }
  # A file system of the user's own whose program hangs or has ended keeps who uses it in the kernel, even from KILL.
  abort_fuse() {
    for file in $(find /sys/fs/fuse/connections -name abort -user "$uid"); do echo 1 >"$file"; done
  }
  kill_all() {
    [ -e "$cgroup/cgroup.kill" ] && echo 1 >"$cgroup/cgroup.kill"
    [ -e "$cgroup/freezer.state" ] && echo FROZEN >"$cgroup/freezer.state"
    kill -KILL "$@"
    [ -e "$cgroup/freezer.state" ] && echo THAWED >"$cgroup/freezer.state"
  }
  tries=0
  if ! read -r pids; then
    # The server's own start may be under way.
    sleep 0.5
    while [ $tries -lt 45 ] && [ -n "$(left)" ]; do
      tries=$((tries + 1))
      sleep 0.1
    done
  fi
  tries=0 empty=0 looks=1
  # Processes that fork and end all the time may be missed by a look.
  [ -z "$cgroup" ] && [ "$uid" -gt 0 ] && looks=3
  while [ $empty -lt $looks ] && [ $tries -lt 200 ]; do
    tries=$((tries + 1))
    if [ $looks -gt 1 ]; then ${killingAll()}; fi
    remaining=$(left)
    empty=$((empty + 1))
    if [ -n "$remaining" ]; then
      empty=0
      kill_all $remaining
      [ "$uid" -gt 0 ] && [ $tries -gt 2 ] && abort_fuse
      sleep 0.02
    fi
  done
  if [ "$uid" -gt 0 ]; then
    as_user 60 "$@" rm -rf "$folder/temp"
    # No other file of this user is anyone's. Nor is any queue, semaphore or shared memory.
    as_user 60 "$@" find ${[...folders.map(shellWord), ...filesOfUser('$uid')].join(' ')} -exec sh -c '
      for file; do [ -L "$file" ] || chmod -R u+rwX "$file"; rm -rf "$file"; done' sh {} +
    as_user 5 "$@" ipcrm --all
  fi
  # Processes that are left could lead root's removal elsewhere.
  [ -z "$remaining" ] && rm -rf "$folder"
  while [ -n "$cgroup" ] && ! rmdir "$cgroup" && [ $tries -lt 200 ]; do
    tries=$((tries + 1))
    sleep 0.02
  done`;

interface Ending {
  cgroup: string | undefined;
  user: RunAs | undefined;
  mark: string;
  folder: string;
}

async function startEnding({ cgroup = '', user, mark, folder }: Ending) {
  const folders = user === undefined ? [] : await openFolders();
  const becomes = user === undefined ? [] : [String(user.uid), ...wordsOf([becoming(user)])];
  return startChild({
    command: 'sh',
    args: ['-c', endScript(folders), 'sh', cgroup, mark, folder, ...becomes],
    cwd: '/',
    env: { PATH: systemPath },
    stdio: ['pipe', 'ignore', 'ignore'],
    // endScript traps TERM.
    orphanedBy: 'TERM',
    isSpared: true,
  });
}

/**
 * Ends a server's leftovers after bakeoff was killed: processes, cgroup and folder. The owner of `temp` in the folder is the server's user.
 * Returns after 5 s at the latest, and continues in the background.
 */
export async function endLeft(folder: string): Promise<void> {
  const place = await cgroupPlace();
  const cgroup = place && path.join(place, path.basename(folder));
  const temp = lstatSync(path.join(folder, 'temp'), { throwIfNoEntry: false });
  const isOthers = temp !== undefined && temp.uid !== process.geteuid?.();
  const ending = await startEnding({
    cgroup: cgroup !== undefined && existsSync(cgroup) ? cgroup : undefined,
    user: isOthers ? { name: '', uid: temp.uid, gid: temp.gid } : undefined,
    // No process has this mark.
    mark: randomUUID(),
    folder,
  });
  ending.process.stdin?.on('error', () => undefined).end('\n');
  await Promise.race([ending.exited, delay(leftMs, undefined, { ref: false })]);
  ending.process.unref();
}

let place: Promise<string | undefined> | undefined;

/** Returns the cgroup of this process, if it may make others in it: that of version 2, or that of version 1's freezer. */
function cgroupPlace(): Promise<string | undefined> {
  return (place ??= findPlace());
}

async function findPlace(): Promise<string | undefined> {
  for (const cgroup of ownCgroups()) {
    const probe = path.join(
      cgroup,
      `bakeoff-probe-${pidNamespace()}-${process.pid}-${randomUUID()}`,
    );
    if (ifThere(() => mkdirSync(probe) ?? true) === undefined) continue;
    const { code } = await run({ command: 'sh', args: ['-c', joinCgroup, probe, helper('true')] });
    rmdirSync(probe);
    removeLeftCgroups(cgroup);
    if (code === 0) return cgroup;
  }
  return undefined;
}

/** The number of the PID namespace. It is in names, because containers with their own namespace may share folders and cgroups. */
export function pidNamespace(): string {
  return /\d+/.exec(readlinkSync('/proc/self/ns/pid'))?.[0] ?? '';
}

/** Removes the empty cgroups below `cgroup` that a killed bakeoff left behind. */
export function removeLeftCgroups(cgroup: string): void {
  const named = new RegExp(`^bakeoff-(?:server|probe)-${pidNamespace()}-(\\d+)-`);
  for (const name of namesIn(cgroup)) {
    const pid = named.exec(name)?.[1];
    if (pid === undefined || existsSync(`/proc/${pid}`)) continue;
    try {
      rmdirSync(path.join(cgroup, name));
    } catch {
      // It has processes, which go with their folder, or another run was faster.
    }
  }
}

function ownCgroups(): string[] {
  const lines = textOf('/proc/self/cgroup').split('\n');
  const cgroups: string[] = [];
  for (const mount of textOf('/proc/self/mountinfo').split('\n')) {
    // The mount's root and place, and after a dash its type, source and options.
    const [, root = '', at = '', kind, options = ''] =
      /^\d+ \d+ \S+ (\S+) (\S+) .* - (cgroup2?) \S+ (\S+)$/.exec(mount) ?? [];
    const isFreezer = options.split(',').includes('freezer');
    if (kind === undefined || (kind === 'cgroup' && !isFreezer)) continue;
    const pattern =
      kind === 'cgroup2' ? /^0::(\/.*)$/ : /^\d+:(?:[^:]*,)?freezer(?:,[^:]*)?:(\/.*)$/;
    const ownPath = lines.flatMap((line) => pattern.exec(line)?.[1] ?? [])[0];
    const below = ownPath === undefined ? '..' : path.relative(root, ownPath);
    if (!below.startsWith('..')) cgroups.push(path.join(at, below));
  }
  // Version 2 comes first: it can kill all processes of a cgroup at once.
  return cgroups.sort((a, b) => Number(isVersion2(b)) - Number(isVersion2(a)));
}

function isVersion2(cgroup: string): boolean {
  return existsSync(path.join(cgroup, 'cgroup.controllers'));
}

async function makeCgroup(name: string): Promise<string | undefined> {
  const parent = await cgroupPlace();
  if (parent === undefined) return undefined;
  const folder = path.join(parent, name);
  mkdirSync(folder);
  return folder;
}
