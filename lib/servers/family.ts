// The processes of a command: what it has started may leave its group, its session and its tree.
import { randomUUID } from 'node:crypto';
import { readFileSync, readlinkSync, realpathSync } from 'node:fs';
import { runs } from './lifecycle.ts';
import { listeningOf } from './ports.ts';
import { processIds, processTree, statFields } from './usage.ts';

const variable = 'BAKEOFF_SIDE';

/** For the environment of one command, as env(1) takes it. */
export function newMark(): string {
  return `${variable}=${randomUUID()}`;
}

export interface Family {
  /**
   * The ids of those that run now. `renamed`: those too that have written a title over their environment, as nginx does, and the mark
   * with it: what began after the command and has none, where it stands where the command did, or serves what that was to. To be asked
   * for only where the command has ended by itself, so that it may have gone to the background: another one's is none of ours.
   */
  all(renamed?: boolean): string[];
  /** The same, without renamed ones, in less time: a process that was a stranger once is not looked at again. */
  usual(): string[];
}

/**
 * The tree below a command's first process, while that runs, and all that have its mark, which they inherit.
 * @param folder that the command was started in
 * @param port that it is to listen on
 */
export function familyOf(pid: number, mark: string, folder: string, port: number): Family {
  const began = startOf(String(pid));
  const place = realpathSync(folder);
  const strangers = new Set<string>();

  function isRenamed(one: string): boolean {
    // A thread of the kernel's runs no file.
    return linkOf(`/proc/${one}/exe`) !== '' && !ancestors(one).includes(String(process.pid))
      && (linkOf(`/proc/${one}/cwd`) === place || listeningOf(Number(one)).some((listening) => listening.port === port));
  }

  function isOurs(one: string, renamed: boolean): boolean {
    const isOlder = startOf(one) < began;
    const environment = isOlder ? [] : environmentOf(one);
    const hasVariables = environment.some((text) => /^\w+=/.test(text));
    const found = environment.includes(mark) || (renamed && !isOlder && !hasVariables && isRenamed(one));
    // One without any may be about to have some.
    if (!found && (isOlder || hasVariables)) strangers.add(one);
    return found;
  }

  function find(candidates: readonly string[], renamed = false): string[] {
    const marked = candidates.filter((one) => runs(one) && isOurs(one, renamed));
    const trees = new Set<string>();
    for (const root of [String(pid), ...marked]) {
      if (trees.has(root) || (root === String(pid) && startOf(root) !== began)) continue;
      for (const one of processTree('/proc', root)) trees.add(one);
    }
    return [...trees].filter((one) => runs(one));
  }

  return { all: (renamed) => find(processIds('/proc'), renamed), usual: () => find(processIds('/proc').filter((one) => !strangers.has(one))) };
}

/** In the kernel's ticks since the machine was started; NaN when it is gone. proc(5): field 22 of stat; the first of these here is its third. */
function startOf(pid: string): number {
  return Number(statFields(`/proc/${pid}`)?.[19] ?? NaN);
}

function ancestors(pid: string): string[] {
  const parent = statFields(`/proc/${pid}`)?.[1] ?? '0';
  return parent === '0' ? [] : [parent, ...ancestors(parent)];
}

/** Its variables, or what it has written over them; none where it has ended, or hides them. */
function environmentOf(pid: string): string[] {
  try {
    return readFileSync(`/proc/${pid}/environ`, 'latin1').split('\0');
  } catch {
    return [];
  }
}

function linkOf(file: string): string {
  try {
    return readlinkSync(file);
  } catch {
    return '';
  }
}
