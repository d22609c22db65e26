// Finds the programs that bakeoff needs, by environment variable or on PATH. Missing ones are installed with apt-get, if root and allowed;
// k6 is built from source.
import { existsSync } from 'node:fs';
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { foldersOf } from '../../bin/trust.mjs';
import { UserError } from '../errors.ts';
import { textOf } from '../files.ts';
import { enumeration, percent } from '../format.ts';
import { withLock } from '../machine/locks.ts';
import { keysOf } from '../present.ts';
import { lastLine, run, type Finished, withUserUmask } from '../process.ts';
import { toItsEnd } from '../signals.ts';
import { lookForK6, type Build } from './k6.ts';
import { type Machine, find, isExecutableFile, leftOutOfPath, thisMachine } from './machine.ts';
import { fromCallersFolder } from './paths.ts';
import { isServerName, servers, type ServerName } from './servers.ts';

export type ToolName = 'k6' | PackagedTool;

/** The variable that names a tool's binary. */
export function toolVariable(name: ToolName): string {
  return `${name.toUpperCase()}_BIN`;
}

/**
 * Finds or installs the tools, with progress on stderr. Returns absolute paths. If one tool cannot be had, nothing is installed.
 * @throws UserError with a line for each missing tool; the signal's reason once apt and Go have ended
 */
export async function ensureTools<N extends ToolName>(
  names: readonly N[],
  machine: Machine = thisMachine(),
  signal: AbortSignal = new AbortController().signal,
): Promise<Record<N, string>> {
  const outcomes = await Promise.allSettled(names.map((name) => look(name, machine)));
  const looked = valuesOrThrow(outcomes);
  signal.throwIfAborted();

  const toInstall = looked.flatMap(({ install }) => install ?? []);
  const installed = toInstall.length === 0 ? [] : [aptInstall(toInstall, machine, signal)];
  const built = looked
    .flatMap(({ build }) => build ?? [])
    .map((build) => buildK6(build, machine, signal));
  valuesOrThrow(await Promise.allSettled([...installed, ...built]));

  const paths = {} as Record<N, string>;
  for (const [index, name] of names.entries()) {
    const path = looked[index]?.path ?? (await find(name, machine));
    if (path === undefined)
      throw new UserError(
        `${name} was installed but is not on PATH: set ${toolVariable(name)} to its path`,
      );
    paths[name] = path;
  }
  return paths;
}

function buildK6(build: Build, { progress }: Machine, signal: AbortSignal): Promise<void> {
  const what = 'building from xk6-loadgen/, once';
  return progress.step('k6', `${what} (a minute or two)`, (step) =>
    build(signal, (share) => step.doing(`${what}: ${percent(share)} of its packages`)),
  );
}

/** Returns the tools that are missing and that this user cannot install, each with a remedy. */
export async function missingTools(
  names: readonly ToolName[],
  machine: Machine,
): Promise<Map<string, string>> {
  const missing = new Map<string, string>();
  for (const name of names) {
    try {
      await look(name, machine);
    } catch (error) {
      if (!(error instanceof UserError)) throw error;
      missing.set(name, error.message);
    }
  }
  return missing;
}

type Looked = Partial<Awaited<ReturnType<typeof lookForK6>>> & { install?: PackagedTool };

async function look(name: ToolName, machine: Machine): Promise<Looked> {
  const variable = toolVariable(name);
  const named = machine.env[variable];
  if (named !== undefined && named !== '') {
    const path = fromCallersFolder(named);
    if (await isExecutableFile(path)) return { path };
    throw new UserError(
      `${variable}=${named} is not an executable file: correct it, or unset it to let bakeoff find ${name}`,
    );
  }
  if (name === 'k6') return lookForK6(machine);
  const path = await find(name, machine);
  if (path !== undefined) return { path };
  if (machine.mayInstall && machine.isRoot && (await find('apt-get', machine)) !== undefined)
    return { install: name };
  throw new UserError(
    `${name} is missing${await leftOutOfPath(name)}: ${await howToInstall(name, machine)}, or set ${variable} to its path`,
  );
}

function valuesOrThrow<T>(outcomes: readonly PromiseSettledResult<T>[]): T[] {
  const messages: string[] = [];
  const values: T[] = [];
  for (const outcome of outcomes)
    if (outcome.status === 'fulfilled') values.push(outcome.value);
    else if (outcome.reason instanceof UserError) messages.push(outcome.reason.message);
    else throw outcome.reason;
  if (messages.length > 0) throw new UserError(messages);
  return values;
}

