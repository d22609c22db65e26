// Which Grafana can be started here: one that is unpacked or installed, or the image that the compose file names.
import { readFileSync } from 'node:fs';
import { realpath, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { parse } from 'yaml';
import { UserError } from '../errors.ts';
import { find, findAll, isExecutableFile, type Machine } from '../setup/machine.ts';
import { fromCallersFolder, projectRoot } from '../setup/paths.ts';
import { lastLine, run } from '../setup/run.ts';

/** `args` come before Grafana's own flags. `home` is the folder with its pages and defaults. */
export type GrafanaProgram =
  | { kind: 'native'; command: string; args: string[]; home: string }
  | { kind: 'docker'; command: string; image: string };

/** Where the system's packages put what belongs to a program of theirs. */
const packagedHome = '/usr/share/grafana';

/**
 * The Grafana of GRAFANA_HOME, the one on PATH, or else an image if Docker works. Throws a UserError: GRAFANA_HOME without
 * a Grafana in it, a `grafana` on PATH whose other files are nowhere, or none at all with the ways to get one.
 */
export async function findGrafana(machine: Machine, signal?: AbortSignal): Promise<GrafanaProgram> {
  const named = machine.env['GRAFANA_HOME'];
  if (named !== undefined && named !== '') {
    const unpacked = await grafanaIn(fromCallersFolder(named));
    if (unpacked !== undefined) return unpacked;
    throw new UserError(`GRAFANA_HOME=${named} has no Grafana in it (bin/grafana and conf/defaults.ini): name the folder it was unpacked to, or unset it`);
  }
  const binaries = [...await findAll('grafana', machine), ...await findAll('grafana-server', machine)];
  for (const binary of binaries) {
    const installed = await grafanaIn(dirname(dirname(await realpath(binary)))) ?? await grafanaIn(join(machine.systemRoot, packagedHome));
    if (installed !== undefined) return installed;
  }
  const { services } = parse(readFileSync(join(projectRoot, 'docker/compose.yaml'), 'utf8')) as { services: { grafana: { image: string } } };
  const { image } = services.grafana;
  const docker = await find('docker', machine);
  const problem = docker === undefined ? undefined : await dockerProblem(docker, machine, signal);
  if (docker !== undefined && problem === undefined) return { kind: 'docker', command: docker, image };
  const [binary] = binaries;
  throw new UserError([
    binary === undefined ? 'Grafana is missing. One of these three ways to get it:' : `${binary} is there, its pages and conf/defaults.ini are not. One of these three ways:`,
    '  unpack it from https://grafana.com/grafana/download?platform=linux and set GRAFANA_HOME to its folder',
    '  install its package (https://grafana.com/docs/grafana/latest/setup-grafana/installation/), so that grafana is on PATH',
    `  ${problem === undefined ? 'install Docker' : `let Docker work, which says: ${problem}`} (then ${image} is used)`,
  ].join('\n'));
}

/** The Grafana that was unpacked or installed to a folder; undefined when there is none. */
async function grafanaIn(home: string): Promise<GrafanaProgram | undefined> {
  if (!await stat(join(home, 'conf/defaults.ini')).then((file) => file.isFile(), () => false)) return undefined;
  const [grafana, server] = [join(home, 'bin/grafana'), join(home, 'bin/grafana-server')];
  if (await isExecutableFile(grafana)) return { kind: 'native', command: grafana, args: ['server'], home };
  if (await isExecutableFile(server)) return { kind: 'native', command: server, args: [], home };
  return undefined;
}

/** What keeps Docker from working, e.g. that its daemon does not run; undefined when nothing does. */
async function dockerProblem(command: string, machine: Machine, signal?: AbortSignal): Promise<string | undefined> {
  const { code, stderr } = await run({ command, args: ['info', '--format', '{{.ServerVersion}}'], env: machine.env, ...(signal && { signal }) });
  return code === 0 ? undefined : lastLine(stderr) || `exit code ${code}`;
}
