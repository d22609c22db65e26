// Whether what was measured of a side in one round means what it says.
import { hundredths, whole } from '../format.ts';
import { isOwn } from '../scenario/catalogue.ts';
import type { Answer, RunningServer } from '../servers/index.ts';
import { clockStepIn, Disturbance, gapIn, otherBodiesIn, RoundFailure, standstillIn, throttlingIn } from './disturbance.ts';
import { windowOf, type Measurement } from './measurement.ts';
import type { PlannedVariant } from './planned.ts';
import type { Phase } from '../result/result.ts';
import type { LogAlarms } from '../servers/server-log.ts';

/** What was sampled beside a load. */
type Sampled = Pick<Measurement, 'samples' | 'quotas' | 'link'>;

/**
 * Requires that a side's figures mean what they say.
 * @param phases `all` of them, and those whose CPU time is `told`
 * @throws RoundFailure where its server crashed, Disturbance where something else came between
 */
export function requireSound(
  { variant: { name }, load }: Pick<PlannedVariant, 'variant' | 'load'>, { samples, quotas, link }: Sampled, { all, told }: { all: readonly Phase[]; told: readonly Phase[] }, server: RunningServer, alarms: LogAlarms,
): void {
  if (alarms.crash !== undefined) throw new RoundFailure(`${name}: ${server.name} crashed under load, as its log says: ${alarms.crash}`);
  for (const [index, phase] of all.entries()) {
    const window = windowOf(phase, load, index === all.length - 1);
    const disturbance = clockStepIn(samples) ?? (told.includes(phase) ? gapIn(samples, window) : undefined) ?? throttlingIn(samples, window, quotas)
      ?? (link === null || window.idleBefore ? undefined : gapIn(link.samples, { ...window, idleAfter: false }))
      ?? standstillIn(phase, samples, window, server.name, alarms.first);
    if (disturbance !== undefined) throw new Disturbance(`${name}: ${disturbance}`);
  }
}

/**
 * Whether bodies had another length under load than when the server was ready. What is shipped serves one file, which has to be
 * it; a config of one's own may make its pages up, and a percent of their length is not seen in requests/s.
 * @throws RoundFailure where they have to be the same
 */
export function bodiesDiffer({ variant }: Pick<PlannedVariant, 'variant'>, phases: readonly Phase[], answer: Pick<Answer, 'bytes' | 'sdBytes'>): boolean {
  const found = phases.flatMap((phase) => otherBodiesIn(phase, answer) ?? [])[0];
  if (found === undefined) return false;
  if (isOwn(variant.server)) return Math.abs(found.meanBytes - answer.bytes) > 0.01 * answer.bytes;
  throw new RoundFailure(`${variant.name}: bodies had ${hundredths(found.meanBytes)} B on average, and the page has ${whole(answer.bytes)} B: it changed during the load`);
}

/** The log's last line, which is told where a server ends, is not the one that says why. */
export function withCrash(error: RoundFailure, alarms: readonly LogAlarms[]): RoundFailure {
  const crash = alarms.find((one) => one.crash !== undefined)?.crash;
  return crash === undefined || error.message.includes(crash) ? error : new RoundFailure(`${error.message}; its log says: ${crash}`);
}
