// The control group of a server that somebody else started, such as a container's.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { messageOf, UserError } from '../errors.ts';
import { ifThere, readIfThere, textOf } from '../files.ts';
import type { WatchedServer } from './server.ts';
import { watchUsage } from './usage.ts';

/**
 * CPU seconds of all processes that have run in a control group and in those below it; undefined if it does not count them. Version 2
 * counts microseconds in each group; version 1 counts nanoseconds, if cpuacct is mounted.
 */
export function cpuSecondsOf(folder: string): number | undefined {
  const micros = /^usage_usec (\d+)$/m.exec(textOf(path.join(folder, 'cpu.stat')))?.[1];
  if (micros !== undefined) return Number(micros) / 1e6;
  const nanos = readIfThere(path.join(folder, 'cpuacct.usage'));
  return nanos === undefined ? undefined : Number(nanos) / 1e9;
}

/** The kernel may count the CPU time of a request only after its answer. */
const workLimitMs = 1000;
const pollMs = 10;
/** How often to look whether the group still has processes. */
const aliveEveryMs = 200;

/** Opens a control group. Throws UserError if it cannot be the server's, or does not count CPU time. */
export function openCgroup(folder: string) {
  requireCgroup(folder);
  const before = requireCpuSeconds(folder);
  requireMembers(folder);
  return {
    /** Throws UserError if the group has used no CPU time since it was opened, although the server has answered. */
    async requireWork(origin: string, signal: AbortSignal): Promise<void> {
      const deadlineMs = performance.now() + workLimitMs;
      while (cpuSecondsOf(folder) === before) {
        if (performance.now() > deadlineMs)
          throw new UserError(
            `the control group ${folder} did nothing while ${origin} answered: name the server's own`,
          );
        await delay(pollMs, undefined, { signal });
      }
    },
    /** Watches the group's processes until `stop`. */
    watch(): Pick<WatchedServer, 'processes' | 'usage' | 'died' | 'stop'> {
      const processes = () => membersOf(folder);
      let timer: NodeJS.Timeout | undefined;
      const died = new Promise<string>((resolve) => {
        timer = setInterval(() => {
          if (processes().length === 0)
            resolve(`the control group ${folder} has no processes any more`);
        }, aliveEveryMs).unref();
      });
      return {
        processes,
        usage: watchUsage(processes, { cpuSecondsOfGroup: () => cpuSecondsOf(folder) }),
        died,
        stop() {
          clearInterval(timer);
          return Promise.resolve();
        },
      };
    },
  };
}

/** The file in a control group with the ids of its processes. */
const membersFile = 'cgroup.procs';

/** The processes in a control group and in those below it. */
function membersOf(folder: string): string[] {
  const members = textOf(path.join(folder, membersFile)).match(/\d+/g) ?? [];
  const entries = ifThere(() => readdirSync(folder, { withFileTypes: true })) ?? [];
  const below = entries.filter((entry) => entry.isDirectory());
  return [...members, ...below.flatMap(({ name }) => membersOf(path.join(folder, name)))];
}

function requireCgroup(folder: string): void {
  if (!existsSync(folder)) throw new UserError(`there is no control group ${folder}`);
  if (!existsSync(path.join(folder, membersFile)))
    throw new UserError(
      `${folder} is no control group: name a folder below /sys/fs/cgroup that has ${membersFile}`,
    );
  try {
    readFileSync(path.join(folder, membersFile));
  } catch (error) {
    throw new UserError(`the control group ${folder} cannot be read: ${messageOf(error)}`);
  }
}

function requireCpuSeconds(folder: string): number {
  const seconds = cpuSecondsOf(folder);
  if (seconds === undefined)
    throw new UserError(
      `the control group ${folder} does not count CPU time: with cgroup v1 name the folder below /sys/fs/cgroup/cpuacct`,
    );
  return seconds;
}

function requireMembers(folder: string): void {
  const members = membersOf(folder);
  if (members.length === 0)
    throw new UserError(`the control group ${folder} has no processes: start the server first`);
  if (members.includes('0'))
    throw new UserError(
      `the control group ${folder} has processes that cannot be seen from here: start bakeoff outside of its container`,
    );
  if (members.includes(String(process.pid)))
    throw new UserError(
      `the control group ${folder} has bakeoff's own processes too: name the server's own`,
    );
}
