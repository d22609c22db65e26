// What the generator can do at most here with each load of a plan: it is measured against a responder that does nothing else.
import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { UserError } from '../errors.ts';
import { machineCertificate } from '../servers/certificate.ts';
import { attempts, ceilingLoads, type CeilingLoad } from './ceiling-loads.ts';
import { LoadFailure, runK6 } from './k6.ts';
import { loadOptions, type PlannedVariant } from './plan.ts';
import { startResponder } from './responder.ts';
import type { Ceiling, LoadResult } from './result.ts';
import type { RunContext } from './round.ts';

/** From this share of answers with 2xx on, the rest does not matter for what the generator can do. */
const fewestAnswered = 0.99;

export interface CeilingEvents {
  /** Before each load. */
  checking(what: { number: number; of: number }): void;
  checked(ceiling: Ceiling): void;
}

/**
 * Measures them one after another, with the responder on the server's cores; no sample goes to the store. What cannot be
 * measured is a problem in one line, and no reason to end the run.
 * @param overTls whether the variant's server speaks TLS
 * @throws Interrupted after a signal
 */
export async function findCeilings(
  context: RunContext, overTls: (planned: PlannedVariant) => boolean, events: CeilingEvents,
): Promise<{ ceilings: Ceiling[]; problems: string[] }> {
  const loads = ceilingLoads(context.plan, overTls);
  if (loads.length === 0) return { ceilings: [], problems: [] };
  const { responder } = context.tools;
  if (responder === undefined) return { ceilings: [], problems: [`there is no responder beside ${context.tools.k6}`] };
  const parent = join(context.folder, 'ceiling');
  const ceilings: Ceiling[] = [];
  const problems: string[] = [];
  for (const [index, one] of loads.entries()) {
    events.checking({ number: index + 1, of: loads.length });
    const folder = join(parent, String(index + 1));
    await mkdir(folder, { recursive: true });
    try {
      const ceiling = await measure(context, responder, one, folder);
      ceilings.push(ceiling);
      events.checked(ceiling);
    } catch (error) {
      context.interrupt.signal.throwIfAborted();
      // A UserError says that there is no certificate for the responder.
      if (!(error instanceof LoadFailure || error instanceof UserError)) throw error;
      problems.push(`${one.variants.join(', ')}: ${error.message}`);
    }
  }
  // What a failed one wrote says more about it.
  if (problems.length === 0) await rm(parent, { recursive: true, force: true });
  return { ceilings, problems };
}

async function measure(context: RunContext, binary: string, { variants, load, tls, page }: CeilingLoad, folder: string): Promise<Ceiling> {
  const { plan: { run, scenario, cores }, tools, script, interrupt } = context;
  const responder = await startResponder({
    binary,
    protocol: load.protocol === 'http/1.0' ? 'http/1.1' : load.protocol,
    bodyBytes: page.bodyBytes,
    certificateFile: tls ? await machineCertificate(interrupt.signal) : undefined,
    cpus: cores.serverCpus,
    interrupt,
  });
  try {
    const url = `${tls ? 'https' : 'http'}://${responder.address}${page.path}`;
    const results = await runK6({
      binary: tools.k6,
      script,
      folder,
      cpus: cores.generatorCpus,
      loadPlan: {
        scenario: scenario.name,
        tags: { run, check: 'ceiling' },
        maxDurationSeconds: Math.ceil(attempts * (load.warmupSeconds + load.durationSeconds + load.timeoutSeconds)) + 10,
        phases: Array.from({ length: attempts }, () => loadOptions(load, { url }, page)),
      },
      output: null,
    }, { interrupt, peerDied: responder.died });
    const best = results.reduce((one, other) => (other.rps > one.rps ? other : one));
    return { variants, ...ceilingOf(best, Math.min(load.threads, cores.generatorCpus.length)) };
  } finally {
    await responder.stop();
  }
}

/**
 * requests/s that the generator comes to when it uses all of the cores that it can use.
 * @param cores that it can use
 * @throws LoadFailure when too few requests were answered for that
 */
export function ceilingOf({ requests, responses, rps, cpuSeconds, seconds, errorExample = '' }: LoadResult, cores: number): Pick<Ceiling, 'rps' | 'generatorShare'> {
  if (requests === 0 || responses['2xx'] / requests < fewestAnswered || cpuSeconds <= 0) {
    throw new LoadFailure(`the responder answered ${responses['2xx']} of ${requests} requests${errorExample === '' ? '' : ` (${errorExample})`}`);
  }
  const generatorShare = Math.min(1, cpuSeconds / (seconds * cores));
  return { rps: rps / generatorShare, generatorShare };
}
