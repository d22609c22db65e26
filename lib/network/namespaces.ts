// How namespaces are made and entered: by root as it is, by anyone else as the root of a user namespace of its own.

/** Whoever starts bakeoff. */
export interface Caller { uid: number; gid: number }

export function thisCaller(): Caller {
  return { uid: process.getuid?.() ?? 0, gid: process.getgid?.() ?? 0 };
}

/** What is put before the program that makes network namespaces. It keeps its process id. */
export function makeNamespaces({ uid }: Caller): readonly string[] {
  return uid === 0 ? [] : ['unshare', '--user', '--map-root-user', '--'];
}

/**
 * What is put before a command to start it in a network namespace; it keeps its process id, and its user.
 * @param maker the process that made it
 * @param netns its path
 */
export function enterNetwork({ uid, gid }: Caller, maker: number, netns: string): readonly string[] {
  if (uid === 0) return ['nsenter', `--net=${netns}`, '--'];
  // Not as the root of the user namespace, who would be told to become nobody there, and cannot.
  const asItself = ['unshare', '--user', `--map-user=${uid}`, `--map-group=${gid}`, '--'];
  return ['nsenter', ...userNamespaceOf(maker), `--net=${netns}`, '--', ...asItself];
}

/** What is put before a command that stays in the machine's network and opens sockets in the maker's namespaces: nothing for root. */
export function enterAsMaker({ uid }: Caller, maker: number): readonly string[] {
  return uid === 0 ? [] : ['nsenter', ...userNamespaceOf(maker), '--'];
}

/** Groups cannot be changed there, which nsenter would want to do. */
function userNamespaceOf(maker: number): string[] {
  return ['--preserve-credentials', `--user=/proc/${maker}/ns/user`];
}
