// Makes and enters network namespaces, without root in a user namespace, and checks that this machine allows it.
import { open } from 'node:fs/promises';
import { UserError } from '../errors.ts';
import { find, type Machine } from '../setup/machine.ts';
import { lastLine, run } from '../setup/run.ts';

export interface Caller {
  uid: number;
  gid: number;
}

export function thisCaller(): Caller {
  return { uid: process.getuid?.() ?? 0, gid: process.getgid?.() ?? 0 };
}

/** Goes before the program that makes network namespaces; keeps its process id. */
export function makeNamespaces({ uid }: Caller): readonly string[] {
  return uid === 0 ? [] : ['unshare', '--user', '--map-root-user', '--'];
}

/** Goes before a command to run it in the namespace at `netns` that process `maker` made; keeps its process id and user. */
export function enterNetwork(
  { uid, gid }: Caller,
  maker: number,
  netns: string,
): readonly string[] {
  if (uid === 0) return ['nsenter', `--net=${netns}`, '--'];
  // As root of the user namespace, the server would try to become nobody, and cannot.
  const asItself = ['unshare', '--user', `--map-user=${uid}`, `--map-group=${gid}`, '--'];
  return ['nsenter', ...userNamespaceOf(maker), `--net=${netns}`, '--', ...asItself];
}

/** Goes before a command that stays in the machine's network and opens sockets in the maker's namespaces; empty for root. */
export function enterAsMaker({ uid }: Caller, maker: number): readonly string[] {
  return uid === 0 ? [] : ['nsenter', ...userNamespaceOf(maker), '--'];
}

/** Without --preserve-credentials, nsenter changes the groups, which fails in this user namespace. */
function userNamespaceOf(maker: number): string[] {
  return ['--preserve-credentials', `--user=/proc/${maker}/ns/user`];
}

const tunDevice = '/dev/net/tun';

/** Throws UserError if this machine does not allow networks, or the signal's reason. */
export async function requireNetworks(
  machine: Machine,
  caller: Caller,
  signal: AbortSignal,
): Promise<void> {
  for (const command of ['unshare', 'nsenter'])
    if ((await find(command, machine)) === undefined)
      throw impossible(`${command} is missing: install util-linux`);
  const problem = (await noNamespaces(machine, caller, signal)) ?? (await noTun(caller));
  if (problem !== undefined) throw impossible(problem);
}

const impossible = (problem: string): UserError =>
  new UserError(`a network of the run's own cannot be made: ${problem}`);

async function noNamespaces(
  machine: Machine,
  caller: Caller,
  signal: AbortSignal,
): Promise<string | undefined> {
  const { code, stderr } = await run({
    before: makeNamespaces(caller),
    command: 'unshare',
    args: ['--net', 'true'],
    env: machine.env,
    signal,
  });
  if (code === 0) return undefined;
  const said = lastLine(stderr).replace(/^unshare: /, '');
  return caller.uid === 0
    ? `network namespaces are not allowed here (${said}): a container has to be started with --privileged, or as the head of docker/Dockerfile says`
    : `namespaces are not allowed to this user (${said}): start as root, or have root allow user namespaces, by the settings that ` +
        'this kernel has of user.max_user_namespaces, kernel.unprivileged_userns_clone=1 and kernel.apparmor_restrict_unprivileged_userns=0';
}

async function noTun({ uid }: Caller): Promise<string | undefined> {
  try {
    await (await open(tunDevice, 'r+')).close();
    return undefined;
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ENODEV')
      return `there is no ${tunDevice} (${code}): as root "modprobe tun"; a container has to be started with --device ${tunDevice}`;
    if (uid !== 0 && code === 'EACCES')
      return `${tunDevice} is closed to this user: start as root, or open it as root with "chmod 666 ${tunDevice}"`;
    return `${tunDevice} cannot be opened (${message})`;
  }
}
