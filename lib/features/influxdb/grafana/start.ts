// Runs a Grafana on loopback. Its folder has grafana.ini and provisioning/ (written at each start), lock, and data/ with the admin's
// password, which Grafana reads only when it makes its data.
import { randomBytes } from 'node:crypto';
import { closeSync, existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { realpath } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { parse, stringify } from 'yaml';
import { generatedFile } from '../../../../dashboards/names.ts';
import { UserError, messageOf, systemError } from '../../../errors.ts';
import { makeFolder, makeOwnFolder, makePrivateFolder } from '../../../files.ts';
import { holder, lockFile, writeHolder } from '../../../machine/locks.ts';
import {
  lastLine,
  leaveToCaller,
  run,
  startLogged,
  prioritise,
  withoutVariables,
} from '../../../process.ts';
import { lastLines } from '../../../program-logs.ts';
import {
  listeningSockets,
  listensOn,
  loopbackAddress,
  portProblem,
} from '../../../servers/ports.ts';
import { processTree } from '../../../servers/usage.ts';
import { type Machine, find, findAll, isExecutableFile } from '../../../setup/machine.ts';
import { fromCallersFolder, projectRoot } from '../../../setup/paths.ts';
import { database, type Influx } from '../../../influx/address.ts';

/** `home` is the folder with its pages and defaults; with an image `command` is docker. */
interface GrafanaProgram {
  command: string;
  home: string;
  image?: string;
  /** The folder of the plugins that it ships with, if that is not in its home. Since version 13 they include InfluxDB's. */
  plugins?: string;
}

/** Grafana's home as the system's packages and the image install it. */
const packagedHome = '/usr/share/grafana';
/** Since version 13.2 the system's packages name this folder in their service alone. */
const packagedPlugins = '/var/lib/grafana/plugins-bundled';

/** Finds Grafana, or Docker for its image. Throws UserError with ways to install it. */
export async function findGrafana(machine: Machine, signal?: AbortSignal): Promise<GrafanaProgram> {
  const named = machine.env['GRAFANA_HOME'];
  if (named) {
    const unpacked = await grafanaIn(fromCallersFolder(named));
    if (unpacked !== undefined) return unpacked;
    throw new UserError(
      `GRAFANA_HOME=${named} has no Grafana in it (bin/grafana and conf/defaults.ini): name the folder it was unpacked to, or unset it`,
    );
  }
  for (const binary of await findAll('grafana', machine)) {
    const installed =
      (await grafanaIn(dirname(dirname(await realpath(binary))))) ??
      (await grafanaIn(join(machine.systemRoot, packagedHome)));
    if (installed === undefined) continue;
    const plugins = join(machine.systemRoot, packagedPlugins);
    const isElsewhere = !existsSync(join(installed.home, 'data/plugins-bundled'));
    if (isElsewhere && existsSync(plugins)) return { ...installed, plugins };
    return installed;
  }
  const compose = parse(readFileSync(join(projectRoot, 'docker/compose.yaml'), 'utf8')) as {
    services: { grafana: { image: string } };
  };
  const { image } = compose.services.grafana;
  const docker = await find('docker', machine);
  const problem = docker === undefined ? undefined : await dockerProblem(docker, machine, signal);
  if (docker !== undefined && problem === undefined)
    return { command: docker, home: packagedHome, image };
  throw new UserError([
    'Grafana is missing. One of these three ways to get it:',
    '  unpack it from https://grafana.com/grafana/download?platform=linux and set GRAFANA_HOME to its folder',
    '  install its package (https://grafana.com/docs/grafana/latest/setup-grafana/installation/), so that grafana is on PATH',
    `  ${problem === undefined ? 'install Docker' : `mend Docker (${problem})`}: bakeoff then runs ${image}`,
  ]);
}

async function grafanaIn(home: string): Promise<GrafanaProgram | undefined> {
  const command = join(home, 'bin/grafana');
  const isThere = (await isExecutableFile(command)) && existsSync(join(home, 'conf/defaults.ini'));
  return isThere ? { command, home } : undefined;
}

/** Returns why Docker does not work, e.g. its daemon does not run; undefined if it works. */
async function dockerProblem(command: string, { env }: Machine, signal?: AbortSignal) {
  const args = ['info', '--format', '{{.ServerVersion}}'];
  const { code, stderr } = await run({ command, args, env, signal });
  return code === 0 ? undefined : lastLine(stderr) || `exit code ${code}`;
}

export type RunningGrafana = Awaited<ReturnType<typeof startGrafana>>;

export const firstPort = 3000;
const portsTried = 100;
/** The first start makes a database of some hundred steps. */
const startTimeoutMs = 180_000;

interface GrafanaOptions {
  program: GrafanaProgram;
  influx: Influx;
  folder: string;
  cpus: readonly number[];
  env: NodeJS.ProcessEnv;
}

/**
 * Returns once Grafana answers. From then on it has the lowest priority on its cores `cpus`.
 * @throws UserError if it does not start; the signal's reason
 */
export async function startGrafana({
  signal,
  ...options
}: GrafanaOptions & { signal: AbortSignal }) {
  const { program, folder } = options;
  const port = await freePort();
  const logFile = join(folder, 'grafana.log');
  let begun: Awaited<ReturnType<typeof begin>>;
  try {
    begun = await begin(options, port, logFile);
  } catch (error) {
    if (error instanceof UserError) throw error;
    throw new UserError(`Grafana does not start: ${messageOf(error)}`);
  }
  const { child, files } = begun;
  const origin = `http://127.0.0.1:${port}`;
  const ended = child.exited.then(
    async () => `${await lastComplaint(logFile)} (its log: ${logFile})`,
  );
  // A container takes a moment to end; its own limit is 10 s.
  const stop = async () => {
    await child.stop(15_000);
    await leaveToCaller(folder);
  };
  try {
    const deadline = performance.now() + startTimeoutMs;
    while (!(
      listensThere(child.pid, port, program) && (await isHealthy(origin).catch(() => false))
    )) {
      signal.throwIfAborted();
      if (child.hasExited()) throw new UserError(`Grafana does not start: ${await ended}`);
      if (performance.now() > deadline)
        throw new UserError(
          `Grafana did not answer within ${startTimeoutMs / 1000} s (its log: ${logFile})`,
        );
      await delay(100);
    }
    // A lower priority leaves the cores to runs. Before Grafana answers it would make the start take minutes during a load.
    if (program.image === undefined)
      await Promise.all(
        processTree('/proc', String(child.pid)).map((pid) => prioritise(Number(pid), 19)),
      );
    return {
      /** e.g. http://127.0.0.1:3000 */
      origin,
      port,
      files,
      pid: child.pid,
      /** Resolves when it ends, with the reason in a line. */
      ended,
      /** May be called twice. */
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** Starts it in its folder, whose lock it holds: two would share a database. */
async function begin(
  { program, influx, folder, cpus, env }: GrafanaOptions,
  port: number,
  logFile: string,
) {
  makeOwnFolder(folder);
  const lockPath = join(folder, 'lock');
  // `npm run clean` holds it for a moment.
  const lock = await lockFile(lockPath, 1);
  if (lock === null)
    throw new UserError(
      `Grafana runs in ${folder} already${holder(lockPath)}: look there, or end it`,
    );
  try {
    writeHolder(lock, process.pid);
    const files = writeGrafanaFiles(folder, port, influx);
    const command = commandOf(program, folder, files.config, cpus);
    // docker's client ends its container on TERM.
    const options = { ...command, env: withoutVariables(env, 'GF_'), orphanedBy: 'TERM' as const };
    return { files, child: await startLogged(options, logFile, 'w', lock) };
  } finally {
    closeSync(lock);
  }
}

/** A container uses the host's loopback, where InfluxDB listens, and the same paths. */
function commandOf(
  { command, home, image, plugins }: GrafanaProgram,
  folder: string,
  config: string,
  cpus: readonly number[],
) {
  const server = ['server', '--homepath', home, '--config', config];
  if (plugins !== undefined) server.push(`cfg:default.paths.bundled_plugins=${plugins}`);
  // Some versions look for their files in the current folder.
  if (image === undefined) return { command, args: server, cpus, cwd: home };
  const options = [
    `volume=${folder}:${folder}`,
    `volume=${dashboardsFolder}:${dashboardsFolder}:ro`,
    'network=host',
    `cpuset-cpus=${cpus.join(',')}`,
    `user=${process.getuid?.()}:${process.getgid?.()}`,
    `entrypoint=${home}/bin/grafana`,
  ].map((option) => `--${option}`);
  return { command, args: ['run', '--rm', '--init', ...options, image, ...server] };
}

/** Returns whether Grafana listens at the port, and nobody else: who is shown a page there types the password. */
function listensThere(pid: number, port: number, { image }: GrafanaProgram): boolean {
  const sockets = listeningSockets('/proc/self').filter((socket) => socket.port === port);
  if (sockets.some(({ uid }) => uid !== 0 && uid !== process.getuid?.())) return false;
  // The port of a container is Docker's.
  if (image !== undefined) return true;
  const at = { address: loopbackAddress, port };
  return processTree('/proc', String(pid)).some((id) => listensOn(Number(id), at) || isHidden(id));
}

/** A program with extra rights (setcap) hides its sockets. */
function isHidden(pid: string): boolean {
  try {
    readdirSync(`/proc/${pid}/fd`);
    return false;
  } catch (error) {
    return systemError(error).code === 'EACCES';
  }
}

async function isHealthy(origin: string): Promise<boolean> {
  const response = await fetch(`${origin}/api/health`, { signal: AbortSignal.timeout(5000) });
  return response.ok && ((await response.json()) as { database?: string }).database === 'ok';
}

async function lastComplaint(logFile: string): Promise<string> {
  const lines = await lastLines(logFile);
  const complaint = lines.findLast((line) => /error|level=crit/i.test(line)) ?? lines.at(-1);
  return complaint?.slice(0, 300) ?? 'it ended without a word';
}

async function freePort(): Promise<number> {
  for (let port = firstPort; port < firstPort + portsTried; port++) {
    if ((await portProblem({ address: loopbackAddress, port })) === undefined) return port;
  }
  throw new UserError(
    `ports ${firstPort} to ${firstPort + portsTried - 1} are all taken: free one for Grafana`,
  );
}

const dashboardsFolder = join(projectRoot, 'dashboards');

/** Writes Grafana's files. Only their owner may read them, because they contain InfluxDB's password. Throws the file system's error. */
export function writeGrafanaFiles(folder: string, port: number, influx: Influx) {
  const at = (name: string) => join(folder, name);
  makePrivateFolder(folder);
  const provisioned = ['datasources', 'dashboards', 'plugins', 'alerting'];
  for (const name of [
    'data',
    'logs',
    'plugins',
    ...provisioned.map((kind) => `provisioning/${kind}`),
  ])
    makeFolder(at(name));
  const passwordFile = at('data/admin-password');
  if (!existsSync(passwordFile)) writePrivate(passwordFile, randomBytes(18).toString('base64url'));
  const provision = (kind: 'datasources' | 'dashboards', filled: (file: never) => object) => {
    const file = `provisioning/${kind}/bakeoff.yaml`;
    const shipped = parse(readFileSync(join(dashboardsFolder, file), 'utf8')) as never;
    writePrivate(at(file), stringify(filled(shipped)));
  };
  provision('datasources', (file) => withInflux(file, influx));
  const options = { path: literal(join(dashboardsFolder, 'generated')) };
  provision('dashboards', ({ providers, ...file }: { providers: object[] }) => ({
    ...file,
    providers: providers.map((provider) => ({ ...provider, options })),
  }));
  const config = at('grafana.ini');
  writePrivate(config, grafanaIni(folder, port, passwordFile));
  /** `password`: of the user admin. */
  return { config, passwordFile, password: readFileSync(passwordFile, 'utf8') };
}

function writePrivate(file: string, text: string): void {
  // An existing file would keep its mode.
  rmSync(file, { force: true });
  writeFileSync(file, text, { mode: 0o600 });
}

/** Returns the data source of dashboards/provisioning with this InfluxDB's address, user and password. */
function withInflux(
  file: { datasources: [{ jsonData: object }] },
  { url, credentials }: Influx,
): object {
  const [{ jsonData, ...source }] = file.datasources;
  const { user, password } = credentials ?? { user: '', password: '' };
  return {
    ...file,
    datasources: [
      {
        ...source,
        url: literal(url),
        basicAuth: credentials !== null,
        basicAuthUser: literal(user),
        jsonData: { ...jsonData, dbName: literal(database) },
        secureJsonData: { basicAuthPassword: literal(password) },
      },
    ],
  };
}

/** In these files, $NAME is an environment variable and $$ a $. */
function literal(text: string): string {
  return text.replaceAll('$', '$$$$');
}

function grafanaIni(folder: string, port: number, passwordFile: string): string {
  const sections: Record<string, Record<string, string | number | boolean>> = {
    paths: Object.fromEntries(
      ['data', 'logs', 'plugins', 'provisioning'].map((name) => [name, join(folder, name)]),
    ),
    server: { protocol: 'http', http_addr: '127.0.0.1', http_port: port },
    security: {
      admin_user: 'admin',
      admin_password: `$__file{${passwordFile}}`,
      disable_gravatar: true,
    },
    // Every user of the machine can reach loopback, and the data source has a password.
    'auth.anonymous': { enabled: false },
    metrics: { enabled: false },
    users: { allow_sign_up: false, default_theme: 'system' },
    // The live dashboard asks every two seconds.
    dashboards: {
      min_refresh_interval: '2s',
      default_home_dashboard_path: join(dashboardsFolder, 'generated', generatedFile('comparison')),
    },
    // Sends and fetches nothing.
    analytics: {
      enabled: false,
      reporting_enabled: false,
      check_for_updates: false,
      check_for_plugin_updates: false,
      feedback_links_enabled: false,
    },
    news: { news_feed_enabled: false },
    plugins: { preinstall_disabled: true, public_key_retrieval_disabled: true },
    unified_alerting: { enabled: false },
    log: { mode: 'console', level: 'warn' },
  };
  // Outside of these quotes, # and ; begin a comment.
  const quoted = (text: string) => (/[#;]/.test(text) ? `"""${text}"""` : text);
  const lines = Object.entries(sections).flatMap(([section, settings]) => [
    '',
    `[${section}]`,
    ...Object.entries(settings).map(([name, value]) => `${name} = ${quoted(String(value))}`),
  ]);
  return `${['; Written by bakeoff at every start.', ...lines].join('\n')}\n`;
}