const installs = {
  'apt-get': 'apt-get install --no-install-recommends',
  dnf: 'dnf install',
  pacman: 'pacman -S',
  zypper: 'zypper install',
  apk: 'apk add',
} as const;

type Manager = keyof typeof installs;

/** A tool's packages by package manager, `all` for the others, and its page. */
type Packaged = { page: string; all?: string } & { [M in Manager]?: string };

const otherTools = {
  openssl: { page: 'https://www.openssl.org', all: 'openssl' },
  influxd: {
    page: 'https://docs.influxdata.com/influxdb/v1/introduction/install/',
    'apt-get': 'influxdb',
    pacman: 'influxdb',
    apk: 'influxdb',
  },
  wrk: { page: 'https://github.com/wg/wrk', all: 'wrk' },
  ab: {
    page: 'https://httpd.apache.org',
    all: 'apache2-utils',
    dnf: 'httpd-tools',
    pacman: 'apache',
  },
  h2load: {
    page: 'https://nghttp2.org',
    'apt-get': 'nghttp2-client',
    dnf: 'nghttp2',
    zypper: 'nghttp2',
    apk: 'nghttp2',
  },
  gcc: { page: 'https://gcc.gnu.org', all: 'gcc', 'apt-get': 'gcc libc6-dev', apk: 'gcc musl-dev' },
  perf: { page: 'https://perfwiki.github.io', all: 'perf', 'apt-get': 'linux-perf' },
  chromium: { page: 'https://www.chromium.org', all: 'chromium' },
  caddy: { page: 'https://caddyserver.com/docs/install', all: 'caddy' },
  lighttpd: { page: 'https://www.lighttpd.net', all: 'lighttpd' },
  apache2: { page: 'https://httpd.apache.org', 'apt-get': 'apache2', zypper: 'apache2' },
  haproxy: { page: 'https://www.haproxy.org', all: 'haproxy' },
  sshd: { page: 'https://www.openssh.com/portable.html', all: 'openssh-server', pacman: 'openssh' },
} satisfies Record<string, Packaged>;

type PackagedTool = ServerName | keyof typeof otherTools;

function packaged(tool: PackagedTool): Packaged {
  return isServerName(tool) ? servers[tool].packages : otherTools[tool];
}

function packagesOf(tool: PackagedTool, manager: Manager): string | undefined {
  const { [manager]: packages, all } = packaged(tool);
  return packages ?? all;
}

export function aptPackages(tool: PackagedTool): string[] {
  return packagesOf(tool, 'apt-get')?.split(' ') ?? [];
}

async function howToInstall(tool: PackagedTool, machine: Machine): Promise<string> {
  for (const manager of keysOf(installs)) {
    const packages = packagesOf(tool, manager);
    if (packages !== undefined && (await find(manager, machine)) !== undefined)
      return `install it with: ${machine.isRoot ? '' : 'sudo '}${installs[manager]} ${packages}`;
  }
  return `get it from ${packaged(tool).page}`;
}

const lockPatienceSeconds = 120;
/** It affects only bakeoff's own apt-get, so a file that a killed bakeoff leaves does nothing. */
const policy =
  '#!/bin/sh\n# Placed by bakeoff while it installs packages, so that they do not start services; removed right after.\n[ -z "$BAKEOFF_INSTALLS" ] || exit 101\n';

/**
 * Installs packages as root without starting or enabling their services. On `signal` apt ends as on Ctrl-C: after the packages are set up.
 * @throws UserError with apt's own error line; the signal's reason once apt has ended
 */
