// Starts sides before there is a plan: their answers are part of it.
import { rm } from 'node:fs/promises';
import { UserError } from '../errors.ts';
import { present } from '../present.ts';
import type { RunContext } from '../runner/plan.ts';
import {
  answerOfAll,
  temporaryFolder,
  waitUntilReady,
  workersFor,
  type Answer,
  type RunningServer,
} from '../servers/index.ts';
import type { Side } from './side-loads.ts';
import type { ReadyRun } from './run.ts';

/** A side that was started, and its answer. */
export interface Tried extends Side {
  answer: Answer;
  /** The response to a request that accepts gzip; absent if the load sets Accept-Encoding. */
  offered?: Pick<Answer, 'encoding' | 'bytes'>;
  redirections: readonly string[];
}

/** Starts a side, requests its page, and ends the side. Throws UserError with the side's name. */
export async function tryOnce(side: Side, run: Place): Promise<Tried> {
  const { given, source, server: spec } = side;
  const { tools, machines, cores, signal } = run;
  const folder = await temporaryFolder();
  let server: RunningServer | undefined;
  try {
    server = await machines.start(spec, {
      binaries: tools.servers,
      folder,
      cpus: cores.serverCpus,
      workers: workersFor(spec, cores.serverCpus.length, false),
      ...checkOf(side),
      signal,
    });
    const [answer, offered] = await Promise.all([
      answerOfAll(server, { ...checkOf(side), anyLength: true }, signal),
      encodingOffered(server, side, signal),
    ]);
    const { redirections } = server;
    return { ...side, answer, ...present({ offered }), redirections };
  } catch (error) {
    if (
      !(error instanceof UserError) ||
      (source.kind === 'config' && error.message.includes(source.config.file))
    )
      throw error;
    throw new UserError(`${given}: ${error.message}`, error.exitCode);
  } finally {
    await server?.stop();
    await rm(folder, { recursive: true, force: true });
  }
}

type Place = Pick<ReadyRun, 'cores' | 'signal' | 'tools'> & Pick<RunContext, 'machines'>;

function checkOf({ page, load, recorded }: Side) {
  return { page, load, ...recorded };
}

/** Asks for gzip, unless the load sets Accept-Encoding. undefined for a wrong answer. */
async function encodingOffered(
  { origin }: RunningServer,
  side: Side,
  signal: AbortSignal,
): Promise<Tried['offered']> {
  const { load } = side;
  if (Object.keys(load.headers ?? {}).some((name) => name.toLowerCase() === 'accept-encoding'))
    return undefined;
  const zipped = { ...load, headers: { ...load.headers, 'Accept-Encoding': 'gzip' } };
  try {
    const check = { ...checkOf({ ...side, load: zipped }), origin, anyLength: true } as const;
    return await waitUntilReady(check, signal);
  } catch (error) {
    if (error instanceof UserError) return undefined;
    throw error;
  }
}
