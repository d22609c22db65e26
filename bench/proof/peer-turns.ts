// Measures two or more servers with another generator: all of them run, and each is loaded for a second in turn.
import { mkdtemp } from 'node:fs/promises';
import { join } from 'node:path';
import { UserError } from '../../lib/errors.ts';
import { orderOfRound } from '../../lib/runner/plan.ts';
import type { Scenario } from '../../lib/scenario/model.ts';
import { isRunnable } from '../../lib/scenario/variants.ts';
import { startServer, type RunningServer } from '../../lib/servers/index.ts';
import { runContender, type BenchLoad, type Contender } from '../contenders.ts';
import type { Lab, Load } from './lab.ts';

/** Starts the scenario's servers for these turns and ends them afterwards. @param seed determines the order */
export async function peerTurns(
  lab: Lab,
  scenario: Scenario,
  peer: Contender,
  turns: number,
  seed: string,
): Promise<Load[]> {
  const {
    load: { protocol, connections, streams = 1, keepAlive },
    page,
  } = scenario;
  const load: BenchLoad = { protocol, connections, streams, keepAlive, length: { seconds: 1 } };
  const servers = new Map<string, RunningServer>();
  try {
    for (const { name, server } of scenario.variants.filter(isRunnable)) {
      servers.set(
        name,
        await startServer(server, {
          binaries: lab.binaries,
          folder: await mkdtemp(join(lab.scratch, `${peer.tool}-`)),
          cpus: lab.cores.serverCpus,
          workers: lab.cores.serverCpus.length,
          page,
          connections,
          signal: lab.signal,
        }),
      );
    }
    const seen: Load[] = [];
    for (let turn = 1; turn <= turns; turn++) {
      const [rps, generatorShares] = [new Map<string, number>(), new Map<string, number>()];
      for (const [name, { origin }] of orderOfRound([...servers], turn, seed)) {
        const sample = await runContender(peer, `${origin}${page.path}`, load, {
          binary: lab.binaries[peer.tool] as string,
          cpus: lab.cores.generatorCpus,
          sharesCore: false,
          output: null,
          signal: lab.signal,
        });
        if (sample.errors > 0)
          throw new UserError(`${peer.name} had ${sample.errors} errors against ${name}`);
        rps.set(name, sample.rps);
        generatorShares.set(name, (sample.cpuMicrosPerRequest / 1e6) * sample.rps);
      }
      seen.push({ rps, generatorShares });
    }
    return seen;
  } finally {
    for (const server of servers.values()) await server.stop();
  }
}
