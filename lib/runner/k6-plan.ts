// The load of a group as k6 gets it.
import type { AlternateOptions, LoadOptions, LoadPlan, SideOptions } from '../k6/load-plan.ts';
import { total } from '../analysis/statistics.ts';
import type { StatusClass } from '../result/load-result.ts';
import type { Phase } from '../result/result.ts';
import { isAtRate, warmsUpApart, type Load } from '../scenario/load.ts';
import type { Page } from '../scenario/model.ts';
import { isMix, serverNameOf } from '../scenario/pages.ts';
import { isOwn, programOf } from '../scenario/variants.ts';
import { generatorCores, sharesCores, type Cores } from '../machine/cores.ts';
import { present, zip } from '../present.ts';
import { mixPlan } from './mix-files.ts';
import { drawnBy, type Group, type Plan, type PlannedVariant } from './plan.ts';
import { expectedSeconds } from './times.ts';

/** Limit for a count of requests, as a multiple of its expected time. */
const patience = 20;
/** The warm-up goes on until all connections have had an answer, but at most this many times its planned time. */
const warmupPatience = 10;
/** Limit for a window in turns, with the ramps and drains of a server that waits, as a multiple of the window. */
const turnsPatience = 5;
/**
 * Limit for the answers that the engine awaits beside window and warm-up: seven of 5 s, with a margin. They are the first one, those of all
 * connections, of the drain after the warm-up, of the ramp (three) and of the drain after the window.
 */
const slowAnswersSeconds = 40;

/** A load in steps multiplies a seed by the number of steps. The product must stay exact. */
const mostSeeds = 2 ** 40;

/** The class of status that succeeds, as Phase.expected. Shipped servers have none for 2xx: there 3xx succeeds too, as in the articles. */
export function expectedOf({
  variant,
  page,
}: Pick<PlannedVariant, 'variant' | 'page'>): Pick<Phase, 'expected'> {
  const { status = 200 } = page;
  if (isMix(page)) return { expected: 'each' };
  if (status < 300 && !isOwn(variant.server)) return {};
  return { expected: `${Math.floor(status / 100)}xx` as StatusClass };
}

/** What k6 loads: the URL of the page, and the server's processes, if they run here. */
export interface Target {
  url: string;
  /** The load's options in an enclosure; undefined on the machine's loopback. */
  enclosed?: LoadOptions | undefined;
  processes?: readonly number[] | undefined;
}

/**
 * Returns the load plan of a group for a round.
 * @param targets of the sides, in their order
 * @param known as Attempt.known
 */
export function loadPlanFor(
  {
    run,
    scenario,
    cores,
    stepped,
    keepSecrets,
  }: Pick<Plan, 'run' | 'scenario' | 'cores' | 'stepped' | 'keepSecrets'>,
  { sides, sliceSeconds, warmTogether, withoutEachPage }: Group,
  round: number,
  targets: readonly Target[],
  known: ReadonlyMap<string, readonly number[]> = new Map(),
): LoadPlan {
  const { count: phases, pauseSeconds } = scenario.phases ?? { count: 1, pauseSeconds: 0 };
  const longestSeconds = stepped?.longestSeconds(sides) ?? total(sides, longestPhaseSeconds);
  const mixes = mixPlan(sides, withoutEachPage === true || stepped !== undefined);
  const { aloneSeconds = 0 } = mixes;
  const phase = (number: number): AlternateOptions => ({
    sides: zip(sides, targets).map(([side, target]) => sideOptions(side, target, cores, number)),
    ...present({ slice: optionalDuration(sliceSeconds), warmTogether }),
    // Each side is first in as many rounds as the others.
    first: 1 + ((round + Math.floor(sides.length * drawnBy(`${run} first`))) % sides.length),
    seed: 1 + Math.floor(mostSeeds * drawnBy(`${run} ${round}`)),
  });
  return {
    scenario: scenario.name,
    tags: { run, round: String(round) },
    maxDurationSeconds:
      Math.ceil(
        phases * (longestSeconds + aloneSeconds * turnsPatience * sides.length) +
          (phases - 1) * pauseSeconds,
      ) + 10,
    phases: Array.from({ length: phases }, (_, index) => phase(index + 1)),
    ...present({
      keepSecrets,
      warmUps: warmUpsOf(sides),
      ...mixes,
      pauseSeconds: pauseSeconds || undefined,
      steps: stepped?.planFor(sides, known, `${run} ${round}`),
    }),
  };
}

