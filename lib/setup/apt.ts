// Installing packages with apt-get so that nothing they bring is left running or enabled.
import { readFile, rm, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { UserError } from '../errors.ts';
import { withLock } from './lock.ts';
import type { Machine } from './machine.ts';
import { run, type Finished } from './run.ts';

const lockPatienceSeconds = 120;
// Asked of our own apt-get only, which hands its environment down: one that a killed bakeoff leaves behind does nothing.
const policy = '#!/bin/sh\n# Placed by bakeoff while it installs packages, so that they do not start services; removed right after.\n[ -z "$BAKEOFF_INSTALLS" ] || exit 101\n';

/**
 * Installs packages as root. One bakeoff at a time does this; `stillMissing` is asked when it is our turn.
 * Throws UserError with apt's own error line when it fails. On `signal` apt ends as on Ctrl-C: at once while it
 * downloads, after the packages are set up otherwise; the rejection comes when it has ended.
 */
export async function aptInstall(stillMissing: () => Promise<string[]>, machine: Machine, signal: AbortSignal): Promise<void> {
  // One lock for all checkouts of bakeoff on the machine.
  await withLock(join(machine.systemRoot, 'run/bakeoff-apt.lock'), signal, async () => {
    const packages = await stillMissing();
    if (packages.length === 0) return;
    const env = aptEnvironment(machine);
    const policyFile = join(machine.systemRoot, 'usr/sbin/policy-rc.d');
    const before = new Set(await installedPackages(env));
    const policyPlaced = await placePolicy(policyFile);
    try {
      const update = await aptGet(['update'], env, signal);
      const install = await aptGet(['install', '-y', '--no-install-recommends', '--no-remove', ...packages], env, signal);
      if (install.code !== 0) {
        const cause = errorLine(update.code === 0 ? install.stderr : update.stderr);
        throw new UserError(`apt-get could not install ${packages.join(', ')}: ${cause}; by hand: apt-get update && apt-get install ${packages.join(' ')}`);
      }
    } finally {
      // Also after a failure or an interrupt: some packages may be set up by then.
      const added = (await installedPackages(env)).filter((name) => !before.has(name));
      await disableServices(added, env);
      if (policyPlaced) await rm(policyFile, { force: true });
    }
  });
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

/**
 * policy-rc.d is what Debian's package scripts ask before they start a service. A machine that has its own keeps it.
 * Returns whether there is one of ours now, which includes one that a killed bakeoff left behind.
 */
async function placePolicy(policyFile: string): Promise<boolean> {
  const present = await readFile(policyFile, 'utf8').catch(() => undefined);
  if (present === undefined) await writeFile(policyFile, policy, { mode: 0o755 });
  return present === undefined || present === policy;
}

/** Runs apt-get; waits for other users of its locks, the ones it does not wait for itself included. */
async function aptGet(args: readonly string[], env: NodeJS.ProcessEnv, signal: AbortSignal): Promise<Finished> {
  const deadline = performance.now() + lockPatienceSeconds * 1000;
  for (;;) {
    const finished = await run({
      command: 'apt-get',
      args: ['-qq', '-o', `DPkg::Lock::Timeout=${lockPatienceSeconds}`, '-o', 'APT::Update::Error-Mode=any', '-o', 'DPkg::Options::=--force-confold', ...args],
      env,
      signal,
      stopWith: 'SIGINT',
    });
    if (finished.code === 0 || !finished.stderr.includes('Could not get lock') || performance.now() > deadline) return finished;
    await sleep(1000, undefined, { signal });
  }
}

/** apt's last error line that names a cause rather than sums up. */
export function errorLine(stderr: string): string {
  const errors = stderr.split('\n').filter((line) => line.startsWith('E: ')).map((line) => line.slice(3).trim());
  const summaries = /^(Some index files|Unable to fetch some|Unable to lock|Can not write log|Sub-process)/;
  return errors.filter((line) => !summaries.test(line)).at(-1) ?? errors.at(-1) ?? (stderr.trim().split('\n').at(-1) || 'it gave no reason');
}

async function installedPackages(env: NodeJS.ProcessEnv): Promise<string[]> {
  const { stdout } = await run({ command: 'dpkg-query', args: ['-W', '-f', '${binary:Package} ${db:Status-Status}\n'], env });
  return stdout.split('\n').filter((line) => line.endsWith(' installed')).map((line) => line.slice(0, line.indexOf(' ')));
}

/** Takes the services of these packages out of the machine's start, for systemd and for init scripts alike. */
async function disableServices(packages: readonly string[], env: NodeJS.ProcessEnv): Promise<void> {
  if (packages.length === 0) return;
  const { stdout } = await run({ command: 'dpkg-query', args: ['-L', ...packages], env });
  const services = stdout.split('\n').filter((path) => /^\/etc\/init\.d\/[^/]+$|^(\/usr)?\/lib\/systemd\/system\/[^/@]+\.service$/.test(path))
    .map((path) => basename(path, '.service'));
  // update-rc.d, which every Debian has, also unlinks the systemd unit of that name, with and without systemctl.
  for (const service of new Set(services)) await run({ command: 'update-rc.d', args: [service, 'disable'], env });
}
