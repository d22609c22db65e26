// Starts sides before there is a plan: their answers are part of it.
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { UserError } from '../errors.ts';
import { present } from '../present.ts';
import { explainFailure, roundFolder } from '../runner/results-folder.ts';
import { isConfigured, nameAt } from '../scenario/variants.ts';
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
import type { Begun, ReadyRun } from './run.ts';
import type { RunOptions } from './run-options.ts';

/** A side that was started, and its answer. */
export interface Tried extends Side {
  answer: Answer;
  /** Of the answer to a request that accepts gzip; absent if the load sets Accept-Encoding. */
  offered?: Pick<Answer, 'encoding' | 'bytes'>;
  redirections: readonly string[];
}

/** Starts all sides for round 1. Of commands with the same fixed port only the last stays. */
export async function startSides(
  sides: readonly Side[],
  run: Place,
  options: Pick<RunOptions, 'rates'>,
  { folder, servers }: Begun,
): Promise<Tried[]> {
  const [rate] = options.rates ?? [];
  const byPort = new Map<number, string>();
  const all: Tried[] = [];
  for (const side of sides) {
    const { server: spec } = side;
    const variant = rate === undefined ? side.name : nameAt(side.name, rate);
    if (spec.name === 'command' && spec.port !== undefined) {
      const rival = byPort.get(spec.port) ?? '';
      await servers.get(rival)?.server.stop();
      servers.delete(rival);
      byPort.set(spec.port, variant);
    }
    const roundOne = join(roundFolder(folder, 1), variant);
    const { tried, server } = await startSide(side, run, roundOne).catch(async (error) => {
      throw await explainFailure(folder, error);
    });
    servers.set(variant, { server, answer: tried.answer });
    all.push(tried);
  }
  return all;
}

/** Starts a side, asks it, and ends it again. */
export async function tryOnce(side: Side, run: Place): Promise<Tried> {
  const folder = await temporaryFolder();
  try {
    const { tried, server } = await startSide(side, run, folder);
    await server.stop();
    return tried;
  } finally {
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

/** Starts a side in a folder, and asks it. Throws UserError that names it; nothing is left running then. */
async function startSide(
  side: Side,
  { binaries, host, cores, onlyCheck, signal }: Place,
  folder: string,
): Promise<{ tried: Tried; server: RunningServer }> {
  const { given, source, load, server: spec } = side;
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
    return { tried: { ...side, answer, ...present({ offered }), redirections }, server };
  } catch (error) {
    await server?.stop();
    if (
      !(error instanceof UserError) ||
      (source.kind === 'config' && error.message.includes(source.config.file))
    )
      throw error;
    throw new UserError(`${given}: ${error.message}`, error.exitCode);
  }
}

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