function sideOptions(
  planned: PlannedVariant,
  target: Target,
  cores: Cores,
  phase: number,
): SideOptions {
  const { variant, load, page } = planned;
  return {
    ...loadOptions(load, target, page),
    ...present({ spin: maySpin(cores, planned) || undefined, cpuOf: target.processes }),
    tags: {
      variant: variant.name,
      server: programOf(variant.server),
      protocol: load.protocol,
      phase: String(phase),
    },
  };
}

/** For each side, the warm-up that is a load of its own, null without; undefined if none has one. */
function warmUpsOf(sides: readonly PlannedVariant[]): LoadPlan['warmUps'] {
  if (!sides.some(({ load }) => warmsUpApart(load))) return undefined;
  return sides.map(({ load }) => (warmsUpApart(load) ? warmUpOptions(load) : null));
}

function longestPhaseSeconds({ load, page, enclosure }: PlannedVariant): number {
  const { warmupSeconds, warmupLimitSeconds = 0, durationSeconds, timeoutSeconds } = load;
  const seconds =
    durationSeconds === undefined
      ? patience * expectedSeconds(load, page, enclosure)
      : warmupPatience * warmupSeconds + turnsPatience * durationSeconds;
  return seconds + Math.max(warmupLimitSeconds, slowAnswersSeconds) + timeoutSeconds;
}

/**
 * Returns whether threads may spin: not if server, enclosure or QUIC need their cores, nor at a rate, at which a spinning thread delays the
 * others.
 */
function maySpin(cores: Cores, { load, enclosure }: PlannedVariant): boolean {
  return (
    !isAtRate(load) &&
    enclosure === undefined &&
    load.protocol !== 'h3' &&
    !sharesCores(cores) &&
    load.threads <= generatorCores(cores)
  );
}

function loadOptions(load: Load, { url, enclosed }: Target, page: Page): LoadOptions {
  const { streams, together, window, method, body } = load;
  const warmUp = warmsUpApart(load) ? {} : warmUpOptions(load);
  return {
    url,
    protocol: load.protocol,
    connections: load.connections,
    threads: load.threads,
    keepAlive: load.keepAlive,
    timeout: goDuration(load.timeoutSeconds),
    ...paceAndLength(load),
    ...present({
      streams: streams === 1 ? undefined : streams,
      together,
      window,
      buckets: load.bucketSeconds?.map(goDuration),
      ...enclosed,
      ...warmUp,
      tls: url.startsWith('https:') ? tlsOptions(load, page) : undefined,
      method,
      headers: headersOf(load, page),
      body,
    }),
  };
}

/** Servers' certificates are made here and signed by nobody. */
function tlsOptions({ tls }: Load, { host }: Page): LoadOptions['tls'] {
  return { insecureSkipVerify: true, ...tls, ...present({ serverName: serverNameOf(host) }) };
}

/** When requests start, and for how long. */
function paceAndLength({
  rate,
  arrivals,
  requests = 0,
  durationSeconds,
}: Load): Pick<LoadOptions, 'rate' | 'arrivals' | 'requests' | 'duration'> {
  const pace = present({ rate, arrivals });
  if (durationSeconds !== undefined) return { ...pace, duration: goDuration(durationSeconds) };
  return { ...pace, requests };
}

function warmUpOptions(load: Load) {
  const { warmupSeconds, warmupLimitSeconds = 0, warmupBoundSeconds = Infinity } = load;
  const { warmupGain, warmupConfirmed } = load;
  const mostSeconds = Math.min(warmupLimitSeconds, warmupBoundSeconds);
  return present({
    warmupGain,
    warmupConfirmed,
    warmup: optionalDuration(warmupSeconds || undefined),
    warmupLimit: optionalDuration(mostSeconds || undefined),
  });
}

/** Adds the page's host (:authority with HTTP/2) to the load's headers, unless they name a host. */
function headersOf({ headers = {} }: Load, { host }: Page): Load['headers'] {
  const names = Object.keys(headers);
  if (host === undefined || names.some((name) => name.toLowerCase() === 'host'))
    return names.length === 0 ? undefined : headers;
  return { Host: host, ...headers };
}

function optionalDuration(seconds: number | undefined): string | undefined {
  return seconds === undefined ? undefined : goDuration(seconds);
}

/** Formats a duration for Go's time.ParseDuration, to the nanosecond. */
function goDuration(seconds: number): string {
  const nanoseconds = Math.round(seconds * 1e9);
  return nanoseconds % 1e6 === 0 ? `${nanoseconds / 1e6}ms` : `${nanoseconds}ns`;
}
