// What may happen to a variant while it is loaded, so that its figures would not mean what they say: then the round is dropped. Each
// check returns what it found, most in one line with what to do about it; undefined where all is well.
import { Disturbance, RoundFailure } from './round-types.ts';
import { responsesOf } from '../analysis/phases.ts';
import { hundredths, scaledTime, whole } from '../format.ts';
import type { Phase } from '../result/result.ts';
import { isOwn } from '../scenario/variants.ts';
import type { Answer, RunningServer } from '../servers/index.ts';
import type { LogAlarms } from '../servers/lifecycle.ts';
import type { PlannedVariant } from './plan.ts';
import { windowOf, type UsageSample, type UsageWindow } from './samples.ts';
import type { Measurement } from './under-load.ts';

/**
 * Requires that a side's figures mean what they say.
 * @param phases `all` of them, and those whose CPU time is `told`
 * @throws RoundFailure where its server crashed, Disturbance where something else came between
 */
export function requireSound(
  { variant: { name }, load }: Pick<PlannedVariant, 'variant' | 'load'>,
  { samples, quotas, link }: Pick<Measurement, 'samples' | 'quotas' | 'link'>,
  { all, told }: { all: readonly Phase[]; told: readonly Phase[] },
  server: RunningServer,
  alarms: LogAlarms,
): void {
  if (alarms.crash !== undefined)
    throw new RoundFailure(
      `${name}: ${server.name} crashed under load, as its log says: ${alarms.crash}`,
    );
  for (const phase of all) {
    const window = windowOf(phase, load);
    const disturbance =
      clockStepIn(samples) ??
      (told.includes(phase) ? gapIn(samples, window) : undefined) ??
      throttlingIn(samples, window, quotas) ??
      (link === null || window.idleBefore ? undefined : gapIn(link.samples, window)) ??
      standstillIn(phase, samples, window, server.name, alarms.first);
    if (disturbance !== undefined) throw new Disturbance(`${name}: ${disturbance}`);
  }
}

/** The log's last line, which is told where a server ends, is not the one that says why. */
export function withCrash(error: RoundFailure, alarms: readonly LogAlarms[]): RoundFailure {
  const crash = alarms.find((one) => one.crash !== undefined)?.crash;
  return crash === undefined || error.message.includes(crash)
    ? error
    : new RoundFailure(`${error.message}; its log says: ${crash}`);
}

type Instants = readonly { atMs: number }[];

/** Sums such as CPU times lose nothing by a gap; but tasks and their memory are looked up once a second. */
const toleratedGapMs = 2000;

/** More than the two clocks' readings are apart where the process is interrupted between them; NTP's slewing moves both alike. */
const toleratedStepMs = 50;

/** Whether samples lie around the window and close enough to each other. @param samples in order of time */
export function gapIn(
  samples: Instants,
  { fromMs, toMs }: Pick<UsageWindow, 'fromMs' | 'toMs'>,
): string | undefined {
  const before = samples.findLastIndex(({ atMs }) => atMs <= fromMs);
  const after = samples.findIndex(({ atMs }) => atMs >= toMs);
  if (before === -1 || after === -1)
    return 'the load was not sampled from its begin to its end: bakeoff was stopped, or had no CPU time; leave it running and try again';
  const longestMs = Math.max(
    ...samples
      .slice(before + 1, after + 1)
      .map(({ atMs }, index) => atMs - (samples[before + index]?.atMs as number)),
  );
  return longestMs <= toleratedGapMs
    ? undefined
    : `nothing was sampled for ${scaledTime(longestMs)} of the load: bakeoff was stopped (Ctrl-Z, a suspended machine), or had no CPU time; leave it running, and end what else uses its cores`;
}

/** Whether the wall clock was set, or the machine was suspended, while it was sampled: samples in the database are stamped with it. */
export function clockStepIn(
  samples: readonly Pick<UsageSample, 'wallAheadMs'>[],
): string | undefined {
  const first = samples[0]?.wallAheadMs ?? 0;
  const stepMs = samples.reduce(
    (most, { wallAheadMs }) =>
      Math.abs(wallAheadMs - first) > Math.abs(most) ? wallAheadMs - first : most,
    0,
  );
  if (Math.abs(stepMs) <= toleratedStepMs) return undefined;
  return (
    `the machine's clock was set ${stepMs < 0 ? 'back' : 'forward'} by ${scaledTime(Math.abs(stepMs))} during the load, or the machine was suspended: ` +
    'wait until its time is synchronised (timedatectl), and keep it awake'
  );
}

/**
 * Of the window. Where a quota is that of as many cores as are used, as defaultCores chooses them, the kernel may run out of it
 * just before it grants the next period's.
 */
const toleratedThrottling = 0.001;

/**
 * Whether a CPU quota held the run back within the window for longer than that.
 * @param quotas as in ThrottlingWatch
 */
