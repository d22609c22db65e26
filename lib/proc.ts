// What /proc says of processes and their sockets. Nothing of what has ended, or is another user's.
import { linkOf, namesIn, textOf } from './read-if-there.ts';

/** Of all processes that there are. `proc`: where the proc file system is mounted. */
export function processIds(proc: string): string[] {
  return namesIn(proc).filter((name) => /^\d+$/.test(name));
}

/** Inodes of the sockets that a process has open. `folder`: its own in /proc. */
export function socketsOf(folder: string): string[] {
  return namesIn(`${folder}/fd`).flatMap(
    (descriptor) => /^socket:\[(\d+)\]$/.exec(linkOf(`${folder}/fd/${descriptor}`))?.[1] ?? [],
  );
}

/** Inodes of the unix sockets with that path that listen; an abstract name begins with @. */
export function listeningAt(socket: string, proc: string): string[] {
  const accepting = 0x10000;
  return textOf(`${proc}/net/unix`)
    .split('\n')
    .flatMap((line) => {
      // Num, RefCount, Protocol, Flags, Type, St, Inode, Path
      const [, flags = '', inode = '', path = ''] =
        /^\S+ \S+ \S+ (\S+) \S+ \S+ +(\d+) (.*)$/.exec(line) ?? [];
      return path === socket && (parseInt(flags, 16) & accepting) !== 0 ? [inode] : [];
    });
}
