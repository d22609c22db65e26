// The end of a started server, asked for or not.
import { readdirSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import type { Child } from '../process.ts';
import { lastLines } from '../log-file.ts';
import { statFields } from './usage.ts';

export interface Lifecycle {
  /** As in RunningServer. */
  died: Promise<string>;
  stop(): Promise<void>;
}

/** What a server leaves behind may end by itself, in order: h2o's keeper of keys removes its folder in /tmp then. */
const groupEndsItselfMs = 300;
/** How long the kernel may take to end a killed group. */
const groupEndLimitMs = 2000;
const groupEndPollMs = 10;

/**
 * `died` and `stop` of a RunningServer. However the child ends, the rest of its process group is ended (workers
 * outlive a master that was killed, and keep its port), and `cleanUp` runs.
 */
export function watchLifecycle(name: string, child: Child, logFile: string, cleanUp: () => void): Lifecycle {
  let stopping: Promise<void> | undefined;

  const gone = child.exited.then(async (exit) => {
    await endGroup(child.pid);
    try {
      cleanUp();
    } catch {
      // A folder that stays behind is no reason to fail a round.
    }
    return exit;
  });

  const died = new Promise<string>((resolve) => {
    void gone.then(async ({ code, signal }) => {
      if (stopping !== undefined) return;
      const lastLine = (await lastLines(logFile)).at(-1);
      const how = signal === null ? `with code ${code}` : `by ${signal}`;
      resolve(`${name} (pid ${child.pid}) ended ${how}${lastLine === undefined ? '' : `; its log ends: ${lastLine}`}`);
    });
  });

  async function end(): Promise<void> {
    await child.stop().catch(() => undefined); // It ended between the look and the signal.
    await gone;
  }

  return { died, stop: () => (stopping ??= end()) };
}

async function endGroup(group: number): Promise<void> {
  const killAt = performance.now() + groupEndsItselfMs;
  const deadline = killAt + groupEndLimitMs;
  try {
    while (groupRuns(group) && performance.now() < deadline) {
      // They may be stopped, and be stopped again by who loads them.
      process.kill(-group, performance.now() < killAt ? 'SIGCONT' : 'SIGKILL');
      await delay(groupEndPollMs);
    }
  } catch {
    // ESRCH: nobody of the group is left.
  }
}

/** Whether any process of the group runs. Some that have ended may stay in the table until the system's first process asks for them. */
function groupRuns(group: number): boolean {
  return readdirSync('/proc').some((pid) => {
    const [state, , processGroup] = (/^\d+$/.test(pid) ? statFields(`/proc/${pid}`) : undefined) ?? [];
    return Number(processGroup) === group && state !== 'Z' && state !== 'X';
  });
}
