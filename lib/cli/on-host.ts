// Where the servers of a run are, and which cores it has.
import { openServerHost, type ServerHost } from '../hosts/server-host.ts';
import { coresOfTwo, divideCores, type Cores } from '../runner/cores.ts';
import { readProcessors } from '../runner/processors.ts';
import type { Scenario } from '../scenario/model.ts';
import type { RunOptions } from './run-options.ts';

/**
 * Does the work with the servers' host open, where the options name one, and with the cores of both sides.
 * @throws UserError for a host that cannot be reached or used, and for cores that are not there
 */
export async function onHost<T>(
  { serverHost, serverCpus, generatorCpus }: Pick<RunOptions, 'serverHost' | 'serverCpus' | 'generatorCpus'>, scenario: Pick<Scenario, 'sharedCores'>,
  work: (cores: Cores, host: ServerHost | undefined) => Promise<T>,
): Promise<T> {
  const asked = { server: serverCpus, generator: generatorCpus };
  if (serverHost === undefined) return work(divideCores(readProcessors(), asked, scenario), undefined);
  const host = await openServerHost(serverHost);
  try {
    return await work(coresOfTwo(readProcessors(), host, asked), host);
  } finally {
    await host.close();
  }
}
