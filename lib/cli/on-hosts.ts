// Where the servers of a run are, where its load is made, and which cores it has.
import { UserError } from '../errors.ts';
import { enumeration } from '../format.ts';
import { openGeneratorHosts, type GeneratorHost } from '../hosts/generator-host.ts';
import { openServerHost, type ServerHost } from '../hosts/server-host.ts';
import { coresOfTwo, divideCores, type Cores } from '../machine/cores.ts';
import { readProcessors } from '../machine/processors.ts';
import type { Scenario } from '../scenario/model.ts';
import type { RunOptions } from './run-options.ts';

/** `host`: of the servers, undefined where they are here; `generators`: empty where the load is made here. */
export interface Hosts {
  host: ServerHost | undefined;
  generators: readonly GeneratorHost[];
}

/** Hosts that are one machine: it would be loaded from itself, and nothing says which cores each side has. @param bootId of this machine */
export function sameMachineLines(bootId: string, { host, generators }: Hosts): string[] {
  const all = [
    { name: 'this machine', bootId },
    ...(host === undefined ? [] : [host]),
    ...generators,
  ];
  return [...new Set(all.map((one) => one.bootId))]
    .map((id) => all.filter((one) => one.bootId === id))
    .filter((same) => same.length > 1)
    .map(
      (same) =>
        `${enumeration(same.map(({ name }) => name))} are one machine, by its kernel's boot: what each uses the others lack`,
    );
}

/**
 * Does the work with the hosts open that the options name, and with the cores of both sides.
 * @param kinds of the servers, or of the sides
 * @throws UserError for a host that cannot be reached or used, and for cores that are not there
 */
export async function onHosts<T>(
  {
    serverHost,
    generatorHosts = [],
    serverCpus,
    generatorCpus,
  }: Pick<RunOptions, 'serverHost' | 'generatorHosts' | 'serverCpus' | 'generatorCpus'>,
  scenario: Pick<Scenario, 'sharedCores'>,
  kinds: readonly string[],
  work: (cores: Cores, hosts: Hosts) => Promise<T>,
): Promise<T> {
  const asked = { server: serverCpus, generator: generatorCpus };
  if (
    generatorHosts.length > 0 &&
    serverHost === undefined &&
    kinds.some((kind) => kind !== 'address')
  ) {
    throw new UserError(
      '--generator-host: servers on this machine listen on loopback, where no other host comes to: name a --server-host for them, or compare addresses',
      2,
    );
  }
  if (generatorHosts.length > 0 && generatorCpus !== undefined)
    throw new UserError(
      '--generator-cpus are of this machine, and --generator-host makes the load elsewhere: leave one out',
      2,
    );
  const generators = await openGeneratorHosts(generatorHosts);
  let host: ServerHost | undefined;
  try {
    host = serverHost === undefined ? undefined : await openServerHost(serverHost);
    const both = generators.find(({ address }) => address === host?.address);
    if (both !== undefined)
      throw new UserError(
        `--generator-host ${both.name} is the server host: name another machine, or leave --generator-host out`,
        2,
      );
    const here = readProcessors();
    const cores =
      host === undefined ? divideCores(here, asked, scenario) : coresOfTwo(here, host, asked);
    const [fewestFiles] = generators.toSorted((a, b) => a.files - b.files);
    const generatorFacts =
      fewestFiles === undefined
        ? {}
        : {
            generatorHosts: {
              names: generators.map(({ name }) => name),
              coresEach: Math.min(...generators.map((one) => one.cores)),
            },
            generatorFiles: { host: fewestFiles.name, most: fewestFiles.files },
          };
    return await work({ ...cores, ...generatorFacts }, { host, generators });
  } finally {
    await Promise.all([host, ...generators].map((one) => one?.close()));
  }
}
