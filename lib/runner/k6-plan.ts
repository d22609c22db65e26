// The load of a group as k6 gets it: its load plan and the files with its pages.
import { createHash } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type {
  AlternateOptions,
  LoadOptions,
  LoadPlan,
  SearchPlan,
  SearchStart,
  SideOptions,
} from '../k6/load-plan.ts';
import { mostSteps } from '../k6/rate-search.ts';
import type { Phase, StatusClass } from '../result/result.ts';
import { isAtRate, type Load } from '../scenario/load.ts';
import type { Page, Scenario, Variant } from '../scenario/model.ts';
import { serverNameOf, type PageWeights } from '../scenario/pages.ts';
import { isOwn, networkOf, pageOf, programOf, type RunnableVariant } from '../scenario/variants.ts';
import { generatorCores, sharesCores, type Cores } from '../machine/cores.ts';
import { present } from '../present.ts';
import { expectedSeconds, type Group, type Plan, type PlannedVariant } from './plan.ts';

/** A count of requests may take this many times longer than expected; a duration ends by itself. */
const patience = 20;
/** The warm-up before a duration lasts until all connections have been answered: this many times longer than planned at most. */
const warmupPatience = 10;
/** Ramps and drains of a server that waits, and answers that are awaited for a second, come to as many times its window. */
const turnsPatience = 5;

/** What Phase.expected is: the class of the page's status. None of a shipped server with 2xx: there 3xx succeeds too, as the articles count. */
export function expectedOf(scenario: Scenario, variant: RunnableVariant): Pick<Phase, 'expected'> {
  const { status = 200 } = pageOf(scenario, variant);
  return status < 300 && !isOwn(variant.server)
    ? {}
    : { expected: `${Math.floor(status / 100)}xx` as StatusClass };
}

/** What is loaded: the page's URL, from which network namespace (absent: the machine's), and the server's processes, if they are here. */
export interface Target {
  url: string;
  netns?: string | undefined;
  processes?: readonly number[] | undefined;
}

/**
 * What k6 gets for a group in one round.
 * @param targets of its sides, in their order
 * @param from where the sides' searches begin
 */
