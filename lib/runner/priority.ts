// The priority of a run as root: other programs would take from one side what they do not take from the other.
import { getPriority, setPriority } from 'node:os';
import { onceGone, prioritise } from '../process.ts';
import { sessionOf } from '../proc-files.ts';
import { isConfigured } from '../scenario/variants.ts';
import { isRemote, isWatched } from '../servers/index.ts';
import { connectsOut } from '../servers/ports.ts';
import { thisMachine } from '../setup/machine.ts';
import type { PlanDraft, Stage } from './plan.ts';

const usualNice = 0;
/** At this priority, a busy thread leaves a tenth of its core to a program with the usual one. */
const firstNice = -10;

export interface Priority {
  /** Becomes false for the rest of a run: all sides are to be loaded in one way. */
  goesFirst: boolean;
  /** Called before the first load that goes first. */
  tell?: (() => void) | undefined;
}

/** Returns whether what this process starts may go first. Root in a container often may not. */
export function mayGoFirst(): boolean {
  const { isRoot, goesFirst } = thisMachine();
  // The user may have chosen another priority (nice).
  if (!isRoot || !goesFirst || getPriority() !== usualNice) return false;
  try {
    setPriority(firstNice);
    setPriority(usualNice);
    return true;
  } catch {
    return false;
  }
}

/** Returns the priority with which a run begins. A server that is not ours may be on the same cores, and keeps its share of them. */
export function priorityOf({ variants }: Pick<PlanDraft, 'variants'>): Priority {
  const isOwn = variants.every(({ variant: { server } }) => server.name !== 'address');
  return { goesFirst: isOwn && mayGoFirst() };
}

/** Raises the priority of the servers and of this process. @returns what k6's is to be, and a function that takes this process's back */
export async function raisePriority(priority: Priority | undefined, stages: readonly Stage[]) {
  if (priority?.goesFirst === true)
    priority.goesFirst = !(await Promise.all(stages.map(mayHaveBackend))).includes(true);
  if (priority?.goesFirst !== true) return { nice: undefined, giveBack: async () => undefined };
  const servers = stages.flatMap(({ server }) =>
    isWatched(server) && !isRemote(server) ? server.processes() : [],
  );
  await Promise.all(servers.map((pid) => prioritise(Number(pid), firstNice, usualNice)));
  priority.tell?.();
  priority.tell = undefined;
  takeBackOnceGone();
  // Otherwise k6 would keep this process from its samples.
  await prioritise(process.pid, firstNice, usualNice);
  return { nice: firstNice, giveBack: () => prioritise(process.pid, usualNice, firstNice) };
}

let isGuarded = false;

/** If this process is killed, the shell that started it stays in its session, which would stay first. */
function takeBackOnceGone(): void {
  if (isGuarded) return;
  isGuarded = true;
  const members = [sessionOf(process.pid) ?? '', String(process.ppid)];
  const script = `for pid; do
    read -r session </proc/$pid/autogroup && case $session in *"nice ${firstNice}") echo ${usualNice} >/proc/$pid/autogroup;; esac && break
  done`;
  onceGone(script, ...members);
}

/** Returns whether a server asks another one, which may be on the same cores. */
async function mayHaveBackend({ planned: { variant }, server }: Stage): Promise<boolean> {
  if (isRemote(server)) return false;
  if (server.upstreams.length > 0 || server.runsCode) return true;
  return !isConfigured(variant.server) && isWatched(server) && connectsOut(server.processes());
}
