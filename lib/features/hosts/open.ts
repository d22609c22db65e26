// The host of a run's servers: connects to it, and divides the cores.
import { requireCpus, usableCpus, type AskedCores, type Cores } from '../../machine/cores.ts';
import { cpusOf, readProcessors, type Processors } from '../../machine/processors.ts';
import type { Machines } from '../../runner/machines.ts';
import { openServerHost } from './server-host.ts';

/** Servers start on the host; this machine makes the load. @param mayInstall servers may be installed there @throws UserError */
export async function openHost(
  name: string,
  mayInstall: boolean,
  asked: AskedCores,
): Promise<Machines> {
  const host = await openServerHost(name);
  try {
    return {
      cores: coresOfTwo(readProcessors(), host, asked),
      neededLocally: () => [],
      tools: (servers, _here, signal) => host.tools(servers, mayInstall, signal),
      start: host.start,
      facts: async () => ({ serverHost: await host.facts() }),
      lost: host.lost,
      close: host.close,
    };
  } catch (error) {
    await host.close();
    throw error;
  }
}

/** Takes all cores unless asked. Throws UserError for missing ones. */
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