export function loadPlanFor(
  plan: Pick<Plan, 'run' | 'scenario' | 'cores' | 'within'>,
  { sides, sliceSeconds }: Group,
  round: number,
  targets: readonly Target[],
  from: readonly SearchStart[] = [],
): LoadPlan {
  const { scenario, within } = plan;
  const { count: phases, pauseSeconds } = scenario.phases ?? { count: 1, pauseSeconds: 0 };
  const search: SearchPlan | undefined = within && {
    within,
    from,
    expected: sides.map(({ variant }) => expectedOf(scenario, variant)),
    stepSeconds: Math.max(...sides.map(({ load }) => load.durationSeconds ?? 0)),
  };
  const longest =
    search !== undefined
      ? mostSteps * longestStepSeconds(sides)
      : sides.reduce((sum, side) => sum + longestSeconds(scenario, side), 0);
  const pageFiles = sides.map(({ variant }) => pageFileOf(scenario, variant));
  const phase = (number: number): AlternateOptions => ({
    sides: sides.map(({ variant, load }, index): SideOptions => {
      const target = targets[index] as Target;
      return {
        ...loadOptions(load, target, pageOf(scenario, variant)),
        ...(maySpin(plan.cores, load, target) ? { spin: true } : {}),
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
    tags: { run: plan.run, round: String(round) },
    maxDurationSeconds: Math.ceil(phases * longest + (phases - 1) * pauseSeconds) + 10,
    phases: Array.from({ length: phases }, (_, index) => phase(index + 1)),
    ...present({
      pageFiles: pageFiles.every((file) => file === null) ? undefined : pageFiles,
      pauseSeconds: pauseSeconds === 0 ? undefined : pauseSeconds,
      search,
    }),
  };
}

/** Of one load phase, which is ended then. */
function longestSeconds(scenario: Scenario, { variant, load }: PlannedVariant): number {
  const { warmupSeconds, durationSeconds, timeoutSeconds } = load;
  const seconds =
    durationSeconds === undefined
      ? patience * expectedSeconds(load, pageOf(scenario, variant), networkOf(scenario, variant))
      : warmupPatience * warmupSeconds + turnsPatience * durationSeconds;
  return seconds + timeoutSeconds;
}

/** At the lowest rate a p99 takes 15 s, and no step waits for more than its time-out. */
function longestStepSeconds(sides: readonly PlannedVariant[]): number {
  return sides.reduce(
    (sum, { load: { durationSeconds = 0, warmupSeconds, timeoutSeconds } }) =>
      sum + Math.max(15, durationSeconds) + warmupSeconds + timeoutSeconds,
    0,
  );
}

/** Whether threads may spin: not where server or network need their cores, nor at a rate, where they would have to wait for their core. */
function maySpin(cores: Cores, load: Load, { netns }: Target): boolean {
  const { threads } = load;
  return (
    !isAtRate(load) &&
    netns === undefined &&
    !sharesCores(cores) &&
    threads <= generatorCores(cores)
  );
}

/** What the engine is asked for. `page`: the one at the target's `url`. */
export function loadOptions(
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
    // The servers' certificates are made on this machine and nobody has signed them; those of addresses are not checked either.
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

/** Of the load, and the page's host (:authority with HTTP/2) unless the load names one itself. */
function headersOf({ headers }: Load, { host }: Pick<Page, 'host'>): Load['headers'] {
  if (
    host === undefined ||
    Object.keys(headers ?? {}).some((name) => name.toLowerCase() === 'host')
  )
    return headers;
  return { Host: host, ...headers };
}

const goUnits = [
  ['s', 1e9],
  ['ms', 1e6],
  ['us', 1e3],
  ['ns', 1],
] as const;

/** Seconds as Go's time.ParseDuration reads them, to the nanosecond: whole numbers of the largest unit in which they are whole. */
export function goDuration(seconds: number): string {
  const nanoseconds = Math.round(seconds * 1e9);
  const [unit, size] = goUnits.find(
    ([, size]) => nanoseconds % size === 0,
  ) as (typeof goUnits)[number];
  return `${nanoseconds / size}${unit}`;
}

const digests = new WeakMap<PageWeights, string>();

/** SHA-256 of the list, made once: it may be long, and variants mostly have the same one, if not as one object. */
function digestOf(weights: PageWeights): string {
  const known = digests.get(weights) ?? createHash('sha256').update(textOf(weights)).digest('hex');
  digests.set(weights, known);
  return known;
}

const textOf = (weights: PageWeights): string =>
  Object.entries(weights)
    .map(([path, weight]) => `${path} ${weight}\n`)
    .join('');

/** All that makes a page what it is, to be compared as text: of a list its digest. */
export function pageFacts({ weights, ...page }: Page): object {
  return weights === undefined ? page : { ...page, weights: digestOf(weights) };
}

/** Each once, by its digest. */
function listsOf(scenario: Scenario): Map<string, PageWeights> {
  return new Map(
    scenario.variants.flatMap((variant) => {
      const { weights } = pageOf(scenario, variant);
      return weights === undefined ? [] : [[digestOf(weights), weights] as const];
    }),
  );
}

/** The name of the file that has the variant's pages; null where it has one page. */
export function pageFileOf(scenario: Scenario, variant: Variant): string | null {
  const { weights } = pageOf(scenario, variant);
  return weights === undefined
    ? null
    : fileName([...listsOf(scenario).keys()].indexOf(digestOf(weights)));
}

/** Writes the scenario's lists into the run's folder, in the form that --urls reads too. Throws the file system's error. */
export async function writePageFiles(scenario: Scenario, folder: string): Promise<void> {
  await Promise.all(
    [...listsOf(scenario).values()].map((weights, index) =>
      writeFile(join(folder, fileName(index)), textOf(weights)),
    ),
  );
}

function fileName(index: number): string {
  return `pages-${index + 1}.txt`;
}
