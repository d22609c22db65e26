// Processes that the kernel kills because memory runs out.
import { textOf } from '../files.ts';

/** How many it has killed since the machine's start, for the machine's memory or a control group's; 0 if it does not count them. */
export function memoryKills(): number {
  return Number(/^oom_kill (\d+)$/m.exec(textOf('/proc/vmstat'))?.[1] ?? 0);
}

/** The exit code of a shell whose command KILL has ended. */
const killedCode = 137;

export interface Exit {
  code: number | null;
  signal: NodeJS.Signals | null;
}

/**
 * Begins to watch a process that bakeoff does not kill. Returns whether the kernel has killed it because memory ran out: KILL has ended
 * it, and the kernel's count has grown since.
 */
export function watchMemoryKills(count = memoryKills): (exit: Exit) => boolean {
  const before = count();
  return ({ code, signal }) => (signal === 'SIGKILL' || code === killedCode) && count() > before;
}

/** Follows the name of a process that the kernel has killed so. */
export const killedForMemory =
  'was killed by the kernel, as memory ran out (of the machine, or of its container or service): give it more, or let the server use less';
