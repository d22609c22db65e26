// Finds the programs that bakeoff drives, or gets them: environment variable, PATH, the system's packages where that is allowed,
// and for k6 a build from source.
import { existsSync } from 'node:fs';
import { rm, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { UserError } from '../errors.ts';
import { textOf } from '../files.ts';
import { enumeration } from '../format.ts';
import { withLock } from '../lock-file.ts';
import { toItsEnd } from '../process.ts';
import { lookForK6 } from './k6.ts';
import { type Machine, find, isExecutableFile, thisMachine } from './machine.ts';
import { fromCallersFolder } from './paths.ts';
import { type Finished, lastLine, run } from './run.ts';

export type ToolName = 'k6' | PackagedTool;

/** The variable in which a person names a tool's binary. */
export function toolVariable(name: ToolName): string {
  return `${name.toUpperCase()}_BIN`;
}

/**
 * Finds each tool or gets it, independent ones side by side, with progress on stderr; silent when all are there.
 * Returns absolute paths. Throws UserError with one line for each tool that cannot be had; then nothing has been
 * installed unless an installation itself failed. When `signal` fires it rejects with the signal's reason, after what it
 * has begun has ended in order.
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
  const installed = toInstall.length === 0 ? [] : [installPackaged(toInstall, machine, signal)];
  const built = looked.flatMap(({ build }) =>
    build === undefined
      ? []
      : machine.progress.step('k6', 'building from xk6-loadgen/, once (a minute or two)', () =>
          build(signal),
        ),
  );
  valuesOrThrow(await Promise.allSettled([...installed, ...built]));

  const paths: Partial<Record<N, string>> = {};
  for (const [index, name] of names.entries()) {
    const path = looked[index]?.path ?? (await find(name, machine));
    if (path === undefined)
      throw new UserError(
        `${name} was installed but is not on PATH: set ${toolVariable(name)} to its path`,
      );
    paths[name] = path;
  }
  return paths as Record<N, string>;
}

/** A tool that is there has a path only. */
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
    `${name} is missing: ${await howToInstall(name, machine)}, or set ${variable} to its path`,
  );
}

async function installPackaged(
  tools: readonly PackagedTool[],
  machine: Machine,
  signal: AbortSignal,
): Promise<void> {
  await machine.progress.step(tools.join(', '), 'installing with apt-get', async (step) => {
    const sayInterrupted = (): void =>
      step.doing('interrupted, apt-get finishes what it has begun');
    signal.addEventListener('abort', sayInterrupted);
    try {
      await aptInstall(
        async () => {
          const found = await Promise.all(tools.map((tool) => find(tool, machine)));
          return tools.filter((_, index) => found[index] === undefined);
        },
        machine,
        signal,
      );
    } finally {
      signal.removeEventListener('abort', sayInterrupted);
    }
  });
}

/** All values, or one UserError with the messages of all failures. Any other failure is a defect and is thrown as it is. */
function valuesOrThrow<T>(outcomes: readonly PromiseSettledResult<T>[]): T[] {
  const reasons: unknown[] = outcomes.flatMap((outcome) =>
    outcome.status === 'rejected' ? [outcome.reason] : [],
  );
  for (const reason of reasons) if (!(reason instanceof UserError)) throw reason;
  if (reasons.length > 0)
    throw new UserError((reasons as UserError[]).map((reason) => reason.message).join('\n'));
  return outcomes.map((outcome) => (outcome as PromiseFulfilledResult<T>).value);
}

// Which package of which system brings a tool.
/** How packages are installed, by the command that has to be there. */
const installs = {
  'apt-get': 'apt-get install --no-install-recommends',
  dnf: 'dnf install',
  pacman: 'pacman -S',
  zypper: 'zypper install',
  apk: 'apk add',
} as const;

type Manager = keyof typeof installs;

/** `all`: the packages' names wherever nothing else is said; a system without either has no such package. `page`: of the tool itself. */
type Packaged = { page: string; all?: string } & { [M in Manager]?: string };

const packaged = {
  nginx: { page: 'https://nginx.org/en/linux_packages.html', all: 'nginx' },
  h2o: { page: 'https://h2o.examp1e.net/install.html', 'apt-get': 'h2o', apk: 'h2o' },
  nghttpd: {
    page: 'https://nghttp2.org',
    'apt-get': 'nghttp2-server',
    dnf: 'nghttp2',
    zypper: 'nghttp2',
    apk: 'nghttp2',
  },
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
  chromium: { page: 'https://www.chromium.org', all: 'chromium' },
  caddy: { page: 'https://caddyserver.com/docs/install', all: 'caddy' },
  lighttpd: { page: 'https://www.lighttpd.net', all: 'lighttpd' },
  apache2: { page: 'https://httpd.apache.org', 'apt-get': 'apache2', zypper: 'apache2' },
  haproxy: { page: 'https://www.haproxy.org', all: 'haproxy' },
  sshd: { page: 'https://www.openssh.com/portable.html', all: 'openssh-server', pacman: 'openssh' },
} satisfies Record<string, Packaged>;

export type PackagedTool = keyof typeof packaged;

function packagesOf(tool: PackagedTool, manager: Manager): string | undefined {
  const { [manager]: own, all }: Packaged = packaged[tool];
  return own ?? all;
}

/** The names of a tool's packages on a system with apt. */
export function aptPackages(tool: PackagedTool): string[] {
  return packagesOf(tool, 'apt-get')?.split(' ') ?? [];
}

/** How a person installs the tool on this machine: a command, or where to get it. */
export async function howToInstall(tool: PackagedTool, machine: Machine): Promise<string> {
  for (const [manager, install] of Object.entries(installs)) {
    const packages = packagesOf(tool, manager as Manager);
    if (packages !== undefined && (await find(manager, machine)) !== undefined)
      return `install it with: ${machine.isRoot ? '' : 'sudo '}${install} ${packages}`;
  }
  return `get it from ${packaged[tool].page}`;
}

// Installing packages with apt-get so that nothing they bring is left running or enabled.
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
