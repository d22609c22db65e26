// A side of a person's own, started once before anything is measured.
import { rm } from 'node:fs/promises';
import { UserError } from '../errors.ts';
import type { ServerHost } from '../hosts/server-host.ts';
import type { Cores } from '../machine/cores.ts';
import type { ServerSpec } from '../scenario/model.ts';
import { answerOfAll, startServer, temporaryFolder, waitUntilReady, workersFor, type Answer, type ReadyCheck, type RunningServer } from '../servers/index.ts';
import type { Side } from './compare-sides.ts';
import type { ServerBinaries } from './perform.ts';
import type { RunOptions } from './run-options.ts';

/** A side that was started once. */
export interface Tried extends Side {
  answer: Answer;
  /** Of the answer where gzip is asked for; absent where the load itself says what it takes. */
  offered?: Pick<Answer, 'encoding' | 'bytes'>;
  redirections: readonly string[];
}

/** Where sides are started, and with what. */
interface Place { binaries: ServerBinaries; host?: ServerHost | undefined }

/** Starts a side once, to see that it runs here and what it answers. Throws UserError that names it. */
export async function tryOnce(side: Side, spec: ServerSpec, cores: Cores, { binaries, host }: Place, { trustConfig }: Pick<RunOptions, 'trustConfig'>, signal: AbortSignal): Promise<Tried> {
  const { given, source, load } = side;
  const folder = await temporaryFolder();
  try {
    const server = await (host?.start ?? startServer)(spec, {
      binaries,
      folder,
      cpus: cores.serverCpus,
      workers: workersFor(spec, cores.serverCpus.length, false),
      ...checkOf(side),
      connections: load.connections,
      trustConfig: trustConfig === true,
      signal,
    });
    const [answer, offered] = await Promise.all([answerOfAll(server, { ...checkOf(side), anyLength: true }, signal), encodingOffered(server, side, signal)]).finally(() => server.stop());
    return { ...side, answer, ...(offered === undefined ? {} : { offered }), redirections: server.redirections };
  } catch (error) {
    if (!(error instanceof UserError) || (source.kind === 'config' && error.message.includes(source.config.file))) throw error;
    throw new UserError(`${given}: ${error.message}`, error.exitCode);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** What its pages have to be answered with. */
function checkOf({ page, load }: Side): Pick<ReadyCheck, 'page' | 'protocol' | 'tls'> & { request: Side['load'] } {
  return { page, protocol: load.protocol, request: load, tls: load.tls };
}

/** What a side compresses for who can take it; undefined where the load says so itself, or where that is answered otherwise. */
async function encodingOffered({ origin }: RunningServer, side: Side, signal: AbortSignal): Promise<Tried['offered']> {
  const { load } = side;
  if (Object.keys(load.headers ?? {}).some((name) => name.toLowerCase() === 'accept-encoding')) return undefined;
  const request = { ...load, headers: { ...load.headers, 'Accept-Encoding': 'gzip' } };
  try {
    return await waitUntilReady({ ...checkOf(side), origin, request, anyLength: true }, signal);
  } catch (error) {
    if (error instanceof UserError) return undefined;
    throw error;
  }
}
