// Servers that are stopped (SIGSTOP) while it is not their turn: which of them can be, and that none outlives this process so.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Socket } from 'node:net';
import { processTree, statFields } from './usage.ts';

/**
 * Why the processes of a server cannot be stopped as a whole, in one line; undefined where they can. A signal to the group of the
 * first one has to reach all of them.
 * @param processes default: the tree below the first one, that one included
 */
export function whyNotStoppable(rootPid: number, processes = processTree('/proc', String(rootPid))): string | undefined {
  for (const pid of processes) {
    const [state, , group] = statFields(`/proc/${pid}`) ?? [];
    // What has ended needs no signal. What cannot be seen may be another user's (hidepid).
    if (state === 'Z' || state === 'X') continue;
    if (!maySignal(Number(pid))) return `its process ${pid} is another user's`;
    if (group !== undefined && Number(group) !== rootPid) return `its process ${pid} is in a process group of its own`;
  }
  return undefined;
}

function maySignal(pid: number): boolean {
  try {
    process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'EPERM';
  }
  return true;
}

/**
 * Its input ends when the one who started it does. The groups' first processes get TERM then (startChild), which waits where they
 * are stopped. k6 gets it too, twice at times (for the last thread but one of ours, and for the last), which ends it at once in the
 * middle of a turn; or it goes on to stop servers for a moment. So CONT is sent for 5 s, which is what a server gets to end in
 * (Child.stop). A group that is gone is left out from then on: its id may come to be another's. What has left its group is known by
 * its mark, and killed.
 */
const untilTheyEnd = `
  trap "" HUP INT TERM
  read -r nothing
  tries=100
  while [ $# -gt 0 ] && [ $tries -gt 0 ]; do
    for group do
      shift
      kill -CONT "-$group" && set -- "$@" "$group"
    done
    sleep 0.05
    tries=$((tries - 1))
  done
  for group do kill -KILL "-$group"; done
  [ -z "$mark" ] || for file in $(grep -lszxF "$mark" /proc/[0-9]*/environ); do
    file=\${file#/proc/}
    kill -KILL "\${file%/environ}"
  done`;

/**
 * Sees to it that process groups of startChild's end when this process does, however it does, and where they are stopped too: a
 * stopped process does not see the TERM that it gets then. Call it before one of them may be stopped. No signal goes to anything else.
 * @param mark "NAME=value" in the environment of those that left the groups; '' where none does
 * @returns to be called once the groups have ended in order; it returns when nothing of this is left, and may be called twice
 * @throws the system's error when no process can be started
 */
export async function endWithUs(groups: readonly number[], mark = ''): Promise<() => Promise<void>> {
  // In a session of its own: what ends this process, Ctrl-C in its terminal for one, is not to end it too.
  const guardian = spawn('sh', ['-c', untilTheyEnd, 'bakeoff-guardian', ...groups.map(String)], {
    detached: true, cwd: '/', env: { PATH: process.env.PATH, mark }, stdio: ['pipe', 'ignore', 'ignore'],
  });
  await once(guardian, 'spawn');
  const exited = once(guardian, 'exit');
  guardian.unref();
  (guardian.stdin as Socket).unref();
  return async () => {
    guardian.ref();
    guardian.kill('SIGKILL');
    await exited;
  };
}
