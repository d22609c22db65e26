// Whether this machine lets us make a network of the run's own, asked before anything is measured.
import { open } from 'node:fs/promises';
import { UserError } from '../errors.ts';
import { find, type Machine } from '../setup/machine.ts';
import { lastLine, run } from '../setup/run.ts';
import { makeNamespaces, type Caller } from './namespaces.ts';

/** The commands that namespaces are made and entered with. */
const commands = ['unshare', 'nsenter'] as const;

const tunDevice = '/dev/net/tun';

/** Tries what a network takes. Throws UserError with one line that says what is missing and what to do, or the signal's reason. */
export async function requireNetworks(machine: Machine, caller: Caller, signal: AbortSignal): Promise<void> {
  const problem = await missingCommand(machine) ?? await noNamespaces(machine, caller, signal) ?? await noTun(caller);
  if (problem !== undefined) throw new UserError(`a network of the run's own cannot be made: ${problem}`);
}

async function missingCommand(machine: Machine): Promise<string | undefined> {
  const paths = await Promise.all(commands.map((command) => find(command, machine)));
  const missing = commands.filter((_, index) => paths[index] === undefined);
  return missing.length === 0 ? undefined : `${missing.join(' and ')} ${missing.length === 1 ? 'is' : 'are'} missing: install util-linux`;
}

async function noNamespaces(machine: Machine, caller: Caller, signal: AbortSignal): Promise<string | undefined> {
  const { code, stderr } = await run({ before: makeNamespaces(caller), command: 'unshare', args: ['--net', 'true'], env: machine.env, signal });
  if (code === 0) return undefined;
  const said = lastLine(stderr).replace(/^unshare: /, '');
  return caller.uid === 0
    ? `network namespaces are not allowed here (${said}): a container has to be started with --privileged, or as the head of docker/Dockerfile says`
    : `namespaces are not allowed to this user (${said}): start as root, or have root allow user namespaces, by the settings that `
      + 'this kernel has of user.max_user_namespaces, kernel.unprivileged_userns_clone=1 and kernel.apparmor_restrict_unprivileged_userns=0';
}

async function noTun({ uid }: Caller): Promise<string | undefined> {
  try {
    await (await open(tunDevice, 'r+')).close();
    return undefined;
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ENODEV') return `there is no ${tunDevice} (${code}): as root "modprobe tun"; a container has to be started with --device ${tunDevice}`;
    if (uid !== 0 && code === 'EACCES') return `${tunDevice} is closed to this user: start as root, or open it as root with "chmod 666 ${tunDevice}"`;
    return `${tunDevice} cannot be opened (${message})`;
  }
}
