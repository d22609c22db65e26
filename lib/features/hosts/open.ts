// The hosts of a run: connects to them, and divides the cores.
import { usageError } from '../../errors.ts';
import { requireCpus, usableCpus, type AskedCores, type Cores } from '../../machine/cores.ts';
import { cpusOf, readProcessors, type Processors } from '../../machine/processors.ts';
import { onlyThisMachine, type Machines, type MachinesFor } from '../../runner/machines.ts';
import { openGeneratorHosts, type GeneratorHost } from './generator-host.ts';
import { startRemoteK6 } from './load.ts';
import { openServerHost, type ServerHost } from './server-host.ts';

/** Hosts as the user named them. */
export interface NamedHosts {
  /** Undefined: this machine. */
  server: string | undefined;
  /** Empty: this machine. */
  generators: readonly string[];
  /** Whether servers may be installed there. */
  mayInstall: boolean;
}

/** Connects to all hosts, or to none. Throws UserError if one cannot be used, or two are the same. */
export async function openHosts(named: NamedHosts, run: MachinesFor): Promise<Machines> {
  requireReachable(named, run.kinds);
  const generators = await openGeneratorHosts(named.generators);
  let host: ServerHost | undefined;
  const close = async () => {
    await host?.close();
    await Promise.all(generators.map((generator) => generator.close()));
  };
  try {
    if (named.server !== undefined) host = await openServerHost(named.server);
    requireApart(host, generators);
    const servers =
      host === undefined
        ? await onlyThisMachine.open(run)
        : serversOn(host, named.mayInstall, run.asked);
    return withLoadOn(generators, { ...servers, close });
  } catch (error) {
    await close();
    throw error;
  }
}

function requireReachable({ server, generators }: NamedHosts, kinds: readonly string[]): void {
  const startsLocally = server === undefined && kinds.some((kind) => kind !== 'address');
  if (generators.length > 0 && startsLocally)
    throw usageError(
      '--generator-host needs --server-host, or addresses to compare: servers started here listen on loopback only',
    );
}

function requireApart(host: ServerHost | undefined, generators: readonly GeneratorHost[]): void {
  const both = generators.find(({ address }) => address === host?.address);
  if (both !== undefined)
    throw usageError(
      `--generator-host ${both.name} is the server host: name another machine, or leave --generator-host out`,
    );
}

/** Servers on a host, and the load on this machine. */
function serversOn(
  host: ServerHost,
  mayInstall: boolean,
  asked: AskedCores,
): Omit<Machines, 'close'> {
  return {
    cores: coresOfTwo(readProcessors(), host, asked),
    neededLocally: () => [],
    tools: (servers, _here, signal) => host.tools(servers, mayInstall, signal),
    start: host.start,
    facts: async () => ({ serverHost: await host.facts() }),
    lost: host.lost,
  };
}

/** The cores of a run with servers on another host: as asked, or all. Throws UserError for missing cores. */
export function coresOfTwo(
  local: Processors,
  remote: { name: string; processors: Processors; files: number },
  asked: AskedCores,
): Cores {
  requireCpus(cpusOf(remote.processors.cores), asked.server, `--server-cpus on ${remote.name}`);
  requireCpus(cpusOf(local.cores), asked.generator, '--generator-cpus');
  return {
    serverCpus: [...(asked.server ?? usableCpus(remote.processors))],
    generatorCpus: [...(asked.generator ?? usableCpus(local))],
    serverHost: remote.name,
    serverFiles: { host: remote.name, most: remote.files },
  };
}

/** The same servers, with the load on these hosts; without any, as it was. */
function withLoadOn(generators: readonly GeneratorHost[], servers: Machines): Machines {
  const [fewestFiles] = generators.toSorted((a, b) => a.files - b.files);
  if (fewestFiles === undefined) return servers;
  return {
    ...servers,
    cores: {
      ...servers.cores,
      generatorHosts: {
        names: generators.map(({ name }) => name),
        coresEach: Math.min(...generators.map(({ cores }) => cores)),
      },
      generatorFiles: { host: fewestFiles.name, most: fewestFiles.files },
    },
    async tools(names, localTools, signal) {
      const serverTools = await servers.tools(names, localTools, signal);
      await Promise.all(generators.map((generator) => generator.have(localTools.k6, signal)));
      return serverTools;
    },
    startLoad: (load) => startRemoteK6(generators, load),
    async facts() {
      const ofServers = await servers.facts();
      const generatorHosts = await Promise.all(generators.map((generator) => generator.facts()));
      return { ...ofServers, generatorHosts };
    },
    lost() {
      const all = [servers, ...generators].map((machine) => machine.lost());
      return all.find((why) => why !== undefined);
    },
  };
}
