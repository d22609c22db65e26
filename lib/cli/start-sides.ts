// Starts sides before there is a plan: their answers are part of it.
import { rm } from 'node:fs/promises';
import { isDeepStrictEqual } from 'node:util';
import { UserError } from '../errors.ts';
import { present } from '../present.ts';
import { asksMachine } from '../result/redirections.ts';
import type { Enclosure } from '../runner/enclosure.ts';
import { openOwnLoopback } from '../runner/own-loopback.ts';
import type { RunContext } from '../runner/plan.ts';
import {
  answerOfAll,
  waitUntilReady,
  workersFor,
  type Answer,
  type RunningServer,
} from '../servers/index.ts';
import { temporaryFolder } from '../servers/scratch.ts';
import { isConfigured } from '../scenario/variants.ts';
import type { RunOptions } from './run-options.ts';
import type { Side } from './side-loads.ts';
import type { ReadyRun } from './run.ts';

export interface Tried extends Side {
  answer: Answer;
  /** The answer to a request that accepts gzip; absent if the load sets Accept-Encoding. */
  offered?: Pick<Answer, 'encoding' | 'bytes'>;
  redirections: readonly string[];
  /** How long that response took, with its connect. */
  answerSeconds?: number;
}

/**
 * Starts a side, requests its page, and ends it. Throws UserError with the side's name.
 * @param enclosure absent: on the machine's loopback
 */
export async function tryOnce(side: Side, run: Place, enclosure?: Enclosure): Promise<Tried> {
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
      ...present({ enclosure: enclosure?.server }),
      signal,
    });
    const check = { ...checkOf(side), anyLength: true } as const;
    const answer = await answerOfAll(server, check, signal, enclosure?.server.enter);
    const askedAtMs = performance.now();
    const offered =
      enclosure === undefined ? await encodingOffered(server, side, signal) : undefined;
    const answerSeconds = offered && (performance.now() - askedAtMs) / 1000;
    const { redirections } = server;
    return { ...side, answer, ...present({ offered, answerSeconds }), redirections };
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

/**
 * Returns whether each side can be measured in a loopback of its own. This takes root, and configs that answer there as they do on the
 * machine's loopback, so that they ask nothing that listens on it.
 */
export async function canBeApart(
  sides: readonly Tried[],
  run: Place,
  { machines }: Pick<RunOptions, 'machines'>,
): Promise<boolean> {
  if (process.geteuid?.() !== 0 || machines !== undefined) return false;
  const areConfigs = sides.every(
    ({ server, redirections }) => isConfigured(server) && !redirections.some(asksMachine),
  );
  if (!areConfigs) return false;
  for (const side of sides) if (!(await answersApart(side, run))) return false;
  return true;
}

async function answersApart(side: Tried, run: Place): Promise<boolean> {
  let loopback: Enclosure | undefined;
  try {
    loopback = await openOwnLoopback(run.signal);
    const { answer } = await tryOnce(side, run, loopback);
    return isDeepStrictEqual(lookOf(answer), lookOf(side.answer));
  } catch (error) {
    run.signal.throwIfAborted();
    if (!(error instanceof UserError)) throw error;
    return false;
  } finally {
    await loopback?.stop();
  }
}

/**
 * Returns the parts of an answer that would change if the code behind it missed a service. It has no hash, because pages with dates
 * differ in that too.
 */
function lookOf({ status, bytes, encoding, type, each }: Answer) {
  return [status, bytes, encoding, type, each?.map((one) => [one.status, one.bytes])];
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
