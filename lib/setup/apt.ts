// Installing packages with apt-get so that nothing they bring is left running or enabled.
import { existsSync } from 'node:fs';
import { rm, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { UserError } from '../errors.ts';
import { enumeration } from '../format.ts';
import { toItsEnd } from '../process.ts';
import { withLock } from '../lock-file.ts';
import { textOf } from '../files.ts';
import type { Machine } from './machine.ts';
import { aptPackages, type PackagedTool } from './packages.ts';
import { lastLine, run, type Finished } from './run.ts';

const lockPatienceSeconds = 120;
// Asked of our own apt-get only, which hands its environment down: one that a killed bakeoff leaves behind does nothing.
const policy =
  '#!/bin/sh\n# Placed by bakeoff while it installs packages, so that they do not start services; removed right after.\n[ -z "$BAKEOFF_INSTALLS" ] || exit 101\n';

/**
 * Installs tools as root, and says beforehand which packages that takes. One bakeoff at a time does this; `stillMissing` is
 * asked when it is our turn.
 * Throws UserError with apt's own error line when it fails. On `signal` apt ends as on Ctrl-C: at once while it
 * downloads, after the packages are set up otherwise; the rejection, with the signal's reason, comes when it has ended.
 */
export async function aptInstall(
  stillMissing: () => Promise<PackagedTool[]>,
  machine: Machine,
  signal: AbortSignal,
): Promise<void> {
  await withLock(join(machine.systemRoot, 'run/bakeoff-apt.lock'), signal, async () => {
    const tools = await stillMissing();
    if (tools.length === 0) return;
    const packages = tools.flatMap(aptPackages);
    const env = aptEnvironment(machine);
    const update = await aptGet(['update'], env, signal);
    const install = async (...options: string[]): Promise<string> => {
      const finished = await aptGet(
        ['install', '-y', '--no-install-recommends', '--no-remove', ...options, ...packages],
        env,
        signal,
      );
      if (finished.code === 0) return finished.stdout;
      const cause = errorLine(update.code === 0 ? finished.stderr : update.stderr);
      throw new UserError(
        `apt-get could not install ${packages.join(', ')}: ${cause}; by hand: apt-get update && apt-get install ${packages.join(' ')}`,
      );
    };
    const added = newPackages(await install('--simulate'));
    machine.progress.print(announcement(tools, packages, added));
    // Debian's package scripts ask it before they start a service. A machine that has its own keeps it.
    const policyFile = join(machine.systemRoot, 'usr/sbin/policy-rc.d');
    const installThem = async (): Promise<void> => {
      try {
        if (!existsSync(policyFile)) await writeFile(policyFile, policy, { mode: 0o755 });
        await install();
      } finally {
        // Also after a failure or an interrupt: some packages may be set up by then.
        await disableServices(added, env);
        if (textOf(policyFile) === policy) await rm(policyFile);
      }
    };
    await toItsEnd('apt-get', installThem());
  });
}

/** Which packages are installed, and why, in one line. `added`: all that are new. */
function announcement(
  tools: readonly PackagedTool[],
  packages: readonly string[],
  added: readonly string[],
): string {
  const others = added.filter((name) => !packages.includes(name)).length;
  const all = [
    ...packages,
    ...(others === 0
      ? []
      : [
          `${others} ${others === 1 ? 'package' : 'packages'} that ${packages.length === 1 ? 'it needs' : 'these need'}`,
        ]),
  ];
  return `apt-get installs ${enumeration(all)}, since ${enumeration(tools)} ${tools.length === 1 ? 'is' : 'are'} missing; no service of theirs is started or enabled; --no-install forbids it`;
}

/** Of what `apt-get --simulate` says, the packages that are not there yet: it names the version of those that are. */
export function newPackages(simulation: string): string[] {
  return [...simulation.matchAll(/^Inst (\S+) \(/gm)].map(([, name]) => name as string);
}

function aptEnvironment(machine: Machine): NodeJS.ProcessEnv {
  return {
    ...machine.env,
    // dpkg and its scripts need the sbin folders, which a plain `su` leaves out.
    PATH: [machine.env.PATH, ...machine.extraFolders].join(':'),
    BAKEOFF_INSTALLS: '1',
    DEBIAN_FRONTEND: 'noninteractive',
    // needrestart, on Ubuntu, would restart services that have nothing to do with us.
    NEEDRESTART_SUSPEND: '1',
    LC_ALL: 'C.UTF-8',
  };
}

/** Runs apt-get; waits for other users of its locks, the ones it does not wait for itself included. */
async function aptGet(
  args: readonly string[],
  env: NodeJS.ProcessEnv,
  signal: AbortSignal,
): Promise<Finished> {
  const deadline = performance.now() + lockPatienceSeconds * 1000;
  for (;;) {
    const finished = await run({
      command: 'apt-get',
      args: [
        '-qq',
        '-o',
        `DPkg::Lock::Timeout=${lockPatienceSeconds}`,
        '-o',
        'APT::Update::Error-Mode=any',
        '-o',
        'DPkg::Options::=--force-confold',
        ...args,
      ],
      env,
      signal,
      stopWith: 'SIGINT',
    });
    if (
      finished.code === 0 ||
      !finished.stderr.includes('Could not get lock') ||
      performance.now() > deadline
    )
      return finished;
    // An abort ends the wait; the next turn rejects with its reason.
    await sleep(1000, undefined, { signal }).catch(() => undefined);
  }
}

/** apt's last error line that names a cause rather than sums up. */
export function errorLine(stderr: string): string {
  const errors = stderr
    .split('\n')
    .filter((line) => line.startsWith('E: '))
    .map((line) => line.slice(3).trim());
  const summaries =
    /^(Some index files|Unable to fetch some|Unable to lock|Can not write log|Sub-process)/;
  return (
    errors.filter((line) => !summaries.test(line)).at(-1) ??
    errors.at(-1) ??
    (lastLine(stderr) || 'it gave no reason')
  );
}

/** Takes the services of these packages, as far as they are installed, out of the machine's start. */
async function disableServices(packages: readonly string[], env: NodeJS.ProcessEnv): Promise<void> {
  if (packages.length === 0) return;
  const { stdout } = await run({ command: 'dpkg-query', args: ['-L', ...packages], env });
  const services = stdout
    .split('\n')
    .filter((path) =>
      /^\/etc\/init\.d\/[^/]+$|^(\/usr)?\/lib\/systemd\/system\/[^/@]+\.service$/.test(path),
    )
    .map((path) => basename(path, '.service'));
  // update-rc.d, which every Debian has, also unlinks the systemd unit of that name, with and without systemctl.
  for (const service of new Set(services))
    await run({ command: 'update-rc.d', args: [service, 'disable'], env });
}
