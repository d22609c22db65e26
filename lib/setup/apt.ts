// Installing packages with apt-get so that nothing they bring is left running or enabled.
import { existsSync } from 'node:fs';
import { lstat, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { UserError } from '../errors.ts';
import { enumeration } from '../format.ts';
import { withLock } from '../lock-file.ts';
import { namesIn } from '../read-if-there.ts';
import { find, type Machine } from './machine.ts';
import { aptPackages, type PackagedTool } from './packages.ts';
import { lastLine, run, type Finished } from './run.ts';

const lockPatienceSeconds = 120;
// Asked of our own apt-get only, which hands its environment down: one that a killed bakeoff leaves behind does nothing.
const policy = '#!/bin/sh\n# Placed by bakeoff while it installs packages, so that they do not start services; removed right after.\n[ -z "$BAKEOFF_INSTALLS" ] || exit 101\n';

/**
 * Installs tools as root, and says beforehand which packages that takes. One bakeoff at a time does this; `stillMissing` is
 * asked when it is our turn.
 * Throws UserError with apt's own error line when it fails. On `signal` apt ends as on Ctrl-C: at once while it
 * downloads, after the packages are set up otherwise; the rejection, with the signal's reason, comes when it has ended.
 */
export async function aptInstall(stillMissing: () => Promise<PackagedTool[]>, machine: Machine, signal: AbortSignal): Promise<void> {
  await alone(machine, signal, async () => {
    // A bakeoff may have been killed while we waited.
    await tidyUpAfterKilled(machine, signal);
    const tools = await stillMissing();
    if (tools.length === 0) return;
    const packages = tools.flatMap(aptPackages);
    const env = aptEnvironment(machine);
    const update = await aptGet(['update'], env, signal);
    const install = async (...options: string[]): Promise<string> => {
      const finished = await aptGet(['install', '-y', '--no-install-recommends', '--no-remove', ...options, ...packages], env, signal);
      if (finished.code === 0) return finished.stdout;
      const cause = errorLine(update.code === 0 ? finished.stderr : update.stderr);
      throw new UserError(`apt-get could not install ${packages.join(', ')}: ${cause}; by hand: apt-get update && apt-get install ${packages.join(' ')}`);
    };
    const added = newPackages(await install('--simulate'));
    machine.progress.print(announcement(tools, packages, added));
    await writeFile(newPackagesFile(machine), added.join('\n'));
    try {
      // What Debian's package scripts ask before they start a service. A machine that has its own keeps it.
      if (!existsSync(policyFile(machine))) await writeFile(policyFile(machine), policy, { mode: 0o755 });
      // dpkg goes on when apt and bakeoff are killed, and the file's time says when it was done.
      await install('-o', `DPkg::Options::=--post-invoke=touch -c ${newPackagesFile(machine)}`);
    } finally {
      // Also after a failure or an interrupt: some packages may be set up by then.
      await tidyUp(machine);
    }
  });
}

/** Which packages are installed, and why, in one line. `added`: all that are new. */
function announcement(tools: readonly PackagedTool[], packages: readonly string[], added: readonly string[]): string {
  const others = added.filter((name) => !packages.includes(name)).length;
  const all = [...packages, ...(others === 0 ? [] : [`${others} ${others === 1 ? 'package' : 'packages'} that ${packages.length === 1 ? 'it needs' : 'these need'}`])];
  return `apt-get installs ${enumeration(all)}, since ${enumeration(tools)} ${tools.length === 1 ? 'is' : 'are'} missing; no service of theirs is started or enabled; --no-install forbids it`;
}

/** Does what a bakeoff that was killed while it installed packages has left undone, if there was one. */
export async function finishKilledInstall(machine: Machine, signal: AbortSignal): Promise<void> {
  if (!machine.isRoot || !machine.mayInstall || !existsSync(newPackagesFile(machine))) return;
  await machine.progress.step('apt-get', 'finishing what an interrupted start has left', () => alone(machine, signal, () => tidyUpAfterKilled(machine, signal)));
}

async function tidyUpAfterKilled(machine: Machine, signal: AbortSignal): Promise<void> {
  if (!existsSync(newPackagesFile(machine))) return;
  // Its dpkg may go on alone for a while: this waits for the lock, whatever it says then.
  await aptGet(['check'], aptEnvironment(machine), signal);
  const { mtimeMs } = await stat(newPackagesFile(machine));
  await tidyUp(machine, mtimeMs);
}

/** One lock for all checkouts of bakeoff on the machine. */
async function alone(machine: Machine, signal: AbortSignal, work: () => Promise<void>): Promise<void> {
  await withLock(join(machine.systemRoot, 'run/bakeoff-apt.lock'), signal, work);
}

/** The packages that are being installed; there as long as their services may be enabled. It outlives a restart of the machine. */
function newPackagesFile(machine: Machine): string {
  return join(machine.systemRoot, 'var/lib/bakeoff-new-packages');
}

function policyFile(machine: Machine): string {
  return join(machine.systemRoot, 'usr/sbin/policy-rc.d');
}

/**
 * Disables the services that came with new packages and takes the policy away. `untilMs`: when dpkg was done, if people may have
 * used the services since.
 */
async function tidyUp(machine: Machine, untilMs?: number): Promise<void> {
  const packages = await readFile(newPackagesFile(machine), 'utf8');
  await disableServices(packages.split('\n').filter((name) => name !== ''), machine, untilMs);
  if (await readFile(policyFile(machine), 'utf8').catch(() => undefined) === policy) await rm(policyFile(machine));
  await rm(newPackagesFile(machine));
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
    // An abort ends the wait; the next turn rejects with its reason.
    await sleep(1000, undefined, { signal }).catch(() => undefined);
  }
}