async function aptInstall(
  missing: readonly PackagedTool[],
  machine: Machine,
  signal: AbortSignal,
): Promise<void> {
  const lock = join(machine.systemRoot, 'run/bakeoff-apt.lock');
  const underLock = async () => {
    // Another bakeoff may have installed some meanwhile.
    const binaries = await Promise.all(missing.map((tool) => find(tool, machine)));
    const tools = missing.filter((_, index) => binaries[index] === undefined);
    if (tools.length === 0) return;
    const packages = tools.flatMap(aptPackages);
    const env: NodeJS.ProcessEnv = {
      ...machine.env,
      // dpkg and its scripts need the sbin folders, which a plain `su` leaves out.
      PATH: foldersOf([machine.env.PATH, ...machine.extraFolders].join(':')).kept.join(':'),
      BAKEOFF_INSTALLS: '1',
      DEBIAN_FRONTEND: 'noninteractive',
      // needrestart, on Ubuntu, would restart unrelated services.
      NEEDRESTART_SUSPEND: '1',
      LC_ALL: 'C.UTF-8',
    };
    const aptGet = await programOf('apt-get', machine);
    const update = await runApt(aptGet, ['update'], env, signal);
    const install = async (...options: string[]): Promise<string> => {
      const finished = await runApt(
        aptGet,
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
    // The simulation names the old version of packages to upgrade.
    const added = [...(await install('--simulate')).matchAll(/^Inst (\S+) \(/gm)].map(
      ([, name = '']) => name,
    );
    const others = added.filter((name) => !packages.includes(name)).length;
    const more =
      others === 0 ? '' : ` with ${others} ${others === 1 ? 'dependency' : 'dependencies'}`;
    machine.progress.print(
      `apt-get installs ${enumeration(packages)}${more}, since ${enumeration(tools)} ${tools.length === 1 ? 'is' : 'are'} missing; no service is started or enabled; --no-install forbids it`,
    );
    // A machine that has a policy-rc.d of its own keeps it.
    const policyFile = join(machine.systemRoot, 'usr/sbin/policy-rc.d');
    const installThem = async (): Promise<void> => {
      try {
        if (!existsSync(policyFile)) await writeFile(policyFile, policy, { mode: 0o755 });
        await install();
      } finally {
        // After a failure or an interrupt, some packages may be set up.
        await disableServices(added, env, machine);
        if (textOf(policyFile) === policy) await rm(policyFile);
      }
    };
    await toItsEnd('apt-get', installThem());
  };
  await machine.progress.step(missing.join(', '), 'installing with apt-get', async (step) => {
    const sayInterrupted = () => step.doing('interrupted, apt-get finishes what it has begun');
    signal.addEventListener('abort', sayInterrupted);
    try {
      await withLock(lock, signal, underLock);
    } finally {
      signal.removeEventListener('abort', sayInterrupted);
    }
  });
}

async function programOf(name: string, machine: Machine): Promise<string> {
  const program = await find(name, machine);
  if (program === undefined) throw new UserError(`${name} is missing on PATH`);
  return program;
}

/** Waits while others hold apt-get's locks. apt-get itself waits for only some of them. */
async function runApt(
  command: string,
  args: readonly string[],
  env: NodeJS.ProcessEnv,
  signal: AbortSignal,
): Promise<Finished> {
  const options = [
    `DPkg::Lock::Timeout=${lockPatienceSeconds}`,
    'APT::Update::Error-Mode=any',
    'DPkg::Options::=--force-confold',
  ].flatMap((option) => ['-o', option]);
  const deadline = performance.now() + lockPatienceSeconds * 1000;
  for (;;) {
    const finished = await run({
      command,
      args: ['-qq', ...options, ...args],
      // perf may be installed while a run keeps its own files closed.
      before: withUserUmask,
      env,
      orphanedBy: 'TERM',
      signal,
      stopWith: 'SIGINT',
    });
    const isLocked = finished.code !== 0 && finished.stderr.includes('Could not get lock');
    if (!isLocked || performance.now() > deadline) return finished;
    // An abort ends the wait; the next run() rejects with its reason.
    await sleep(1000, undefined, { signal }).catch(() => undefined);
  }
}

function errorLine(stderr: string): string {
  const errors = [...stderr.matchAll(/^E: (.*)$/gm)].map(([, line = '']) => line.trim());
  const summaries =
    /^(Some index files|Unable to fetch some|Unable to lock|Can not write log|Sub-process)/;
  return (
    errors.findLast((line) => !summaries.test(line)) ??
    errors.at(-1) ??
    (lastLine(stderr) || 'it gave no reason')
  );
}

async function disableServices(
  packages: readonly string[],
  env: NodeJS.ProcessEnv,
  machine: Machine,
): Promise<void> {
  if (packages.length === 0) return;
  const query = await programOf('dpkg-query', machine);
  const { stdout } = await run({ command: query, args: ['-L', ...packages], env });
  const services = stdout.matchAll(
    /^(?:\/etc\/init\.d\/([^/\n]+)|(?:\/usr)?\/lib\/systemd\/system\/([^/@\n]+)\.service)$/gm,
  );
  // update-rc.d also disables the systemd unit, with and without systemctl.
  const command = await programOf('update-rc.d', machine);
  for (const service of new Set([...services].map(([, script, unit = '']) => script ?? unit)))
    await run({ command, args: [service, 'disable'], env });
}
