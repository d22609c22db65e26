// The load of a group as k6 gets it: its load plan and the files with its pages.
import { createHash } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type {
  AlternateOptions,
  LoadOptions,
  LoadPlan,
  SearchStart,
  SideOptions,
} from '../k6/load-plan.ts';
import { total } from '../analysis/statistics.ts';
import { mostSteps } from '../k6/rate-search.ts';
import type { Phase, StatusClass } from '../result/result.ts';
import { isAtRate, type Load } from '../scenario/load.ts';
import type { Page, Scenario, Variant } from '../scenario/model.ts';
import { serverNameOf, type PageWeights } from '../scenario/pages.ts';
import { isOwn, networkOf, pageOf, programOf, type RunnableVariant } from '../scenario/variants.ts';
import { generatorCores, sharesCores, type Cores } from '../machine/cores.ts';
import { present } from '../present.ts';
import { expectedSeconds, type Group, type Plan, type PlannedVariant } from './plan.ts';

/** Limit for a count of requests, as a multiple of its expected time. */
const patience = 20;
/** The warm-up ends once all connections have had an answer, and after this many times its planned time. */
const warmupPatience = 10;
/** Limit for a window in turns, with the ramps and drains of a server that waits, as a multiple of the window. */
const turnsPatience = 5;

/** The class of status that succeeds, as Phase.expected. Shipped servers have none for 2xx: there 3xx succeeds too, as in the articles. */
export function expectedOf(scenario: Scenario, variant: RunnableVariant): Pick<Phase, 'expected'> {
  const { status = 200 } = pageOf(scenario, variant);
  return status < 300 && !isOwn(variant.server)
    ? {}
    : { expected: `${Math.floor(status / 100)}xx` as StatusClass };
}

/** What k6 loads: the URL of the page, in a network namespace (default: the machine's), and the server's processes, if they run here. */
export interface Target {
  url: string;
  netns?: string | undefined;
  processes?: readonly number[] | undefined;
}

/**
 * Returns the load plan of a group for a round.
 * @param targets of the sides, in their order
 * @param from the begin of each side's search
 */
export function loadPlanFor(
  { run, scenario, cores, within }: Pick<Plan, 'run' | 'scenario' | 'cores' | 'within'>,
  { sides, sliceSeconds }: Group,
  round: number,
  targets: readonly Target[],
  from: readonly SearchStart[] = [],
): LoadPlan {
  const { count: phases, pauseSeconds } = scenario.phases ?? { count: 1, pauseSeconds: 0 };
  const longestSeconds =
    within === undefined
      ? total(sides, (side) => longestPhaseSeconds(scenario, side))
      : mostSteps * total(sides, longestStepSeconds);
  const pageFiles = sides.map(({ variant }) => pageFileOf(scenario, variant));
  const phase = (number: number): AlternateOptions => ({
    sides: sides.map(({ variant, load }, index): SideOptions => {
      const target = targets[index] as Target;
      return {
        ...loadOptions(load, target, pageOf(scenario, variant)),
        ...(maySpin(cores, load, target) ? { spin: true } : {}),
        ...(target.processes === undefined ? {} : { cpuOf: target.processes }),
        tags: {
          variant: variant.name,
          server: programOf(variant.server),
          protocol: load.protocol,
          phase: String(number),
        },
      };
    }),
    ...(sliceSeconds === undefined ? {} : { slice: goDuration(sliceSeconds) }),
    seed: round,
  });
  return {
    scenario: scenario.name,
    tags: { run, round: String(round) },
    maxDurationSeconds: Math.ceil(phases * longestSeconds + (phases - 1) * pauseSeconds) + 10,
    phases: Array.from({ length: phases }, (_, index) => phase(index + 1)),
    ...present({
      pageFiles: pageFiles.every((file) => file === null) ? undefined : pageFiles,
      pauseSeconds: pauseSeconds === 0 ? undefined : pauseSeconds,
      search: within && {
        within,
        from,
        expected: sides.map(({ variant }) => expectedOf(scenario, variant)),
        stepSeconds: Math.max(...sides.map(({ load }) => load.durationSeconds ?? 0)),
      },
    }),
  };
}

/** k6 ends a load phase after this time. */
function longestPhaseSeconds(scenario: Scenario, { variant, load }: PlannedVariant): number {
  const { warmupSeconds, durationSeconds, timeoutSeconds } = load;
  const seconds =
    durationSeconds === undefined
      ? patience * expectedSeconds(load, pageOf(scenario, variant), networkOf(scenario, variant))
      : warmupPatience * warmupSeconds + turnsPatience * durationSeconds;
  return seconds + timeoutSeconds;
}