export function throttlingIn(
  samples: readonly Pick<UsageSample, 'atMs' | 'throttling'>[],
  { fromMs, toMs }: UsageWindow,
  quotas: string,
): string | undefined {
  const before = (samples.findLast(({ atMs }) => atMs <= fromMs) ?? samples[0])?.throttling;
  const after = (samples.find(({ atMs }) => atMs >= toMs) ?? samples.at(-1))?.throttling;
  if (
    before === undefined ||
    after === undefined ||
    !(after.ms - before.ms > toleratedThrottling * (toMs - fromMs))
  )
    return undefined;
  const times = after.times - before.times;
  return (
    `a CPU quota held the run back ${times === 1 ? 'once' : `${whole(times)} times`}, for ${scaledTime(after.ms - before.ms)}, during the load (${quotas}): ` +
    "take the quota away (cpu.max; docker run --cpus, a pod's limits.cpu), or give it more than the cores that bakeoff uses"
  );
}

/**
 * So long without a response is more than any pause that a server at work makes. A SYN that its full queue has dropped, the last
 * one under way, is sent again after 1 s (RFC 6298, section 2).
 */
const standstillMs = 1250;
/** Of p99 of the latency, and of what connections typically wait for their first byte: where those take their time, so do the pauses. */
const standstillFactor = 10;

/**
 * Whether the server stood still: requests were under way, and nothing came for long, or for most of a shorter window, which
 * was over without an answer. Where the run's own network lost packets, TCP's own waiting (1 s and more) may be the reason, and
 * it is not looked at.
 * @param server its name
 * @param alarm a line of its log
 */
export function standstillIn(
  phase: Pick<
    Phase,
    'longestGapMs' | 'latencyMs' | 'firstByteMs' | 'network' | 'responses' | 'errors' | 'seconds'
  >,
  samples: readonly Pick<UsageSample, 'atMs' | 'stoppedPid'>[],
  { fromMs, toMs }: UsageWindow,
  server: string,
  alarm: string | undefined,
): string | undefined {
  const { longestGapMs, latencyMs, firstByteMs, network, errors, seconds } = phase;
  const unanswered = errors.total + responsesOf(phase) === 0;
  const tolerated = unanswered
    ? Math.min(standstillMs, (1000 * seconds) / 2)
    : Math.max(standstillMs, standstillFactor * latencyMs.p99, standstillFactor * firstByteMs.p50);
  if (!(longestGapMs > tolerated)) return undefined;
  if (network !== null && network.retransmits.client + network.retransmits.server > 0)
    return undefined;
  const stopped = samples.find(
    ({ atMs, stoppedPid }) => stoppedPid !== undefined && atMs >= fromMs && atMs <= toMs,
  )?.stoppedPid;
  const why =
    stopped !== undefined
      ? `its process ${stopped} was stopped (state T): have it go on (kill -CONT ${stopped}), and leave it without a debugger`
      : alarm !== undefined
        ? `its log says: ${alarm}`
        : 'why is not known: look at its log, at its backend, and at what else runs on the machine';
  const ofWindow = unanswered ? ` of its ${scaledTime(1000 * seconds)}` : '';
  return `${server} stood still: no response came for ${scaledTime(longestGapMs)}${ofWindow} while requests were under way; ${why}`;
}

/** Chance does not bring so many. */
const deviations = 5;

/**
 * The mean length of the bodies where it is not the page's, or that of several beyond chance. Only where all is answered with 2xx, or
 * with the class that is right: other answers have bodies of their own, and are told as failures.
 * @param answer to the same method and headers when the server was tried: encoded as under load
 */
export function otherBodiesIn(
  {
    responses,
    expected = '2xx',
    bytes,
    inFlight,
  }: Pick<Phase, 'responses' | 'expected' | 'bytes' | 'inFlight'>,
  answer: Pick<Answer, 'bytes' | 'sdBytes'>,
): number | undefined {
  const answered = responses[expected];
  if (answered === 0 || responsesOf({ responses }) > answered) return undefined;
  // Several pages are asked for in a drawn order, and long ones are more often still on their way at the end.
  const tolerated = deviations * (answer.sdBytes ?? 0) * (Math.sqrt(answered) + inFlight);
  return Math.abs(bytes.body - answered * answer.bytes) <= tolerated
    ? undefined
    : bytes.body / answered;
}

/**
 * Whether bodies had another length under load than when the server was ready. What is shipped serves one file, which has to be
 * it; a config of one's own may make its pages up, and a percent of their length is not seen in requests/s.
 * @throws RoundFailure where they have to be the same
 */
export function bodiesDiffer(
  { variant }: Pick<PlannedVariant, 'variant'>,
  phases: readonly Phase[],
  answer: Pick<Answer, 'bytes' | 'sdBytes'>,
): boolean {
  const found = phases.flatMap((phase) => otherBodiesIn(phase, answer) ?? []);
  if (isOwn(variant.server))
    return found.some((meanBytes) => Math.abs(meanBytes - answer.bytes) > 0.01 * answer.bytes);
  const [meanBytes] = found;
  if (meanBytes === undefined) return false;
  throw new RoundFailure(
    `${variant.name}: bodies had ${hundredths(meanBytes)} B on average, and the page has ${whole(answer.bytes)} B: it changed during the load`,
  );
}
