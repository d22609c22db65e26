// Processes, their users and their sockets, as /proc has them.
import { linkOf, namesIn, readIfThere, textOf } from './files.ts';

/** Returns the ids of all processes. @param proc the mount point of the proc file system */
export function processIds(proc: string): string[] {
  return namesIn(proc).filter((name) => /^\d+$/.test(name));
}

/** The id of a process's real user; undefined if it has ended. */
export function userOf(pid: string): number | undefined {
  const id = /^Uid:\s+(\d+)/m.exec(textOf(`/proc/${pid}/status`))?.[1];
  return id === undefined ? undefined : Number(id);
}

/**
 * The fields of /proc/PID/stat after the command's name, which may have spaces and brackets: state, ppid, pgrp, …; utime is at index 11.
 */
export function statFields(folder: string): string[] | undefined {
  const stat = readIfThere(`${folder}/stat`);
  return stat?.slice(stat.lastIndexOf(')') + 2).split(' ');
}

/** The session of a process; undefined if it has ended. */
export const sessionOf = (pid: number): string | undefined => statFields(`/proc/${pid}`)?.[3];

/**
 * Returns the folder in /proc with a process's memory, files and namespaces. If its first thread has ended (pthread_exit(3)), it is the
 * folder of a thread that still runs.
 * @param proc the mount point of the proc file system
 */
export function livingFolder(pid: string, proc = '/proc'): string {
  const folder = `${proc}/${pid}`;
  const lives = (task: string) => !/^State:\s+[ZX]/m.test(textOf(`${task}/status`));
  if (lives(folder)) return folder;
  const tasks = namesIn(`${folder}/task`).map((task) => `${folder}/task/${task}`);
  return tasks.find(lives) ?? folder;
}

/** Returns the inodes of a process's open sockets. @param proc the mount point of the proc file system */
export function socketsOf(pid: string | number, proc = '/proc'): string[] {
  const openIn = (folder: string) => namesIn(`${folder}/fd`).map((name) => `${folder}/fd/${name}`);
  const first = openIn(`${proc}/${pid}`);
  const files = first.length > 0 ? first : openIn(livingFolder(String(pid), proc));
  return files.flatMap((file) => /^socket:\[(\d+)\]$/.exec(linkOf(file))?.[1] ?? []);
}

/** Returns the unix sockets that accept connections. The path of an abstract socket begins with @. */
export function listeningUnixSockets(proc = '/proc'): { path: string; inode: string }[] {
  const accepting = 0x10000;
  return textOf(`${proc}/net/unix`)
    .split('\n')
    .flatMap((line) => {
      // Num, RefCount, Protocol, Flags, Type, St, Inode, Path
      const [, flags = '', inode = '', path = ''] =
        /^\S+ \S+ \S+ (\S+) \S+ \S+ +(\d+) (.*)$/.exec(line) ?? [];
      return (parseInt(flags, 16) & accepting) === 0 ? [] : [{ path, inode }];
    });
}

/** Returns the inodes of the unix sockets that listen at a path. */
export function listeningAt(socket: string): string[] {
  return listeningUnixSockets().flatMap(({ path, inode }) => (path === socket ? [inode] : []));
}