/** At the lowest rate of a search, a p99 takes 15 s. */
function longestStepSeconds({ load }: PlannedVariant): number {
  const { durationSeconds = 0, warmupSeconds, timeoutSeconds } = load;
  return Math.max(15, durationSeconds) + warmupSeconds + timeoutSeconds;
}

/** Whether threads may spin: not if server or network need their cores, nor at a rate, at which a spinning thread delays the others. */
function maySpin(cores: Cores, load: Load, { netns }: Target): boolean {
  return (
    !isAtRate(load) &&
    netns === undefined &&
    !sharesCores(cores) &&
    load.threads <= generatorCores(cores)
  );
}

/** Returns the engine's options for a load of the page at the target's `url`. */
function loadOptions(
  load: Load,
  { url, netns }: Pick<Target, 'url' | 'netns'>,
  page: Pick<Page, 'host'>,
): LoadOptions {
  const { rate, arrivals, bucketSeconds, tls, method, body } = load;
  return {
    url,
    protocol: load.protocol,
    connections: load.connections,
    ...present({
      streams: load.streams === 1 ? undefined : load.streams,
      rate,
      arrivals,
      buckets: bucketSeconds?.map(goDuration),
      netns,
    }),
    threads: load.threads,
    keepAlive: load.keepAlive,
    timeout: goDuration(load.timeoutSeconds),
    ...(load.durationSeconds === undefined
      ? { requests: load.requests }
      : { duration: goDuration(load.durationSeconds) }),
    ...(load.warmupSeconds === 0 ? {} : { warmup: goDuration(load.warmupSeconds) }),
    // The servers' certificates are made here and signed by nobody.
    ...(url.startsWith('https:')
      ? {
          tls: {
            insecureSkipVerify: true,
            ...tls,
            ...present({ serverName: serverNameOf(page.host) }),
          },
        }
      : {}),
    ...present({ method, headers: headersOf(load, page), body }),
  };
}

/** Adds the page's host (:authority with HTTP/2) to the load's headers, unless they name a host. */
function headersOf({ headers = {} }: Load, { host }: Pick<Page, 'host'>): Load['headers'] {
  const names = Object.keys(headers);
  if (host === undefined || names.some((name) => name.toLowerCase() === 'host'))
    return names.length === 0 ? undefined : headers;
  return { Host: host, ...headers };
}

const goUnits = [
  ['s', 1e9],
  ['ms', 1e6],
  ['us', 1e3],
  ['ns', 1],
] as const;

/** Seconds in the notation of Go's time.ParseDuration: a whole number of the largest possible unit. */
function goDuration(seconds: number): string {
  const nanoseconds = Math.round(seconds * 1e9);
  const [unit, size] = goUnits.find(
    ([, size]) => nanoseconds % size === 0,
  ) as (typeof goUnits)[number];
  return `${nanoseconds / size}${unit}`;
}

const digests = new WeakMap<PageWeights, string>();

/** SHA-256 of a list of pages, computed once per list: it may be long. */
function digestOf(weights: PageWeights): string {
  const known = digests.get(weights) ?? createHash('sha256').update(textOf(weights)).digest('hex');
  digests.set(weights, known);
  return known;
}

const textOf = (weights: PageWeights): string =>
  Object.entries(weights)
    .map(([path, weight]) => `${path} ${weight}\n`)
    .join('');

/** The page's properties, to be compared as text: a list of pages as its digest. */
export function pageFacts({ weights, ...page }: Page): object {
  return weights === undefined ? page : { ...page, weights: digestOf(weights) };
}

/** The scenario's different lists of pages, by file name. */
function pageFilesOf(scenario: Scenario): Map<string, PageWeights> {
  const lists = new Map<string, PageWeights>();
  for (const variant of scenario.variants) {
    const { weights } = pageOf(scenario, variant);
    if (weights !== undefined) lists.set(digestOf(weights), weights);
  }
  return new Map([...lists.values()].map((weights, index) => [`pages-${index + 1}.txt`, weights]));
}

/** The file with the variant's pages; null for a single page. The list is too long for k6's environment. */
function pageFileOf(scenario: Scenario, variant: Variant): string | null {
  const { weights } = pageOf(scenario, variant);
  if (weights === undefined) return null;
  const files = [...pageFilesOf(scenario)];
  return files.find(([, list]) => digestOf(list) === digestOf(weights))?.[0] ?? null;
}

/** Writes the scenario's lists of pages into the run's folder, in the format of --urls. Throws the file system's error. */
export async function writePageFiles(scenario: Scenario, folder: string): Promise<void> {
  await Promise.all(
    [...pageFilesOf(scenario)].map(([name, weights]) =>
      writeFile(join(folder, name), textOf(weights), { mode: 0o600 }),
    ),
  );
}
