// Starts sides before there is a plan: their answers are part of it.
import { rm } from 'node:fs/promises';
import { UserError } from '../errors.ts';
import { present } from '../present.ts';
import { isConfigured } from '../scenario/variants.ts';
import {
  answerOfAll,
  OnlyChecked,
  startServer,
  temporaryFolder,
  waitUntilReady,
  workersFor,
  type Answer,
  type RunningServer,
  type StartOptions,
} from '../servers/index.ts';
import { findTool } from '../setup/tools.ts';
import type { Side } from './side-loads.ts';
import type { ReadyRun } from './run.ts';

/** A side that was started, and its answer. */
export interface Tried extends Side {
  answer: Answer;
  /** Of the answer to a request that accepts gzip; absent if the load sets Accept-Encoding. */
  offered?: Pick<Answer, 'encoding' | 'bytes'>;
  redirections: readonly string[];
}

/** Starts a side, asks it, and ends it again. Throws UserError that names it. */
export async function tryOnce(side: Side, run: Place): Promise<Tried> {
  const { given, source, load, server: spec } = side;
  const { binaries, host, cores, onlyCheck, signal } = run;
  const folder = await temporaryFolder();
  let server: RunningServer | undefined;
  try {
    server = await (host?.start ?? startServer)(spec, {
      binaries,
      folder,
      cpus: cores.serverCpus,
      workers: workersFor(spec, cores.serverCpus.length, false),
      ...checkOf(side),
      connections: load.connections,
      onlyCheck,
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

/** Throws UserError for what is wrong with a side already before its start, as another run may be measuring. */
export async function checkSides(
  sides: readonly Side[],
  { cores }: Pick<ReadyRun, 'cores'>,
  signal: AbortSignal,
): Promise<void> {
  for (const side of sides) {
    const { server: spec } = side;
    const binaries = isConfigured(spec) ? present({ [spec.name]: await findTool(spec.name) }) : {};
    // A server that is not there yet is installed later.
    if (isConfigured(spec) && spec.binary === undefined && binaries[spec.name] === undefined)
      continue;
    await tryOnce(side, {
      binaries,
      host: undefined,
      cores,
      signal,
      onlyCheck: true,
    }).catch((error) => {
      if (!(error instanceof OnlyChecked)) throw error;
    });
  }
}

type Place = Pick<ReadyRun, 'binaries' | 'host' | 'cores' | 'signal'> &
  Pick<StartOptions, 'onlyCheck'>;

function checkOf({ page, load, acceptsDifferences }: Side) {
  return { page, protocol: load.protocol, request: load, tls: load.tls, acceptsDifferences };
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
  const request = { ...load, headers: { ...load.headers, 'Accept-Encoding': 'gzip' } };
  try {
    return await waitUntilReady({ ...checkOf(side), origin, request, anyLength: true }, signal);
  } catch (error) {
    if (error instanceof UserError) return undefined;
    throw error;
  }
}
