// Runs k6 on a load plan and reads its output.
import { once } from 'node:events';
import { closeSync, openSync, readSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { withoutFound, withShortNames } from '../../bin/bundle.mjs';
import { projectRoot } from '../setup/paths.ts';
import { prioritise, startLogged, withoutVariables, type Before } from '../process.ts';
import { causeLine, lastLines } from '../program-logs.ts';
import {
  k6Files,
  loadOverLine,
  loadPlanVariable,
  phaseBeginsLine,
  phaseLinePrefix,
  withoutK6Config,
  type LoadPlan,
  type PhaseOutcome,
  type SideOptions,
} from '../k6/load-plan.ts';
import { groupedBy, total } from '../analysis/statistics.ts';
import { inOneLine, messageOf } from '../errors.ts';
import { ifThere, textOf } from '../files.ts';
import { whole } from '../format.ts';
import { keptLoad, shownUrl } from '../secrets.ts';
import { RoundFailure } from './failures.ts';
import type { SampleOutput } from './plan.ts';

const usualSource = fileURLToPath(new URL('../k6/main.ts', import.meta.url));

const banner = `// Written by bakeoff; needs a k6 with the module k6/x/loadgen, and a server at the address in load.json. By hand:
// BAKEOFF_LOAD="$(cat round-1/k6-1/load.json)" k6 run script.js
// Where load.json has *** put credentials and bodies in, or have --keep-secrets keep them.`;

/** Bundles a load's script for k6, by default lib/k6/main.ts. Throws the file system's error. */
export async function compileScript(file: string, source = usualSource): Promise<void> {
  await writeFile(file, await bundledForK6(source, banner));
}

/**
 * Bundles TypeScript into a script that needs only k6 with its modules.
 * @param first comment lines
 * @param values JSON definitions of names that the source declares
 */
export async function bundledForK6(
  file: string,
  first: string,
  values: Readonly<Record<string, string>> = {},
): Promise<string> {
  const { build } = await import('esbuild');
  const { outputFiles } = await build({
    entryPoints: [file],
    // esbuild's own messages about a file that cannot be written have several lines.
    write: false,
    bundle: true,
    platform: 'neutral',
    format: 'esm',
    target: 'es2023',
    external: ['k6', 'k6/*'],
    banner: { js: first },
    define: { ...values },
    ...withoutFound,
    logLevel: 'silent',
  });
  return withShortNames(outputFiles[0]?.text ?? '', projectRoot);
}

export interface RunningK6 {
  pid: number;
  /** Settles when k6 has ended. */
  exited: Promise<unknown>;
  /** See Child.stop. */
  stop(graceMs?: number): Promise<void>;
  /** Ends a k6 whose load is over, and whose database hangs. Its results and its record are complete. */
  endStuck(): Promise<void>;
  files: ReturnType<typeof k6Files>;
  /** Outcomes of the phases, once k6 has ended: as outcomesOf. */
  results(): Promise<PhaseOutcome[]>;
}

export interface K6Options {
  script: string;
  /** An existing folder for all that k6 writes. */
  folder: string;
  loadPlan: LoadPlan;
  binary: string;
  cpus: readonly number[];
  /** See ChildOptions. */
  before?: readonly Before[] | undefined;
  /** Its priority; absent: that of the runner. */
  nice?: number | undefined;
  /** Where samples go beside k6's record. */
  output: SampleOutput | null;
}

/** Starts k6. Keeps its plan as load.json, without credentials and process ids, and its summary as k6-summary.json. */
export async function startK6(options: K6Options): Promise<RunningK6> {
  const { folder, loadPlan, output } = options;
  const files = k6Files(folder);
  await writeFile(join(folder, 'load.json'), `${JSON.stringify(forKeeps(loadPlan), null, 2)}\n`);
  const child = await startLogged(
    {
      before: options.before,
      command: options.binary,
      args: k6Arguments(files, options.script, [
        '--summary-export',
        join(folder, 'k6-summary.json'),
        ...(output?.out ?? []).flatMap((out) => ['--out', out]),
      ]),
      cpus: options.cpus,
      cwd: folder,
      // K6_ variables of the user's shell would change the load or send the samples elsewhere.
      env: {
        ...withoutVariables(process.env, 'K6_'),
        ...withoutK6Config,
        ...output?.env,
        ...ownVariables(loadPlan),
      },
    },
    files.log,
    'w',
  );
  if (options.nice !== undefined) await prioritise(child.pid, options.nice);
  let isStuck = false;
  return {
    pid: child.pid,
    exited: child.exited,
    stop: child.stop,
    endStuck() {
      isStuck = true;
      return child.stop(stuckGraceMs);
    },
    files,
    results: async () => outcomesOf(await child.exited, folder, loadPlan, isStuck),
  };
}

/** k6's arguments; `more` come last and override the others. */
function k6Arguments(files: RunningK6['files'], script: string, more: readonly string[]): string[] {
  return [
    'run',
    '--quiet',
    '--no-color',
    '--log-format',
    'raw',
    '--console-output',
    files.console,
    '--out',
    `json=${files.record}`,
    // No REST API: two k6 would need the same port.
    '--address',
    '',
    ...more,
    script,
  ];
}

/** k6's environment variables for a load plan. */
export function ownVariables(loadPlan: LoadPlan): Record<string, string> {
  const sides = loadPlan.phases.flatMap((phase) => phase.sides);
  const threads = Math.max(...sides.map((side) => side.threads ?? 1));
  return {
    [loadPlanVariable]: JSON.stringify(loadPlan),
    K6_NO_USAGE_REPORT: 'true',
    K6_AUTO_EXTENSION_RESOLUTION: 'false',
    // HTTP/3 is made by goroutines on all cores, for which Go's own number is right.
    ...(sides.every(({ protocol }) => protocol === 'h3')
      ? {}
      : { GOMAXPROCS: String(threads + 2) }),
  };
}

/** The plan without process ids and, unless the person asks for them, without credentials and bodies. */
function forKeeps(plan: LoadPlan): LoadPlan {
  const shown = ({ cpuOf: _cpuOf, ...side }: SideOptions): SideOptions => ({
    ...(plan.keepSecrets
      ? side
      : { ...keptLoad(side), ...(side.url && { url: shownUrl(side.url) }) }),
  });
  return {
    ...plan,
    phases: plan.phases.map((phase) => ({ ...phase, sides: phase.sides.map(shown) })),
  };
}

/** k6's time beyond the limit of its load. */
const patienceSeconds = 30;
/** k6 writes its record first, and then gives the rest to the database. */
const mostFlushMs = 10_000;
const stuckGraceMs = 500;
const lookAgainMs = 500;

async function endIfStuck(k6: RunningK6, until: { signal: AbortSignal }): Promise<void> {
  while (!textOf(k6.files.console).includes(loadOverLine))
    await delay(lookAgainMs, undefined, until);
  await delay(mostFlushMs, undefined, until);
  await k6.endStuck();
}

/**
 * Waits until k6 has ended, and returns the outcomes of its phases.
 * @param peerDied settles when a server ends by itself, with a line that says how
 * @throws RoundFailure if the load is not complete, Interrupted after a signal
 */
export async function waitForK6(
  k6: RunningK6,
  { maxDurationSeconds }: LoadPlan,
  signal: AbortSignal,
  peerDied: Promise<string>,
): Promise<PhaseOutcome[]> {
  signal.throwIfAborted();
  const over = new AbortController();
  const until = { signal: over.signal };
  const limitMs = (maxDurationSeconds + patienceSeconds) * 1000;
  // It rejects once k6 has ended.
  endIfStuck(k6, until).catch(() => undefined);
  try {
    const failure = await Promise.race([
      k6.exited.then(() => undefined),
      peerDied,
      once(signal, 'abort', until).then(
        () => undefined,
        () => undefined,
      ),
      delay(limitMs, 'k6 did not end in time', until).catch(() => undefined),
    ]);
    signal.throwIfAborted();
    if (failure !== undefined) throw new RoundFailure(failure);
    return await k6.results();
  } catch (error) {
    signal.throwIfAborted();
    throw error instanceof RoundFailure ? error : new RoundFailure(messageOf(error));
  } finally {
    over.abort();
  }
}

/** How k6 begins its line for an error of the module (in Go) or of the script. */
const scriptError = /^\w*Error: /;

/** The module's error for a load that the engine gave up (ErrNoAnswer), with the side's place if there are several. */
const noAnswer =
  /^GoError: loadgen\.alternate: (?:sides\[(?<place>\d+)\]: )?(?<reason>no request was answered.*)/;

/**
 * Reads the outcomes of the phases from k6's folder.
 * @param isStuck its load was over, and it was ended
 * @throws Error if k6 failed or outcomes are missing: with k6's error, else its last line, else how far the load came
 */
export async function outcomesOf(
  { code, signal }: { code: number | null; signal: string | null },
  folder: string,
  plan: LoadPlan,
  isStuck = false,
): Promise<PhaseOutcome[]> {
  const files = k6Files(folder);
  // The last line may be incomplete.
  const printed = textOf(files.console).split('\n').slice(0, -1);
  if ((code === 0 || isStuck) && printed.includes(loadOverLine)) return outcomesIn(printed);
  const how = signal === null ? `code ${code}` : `signal ${signal}`;
  const lines = await lastLines(files.log);
  // k6 sums up after the error.
  const error = lines.find((line) => scriptError.test(line));
  const { place = 0, reason } = noAnswer.exec(error ?? '')?.groups ?? {};
  if (reason !== undefined) {
    const name = plan.phases[0]?.sides[Number(place)]?.tags?.['variant'];
    throw new Error(inOneLine(name === undefined ? reason : `${name}: ${reason}`));
  }
  // Its own limit is no failure for k6.
  if (code === 0 && error === undefined && printed.includes(phaseBeginsLine))
    throw new Error(overran(files.record, plan));
  throw new Error(
    `k6 ended with ${how}: ${error?.replace(/^GoError: /, '') ?? causeLine(lines) ?? 'it said nothing'}`,
  );
}

/** Returns how far a load came that k6 ended at its limit, by its record. */
function overran(record: string, { maxDurationSeconds, phases }: LoadPlan): string {
  const points = textOf(record).split('\n').flatMap(pointsIn);
  const progress = (phases[0]?.sides ?? []).map(({ requests, tags = {} }) => {
    const sidePoints = points.filter(({ variant }) => variant === tags['variant']);
    const ended = total(sidePoints, ({ kind, count }) => (kind === undefined ? count : 0));
    const asked = requests === undefined ? '' : ` of ${whole(requests * phases.length)}`;
    return `${tags['variant']} ${whole(ended)}${asked} requests${errorsAmong(sidePoints)}`;
  });
  return `the load did not end within ${whole(maxDurationSeconds)} s: ${progress.join(', ')}`;
}

/** " (12 without an answer: 10 timeout, 2 read)"; '' if all were answered. */
function errorsAmong(points: readonly CountPoint[]): string {
  const failed = points.filter(({ kind }) => kind !== undefined);
  if (failed.length === 0) return '';
  const countOf = (some: readonly CountPoint[]) => total(some, ({ count }) => count);
  const byKind = [...groupedBy(failed, ({ kind = '' }) => kind)];
  const kinds = byKind.map(([kind, some]) => `${whole(countOf(some))} ${kind}`);
  return ` (${whole(countOf(failed))} without an answer: ${kinds.join(', ')})`;
}

/** A point of the record that counts requests that ended, or those of them that ended with a kind of error. */
interface CountPoint {
  variant: string;
  kind: string | undefined;
  count: number;
}

function pointsIn(line: string): CountPoint[] {
  if (!/^\{"metric":"loadgen_(?:requests|errors)","type":"Point"/.test(line)) return [];
  try {
    const { data } = JSON.parse(line, plain) as {
      data: { value: number; tags: Record<string, string> };
    };
    return [{ variant: data.tags['variant'] ?? '', kind: data.tags['kind'], count: data.value }];
  } catch {
    // Half a line on a full disk.
    return [];
  }
}

function outcomesIn(lines: readonly string[]): PhaseOutcome[] {
  return lines
    .filter((line) => line.startsWith(phaseLinePrefix))
    .map((line) => JSON.parse(line.slice(phaseLinePrefix.length), plain) as PhaseOutcome);
}

/** Puts texts of servers in one line each, because they appear in messages and tables. */
function plain(_key: string, value: unknown): unknown {
  return typeof value === 'string' ? inOneLine(value) : value;
}

/** Returns a function that reads the outcomes of the phases that ended since its last call. */
export function followPhases(consoleFile: string): () => PhaseOutcome[] {
  const newLines = followLines(consoleFile);
  return () => {
    try {
      return outcomesIn(newLines());
    } catch {
      // Half a line on a full disk.
      return [];
    }
  };
}

/** k6 writes a second's samples in this order: time under load, responses by class, connections. */
const sampleLine =
  /^\{"metric":"loadgen_(seconds|responses|connections)","type":"Point","data":\{.*?"value":([\d.e+-]+)/;

/** The rest of a second may be too short for a rate. */
const shortestSeconds = 0.1;

/** Returns a function that reads the responses per second in the last second that k6 has recorded; null before the first. */
export function followRate(recordFile: string): () => number | null {
  const newLines = followLines(recordFile);
  let [seconds, responses] = [0, 0];
  let rps: number | null = null;
  return () => {
    for (const line of newLines()) {
      const [, metric, value] = sampleLine.exec(line) ?? [];
      if (metric === 'seconds') [seconds, responses] = [Number(value), 0];
      else if (metric === 'responses') responses += Number(value);
      else if (metric === 'connections' && seconds >= shortestSeconds) rps = responses / seconds;
    }
    return rps;
  };
}

/** Returns a function that reads the lines added to a file since its last call; none without the file. */
function followLines(file: string): () => string[] {
  let [offset, rest] = [0, ''];
  const buffer = Buffer.alloc(64 * 1024);
  return () => {
    const descriptor = ifThere(() => openSync(file, 'r'));
    if (descriptor === undefined) return [];
    for (let length = -1; length !== 0; offset += length) {
      length = readSync(descriptor, buffer, 0, buffer.length, offset);
      rest += buffer.toString('latin1', 0, length);
    }
    closeSync(descriptor);
    const lines = rest.split('\n');
    rest = lines.pop() ?? '';
    return lines;
  };
}
