// The processes of a command: what it has started may leave its group, its session and its tree.
import { randomUUID } from 'node:crypto';
import { realpathSync } from 'node:fs';
import { processIds, socketsOf } from '../proc.ts';
import { linkOf, readIfThere, textOf } from '../read-if-there.ts';
import { runs } from './lifecycle.ts';
import { isAt, listeningSockets, type Address } from './ports.ts';
import { processTree, statFields } from './usage.ts';

const variable = 'BAKEOFF_SIDE';

/** For the environment of one command, as env(1) takes it. */
export function newMark(): string {
  return `${variable}=${randomUUID()}`;
}

/**
 * The tree below a command's first process, its group, and all that have its mark, which they inherit; each with its tree, and for as
 * long as it runs. Who has lost the mark, by another environment or a title written over it as nginx does, is known by what it listens
 * on, where nobody else has a hand in it (mayBeIts).
 * @param folder that the command was started in
 * @param at where it is to listen, and nobody did before
 */
export function familyOf(pid: number, mark: string, folder: string, at: Address) {
  const first = String(pid);
  const began = startOf(first);
  const place = realpathSync(folder);
  const user = userOf(String(process.pid));
  const adopters = new Set(['1', ...ancestors(String(process.pid))]);
  const strangers = new Set<string>();
  /** Their starts, by id. */
  let known = new Map([[first, began]]);

  function isMarked(one: string): boolean {
    const isOlder = startOf(one) < began;
    const environment = isOlder ? [] : environmentOf(one);
    const found = environment.includes(mark) || (!isOlder && statFields(`/proc/${one}`)?.[2] === first);
    // One without any variables may be about to have some.
    if (!found && (isOlder || environment.some((text) => /^\w+=/.test(text)))) strangers.add(one);
    return found;
  }

  /** It began after the command, as the same user and no side's, and whatever it descends from did so too, or adopts orphans. */
  function mayBeIts(one: string): boolean {
    return startOf(one) >= began && userOf(one) === user && !environmentOf(one).some((text) => text.startsWith(`${variable}=`))
      && ancestors(one).every((above) => adopters.has(above) || startOf(above) >= began);
  }

  /** Who in our network listens there. */
  function holders(candidates: readonly string[]): string[] {
    const sockets = listeningSockets('/proc/self').filter((one) => isAt(one, at)).map(({ inode }) => inode);
    return sockets.length === 0 ? [] : candidates.filter((one) => socketsOf(`/proc/${one}`).some((inode) => sockets.includes(inode)));
  }

  function find(marked: readonly string[], others: readonly string[] = []): string[] {
    const before = [...known].flatMap(([one, start]) => (startOf(one) === start ? [one] : []));
    const trees = new Set<string>();
    for (const root of [...before, ...marked, ...others]) {
      for (const one of trees.has(root) ? [] : processTree('/proc', root)) trees.add(one);
    }
    const found = [...trees].filter((one) => runs(one));
    known = new Map(found.map((one) => [one, startOf(one)]));
    return found;
  }

  /** The ids of those that run now. */
  function all(): string[] {
    const running = processIds('/proc').filter((one) => runs(one));
    return find(running.filter(isMarked), holders(running.filter((one) => startOf(one) >= began)).filter(mayBeIts));
  }

  return {
    all,
    /** The same in less time: a process that was a stranger once is not looked at again, nor is who listens. */
    usual: (): string[] => find(processIds('/proc').filter((one) => !strangers.has(one) && runs(one) && isMarked(one))),
    /** Those others that run now and may be its own, which nothing proves: "sleep (pid 62)". */
    unsure(): string[] {
      const running = processIds('/proc').filter((one) => runs(one));
      const suspects = new Set([...holders(running), ...running.filter((one) => linkOf(`/proc/${one}/cwd`) === place && mayBeIts(one))]);
      for (const one of all()) suspects.delete(one);
      return [...suspects].map((one) => `${readIfThere(`/proc/${one}/comm`)?.trim()} (pid ${one})`);
    },
  };
}

/** In the kernel's ticks since the machine was started; NaN when it is gone. proc(5): field 22 of stat; the first of these here is its third. */
function startOf(pid: string): number {
  return Number(statFields(`/proc/${pid}`)?.[19] ?? NaN);
}

function userOf(pid: string): string | undefined {
  return /^Uid:\t(\d+)/m.exec(textOf(`/proc/${pid}/status`))?.[1];
}

function ancestors(pid: string): string[] {
  const parent = statFields(`/proc/${pid}`)?.[1] ?? '0';
  return parent === '0' ? [] : [parent, ...ancestors(parent)];
}

/** Its variables, or what it has written over them; none where it has ended, or hides them. */
function environmentOf(pid: string): string[] {
  return readIfThere(`/proc/${pid}/environ`)?.split('\0') ?? [];
}
