// Reads what the flags ask for: requests of a log, a HAR or targets, and a log's times.
import { total } from '../../analysis/statistics.ts';
import type { Given } from '../../cli/sides.ts';
import { oneOf, seconds, type Arguments } from '../../cli/arguments.ts';
import { usageError } from '../../errors.ts';
import type { Reader } from '../../scenario/load/flags.ts';
import type { LoadProfile } from '../../scenario/model.ts';
import type { AskedRequests } from '../../scenario/pages.ts';
import { readHar, readTargets } from './lists.ts';
import { readLog, type Traffic } from './log.ts';
import type { Pace } from './piece.ts';

/** Returns the requests that the flags ask for; undefined if none does. Throws UserError (exit code 2). */
export async function recordedRequests(
  parsed: Arguments,
  sides: readonly Given[],
): Promise<AskedRequests | undefined> {
  const traffic = await readTraffic(parsed, sides);
  if (traffic === undefined) return undefined;
  const { replaySeconds, ...asked } = traffic;
  const recorded: AskedRequests = asked;
  if (parsed.flags.has('har')) recorded.record = 'HAR';
  if (parsed.flags.has('accept-differences')) recorded.acceptsDifferences = true;
  if (replaySeconds !== undefined) recorded.timed = (load) => replay(load, traffic, replaySeconds);
  return recorded;
}

async function readTraffic(
  parsed: Arguments,
  sides: readonly Given[],
): Promise<Traffic | undefined> {
  const { flags, lists, read } = parsed;
  const methods = read('methods', oneOf(['all'])) ?? 'safe';
  const host = flags.get('site')?.toLowerCase();
  const [har, targets, log] = [flags.get('har'), flags.get('targets'), lists.get('log')];
  if (har !== undefined) return readHar(har, methods, host);
  if (targets !== undefined) return readTargets(targets);
  if (log === undefined) return undefined;
  const formats = sides.flatMap(({ source }) =>
    source.kind === 'config' ? (source.config.logFormats ?? []) : [],
  );
  return readLog(log, { methods, host, formats, pace: readPace(parsed) });
}

const usualPaceSeconds = { full: 10, quick: 2 };
const fastestPace = 1000;

function readPace({ flags, read }: Arguments): Pace | undefined {
  const factor = read('pace', readFactor);
  if (factor === undefined) return undefined;
  const usualSeconds = usualPaceSeconds[flags.has('quick') ? 'quick' : 'full'];
  return {
    factor,
    seconds: read('duration', seconds(0.1)) ?? usualSeconds,
    arrivals: read('arrivals', oneOf(['constant', 'poisson'])),
  };
}

const readFactor: Reader<number> = (flag, text) => {
  const factor = text === 'as-logged' ? 1 : Number(/^(\d+(?:\.\d+)?)x$/.exec(text)?.[1]);
  if (factor > 0 && factor <= fastestPace) return factor;
  throw usageError(`${flag} ${text}: give as-logged, or how many times as fast, such as 10x`);
};

/** Returns the load with a log's times, which last so many seconds. Throws UserError (exit code 2) for a load that has a rate. */
function replay(load: LoadProfile, { requests }: Traffic, lastSeconds: number): LoadProfile {
  if (load.rate !== undefined)
    throw usageError(`--pace and ${load.command}: each says when requests are made: leave one out`);
  const { durationSeconds: _, ...rest } = load;
  const count = total(requests, ({ weight = 1 }) => weight);
  return { ...rest, arrivals: 'logged', requests: count, rate: count / lastSeconds };
}