/** apt's last error line that names a cause rather than sums up. */
export function errorLine(stderr: string): string {
  const errors = stderr.split('\n').filter((line) => line.startsWith('E: ')).map((line) => line.slice(3).trim());
  const summaries = /^(Some index files|Unable to fetch some|Unable to lock|Can not write log|Sub-process)/;
  return errors.filter((line) => !summaries.test(line)).at(-1) ?? errors.at(-1) ?? (lastLine(stderr) || 'it gave no reason');
}

/**
 * Takes the services of these packages, as far as they are there, out of the machine's start: systemd's and init scripts. Not
 * those that somebody has enabled after `untilMs`, or runs.
 */
async function disableServices(packages: readonly string[], machine: Machine, untilMs: number | undefined): Promise<void> {
  if (packages.length === 0) return;
  const env = aptEnvironment(machine);
  const { stdout } = await run({ command: 'dpkg-query', args: ['-L', ...packages], env });
  const services = stdout.split('\n').filter((path) => /^\/etc\/init\.d\/[^/]+$|^(\/usr)?\/lib\/systemd\/system\/[^/@]+\.service$/.test(path))
    .map((path) => basename(path, '.service'));
  for (const service of new Set(services)) {
    if (untilMs !== undefined && await isWanted(service, untilMs, machine)) {
      machine.progress.print(`${service}, which an interrupted start has installed, has been enabled or started since and stays as it is; to disable it: update-rc.d ${service} disable`);
    } else {
      // update-rc.d, which every Debian has, also unlinks the systemd unit of that name, with and without systemctl.
      await run({ command: 'update-rc.d', args: [service, 'disable'], env });
    }
  }
}

/** Whether somebody has enabled the service after that time, or it runs: enabling what is enabled leaves no trace but that. */
async function isWanted(service: string, untilMs: number, machine: Machine): Promise<boolean> {
  const times = await Promise.all(enablingLinks(service, machine).map((link) => lstat(link).then(({ mtimeMs }) => mtimeMs, () => 0)));
  if (times.some((time) => time > untilMs)) return true;
  if (await find('systemctl', machine) === undefined) return false;
  const { code } = await run({ command: 'systemctl', args: ['is-active', '--quiet', `${service}.service`], env: aptEnvironment(machine) });
  return code === 0;
}

/** The links by which systemd and init scripts start a service with the machine; some may not be there. */
function enablingLinks(service: string, { systemRoot }: Machine): string[] {
  const units = join(systemRoot, 'etc/systemd/system');
  const wanting = namesIn(units).filter((name) => /\.(wants|requires)$/.test(name)).map((name) => join(units, name, `${service}.service`));
  const levels = ['2', '3', '4', '5', 'S'].map((level) => join(systemRoot, `etc/rc${level}.d`));
  const starting = levels.flatMap((level) => namesIn(level).filter((name) => /^S\d\d/.test(name) && name.slice(3) === service).map((name) => join(level, name)));
  return [...wanting, ...starting];
}
