// Runs k6 on a load plan and reads what it writes.
import { writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { once } from 'node:events';
import path from 'node:path';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { closeSync, openSync, readSync, watch } from 'node:fs';
import { build } from 'esbuild';
import { RoundFailure } from './round-types.ts';
import {
  k6Files,
  loadPlanVariable,
  loadOverLine,
  phaseLinePrefix,
  type LoadPlan,
  type PhaseOutcome,
  type SideOptions,
} from '../k6/load-plan.ts';
import { shownHeaders } from '../scenario/load/flags.ts';
import {
  startLogged,
  weighSession,
  withoutVariables,
  causeLine,
  lastLines,
  type Interrupt,
} from '../process.ts';
import { isFull } from './results-folder.ts';
import { ifThere, textOf } from '../files.ts';

const source = fileURLToPath(new URL('../k6/main.ts', import.meta.url));

const banner = `// Written by bakeoff; needs a k6 with the module k6/x/loadgen, and a server at the address in load.json. By hand:
// BAKEOFF_LOAD="$(cat round-1/k6-1/load.json)" k6 run script.js
// Credentials are not kept: where load.json has *** put them in.`;

/** Writes lib/k6/main.ts with all that it imports, except for k6's own modules, to `file`. Throws the file system's error. */
export async function compileScript(file: string): Promise<void> {
  const {
    outputFiles: [script],
  } = await build({
    entryPoints: [source],
    // Written below: esbuild would wrap what goes wrong into several lines of its own.
    write: false,
    bundle: true,
    platform: 'neutral',
    format: 'esm',
    target: 'es2023',
    external: ['k6', 'k6/*'],
    banner: { js: banner },
    logLevel: 'silent',
  });
  await writeFile(file, script?.contents ?? '');
}

export interface K6Options {
  binary: string;
  script: string;
  /** All that k6 writes goes there; it exists. */
  folder: string;
  cpus: readonly number[];
  /** As in ChildOptions. */
  before?: readonly string[] | undefined;
  loadPlan: LoadPlan;
  /** Before all else that runs on its cores, where root starts it. */
  goesFirst?: boolean;
  /** The store's output: values of --out, and environment variables; null without a store. */
  output: { out: readonly string[]; env: Readonly<Record<string, string>> } | null;
}

export interface RunningK6 {
  /** Undefined where it runs on other hosts. */
  pid: number | undefined;
  /** Settles when it has ended, or a part of it that the others are no load without. */
  exited: Promise<unknown>;
  /** As Child.stop. */
  stop(graceMs?: number): Promise<void>;
  files: ReturnType<typeof k6Files>;
  /** The outcomes of the phases, once k6 has ended: as outcomesOf. */
  results(ended?: boolean): Promise<PhaseOutcome[]>;
}

/** What k6 logs of an error of the module's, which is Go's, or of the script's. */
const scriptError = /^\w*Error: /;

/** What k6 hears of TERM is "stop and flush"; its outputs may need this long where the database is slow. */
const k6GraceMs = 10_000;

/** `outputHung`: k6 had to be ended after its load, whose outcomes are whole, since an output of its did not end: a database hangs. */
export interface K6Outcome {
  outcomes: PhaseOutcome[];
  outputHung: boolean;
}

/** How long k6 may take beyond its own limit, e.g. for a database that hangs. */
const patienceSeconds = 30;

/** How long k6's outputs may take once its load is over. k6 has no limit of its own for them, and its record is written first. */
const flushMs = 5000;

/**
 * Runs k6 until it has ended, and returns the outcomes of its phases. Throws RoundFailure, and Interrupted after a signal.
 * @param peerDied settles when a server ends by itself, with one line that says how
 * @param watch called when k6 runs; what it returns is called once k6 has ended
 */
export async function runK6(
  start: () => Promise<RunningK6>,
  { loadPlan, output }: Pick<K6Options, 'loadPlan' | 'output'>,
  interrupt: Interrupt,
  peerDied: Promise<string>,
  watch: (k6: RunningK6) => () => void,
): Promise<K6Outcome> {
  interrupt.signal.throwIfAborted();
  const k6 = await start();
  // From here on all that runs is ended below.
  const unguard = k6.pid === undefined ? () => undefined : interrupt.guard(k6.pid);
  const over = new AbortController();
  let unwatch: (() => void) | undefined;
  let outputHung = false;
  try {
    unwatch = watch(k6);
    interrupt.signal.throwIfAborted();
    const failure = await Promise.race([
      k6.exited.then(() => undefined),
      ...(output === null
        ? []
        : [
            endLingering(k6, over.signal, () => {
              outputHung = true;
            }),
          ]),
      peerDied,
      once(interrupt.signal, 'abort', { signal: over.signal }).then(
        () => undefined,
        () => undefined,
      ),
      delay((loadPlan.maxDurationSeconds + patienceSeconds) * 1000, 'k6 did not end in time', {
        signal: over.signal,
      }).catch(() => undefined),
    ]);
    if (failure !== undefined) throw new RoundFailure(failure);
    interrupt.signal.throwIfAborted();
    const outcomes = await k6.results(outputHung).catch((error: Error) => {
      throw error instanceof RoundFailure ? error : new RoundFailure(error.message);
    });
    return { outcomes, outputHung };
  } finally {
    over.abort();
    unwatch?.();
    await k6.stop(k6GraceMs);
    unguard();
  }
}

/** Ends k6 when its load is over and its outputs do not end. Never resolves otherwise. */
async function endLingering(
  k6: RunningK6,
  over: AbortSignal,
  hangs: () => void,
): Promise<undefined> {
  try {
    while (!isLoadOver(k6.files.console)) await delay(500, undefined, { signal: over });
    await delay(flushMs, undefined, { signal: over });
    hangs();
    await k6.stop(0);
  } catch {
    await new Promise(() => {});
  }
}

/** Even where it is awake all the time it leaves the others of its core a tenth. */
const firstNice = -10;

/** Starts k6, pinned. Its plan is kept as load.json, without credentials and ids of processes, which only its environment has; its summary as k6-summary.json. */
export async function startK6(options: K6Options): Promise<RunningK6> {
  const { folder, loadPlan } = options;
  const files = k6Files(folder);
  await writeFile(join(folder, 'load.json'), `${JSON.stringify(forKeeps(loadPlan), null, 2)}\n`);
  const child = await startLogged(
    {
      before: options.before,
      command: options.binary,
      args: k6Arguments(files, options.script, [
        '--summary-export',
        join(folder, 'k6-summary.json'),
        ...(options.output?.out ?? []).flatMap((out) => ['--out', out]),
      ]),
      cpus: options.cpus,
      cwd: folder,
      // Variables of the person's shell would change the load or send the samples elsewhere.
      env: {
        ...withoutVariables(process.env, 'K6_'),
        ...options.output?.env,
        ...ownVariables(loadPlan),
      },
    },
    files.log,
    'w',
  );
  if (options.goesFirst) await weighSession(child.pid, firstNice);

  return {
    pid: child.pid,
    exited: child.exited,
    stop: child.stop,
    files,
    results: async (ended = false) => outcomesOf({ ...(await child.exited), ended }, folder),
  };
}

/** What every k6 is started with; `more` comes last, and holds where it says something else. */
export function k6Arguments(
  files: RunningK6['files'],
  script: string,
  more: readonly string[],
): string[] {
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
    // No REST API: two k6 at a time would want the same port.
    '--address',
    '',
    ...more,
    script,
  ];
}

/**
 * The outcomes of the phases by what a k6 left in its folder. Throws an Error with its error, or last line, when some are missing or it failed.
 * @param exit how it came to its end; `ended`: it was ended here, once its load was over
 */
export async function outcomesOf(
  { code, signal, ended = false }: { code: number | null; signal: string | null; ended?: boolean },
  folder: string,
): Promise<PhaseOutcome[]> {
  const files = k6Files(folder);
  const { phases, over } = readPhases(files.console);
  if ((code === 0 || ended) && over) return phases;
  // Its record, its results and its complaint about them are missing then.
  if (await isFull(folder)) throw new Error(`the file system of ${folder} is full`);
  const how = signal === null ? `code ${code}` : `signal ${signal}`;
  const lines = await lastLines(files.log);
  // A phase that fails does not fail k6, which sums up behind its error.
  const error = lines.find((line) => scriptError.test(line));
  throw new Error(
    `k6 ended with ${how}: ${error?.replace(/^GoError: /, '') ?? causeLine(lines) ?? 'it said nothing'}`,
  );
}

/** Without credentials, and without ids of processes: when it is run again by hand, others may have them. */
export function forKeeps(plan: LoadPlan): LoadPlan {
  const shown = ({ cpuOf: _cpuOf, ...side }: SideOptions): SideOptions =>
    side.headers === undefined ? side : { ...side, headers: shownHeaders(side.headers) };
  return {
    ...plan,
    phases: plan.phases.map((phase) => ({ ...phase, sides: phase.sides.map(shown) })),
  };
}

/** The variables that k6 gets from here. */
export function ownVariables(loadPlan: LoadPlan): Record<string, string> {
  const threads = Math.max(
    ...loadPlan.phases.flatMap(({ sides }) => sides.map((side) => side.threads ?? 1)),
  );
  return {
    [loadPlanVariable]: JSON.stringify(loadPlan),
    K6_NO_USAGE_REPORT: 'true',
    K6_AUTO_EXTENSION_RESOLUTION: 'false',
    GOMAXPROCS: String(threads + 2),
  };
}

/**
 * A second's samples: first the time under load, then the responses by class, at last the connections. k6 writes the keys in this
 * order; what does not look like it (half a line on a full disk) is passed over.
 */
const sampleLine =
  /^\{"metric":"loadgen_(seconds|responses|connections)","type":"Point","data":\{.*?"value":([\d.e+-]+)/;

/** A shorter rest of a second has too few responses to say how many there are in one. */
const shortestSeconds = 0.1;

/**
 * Tells of each phase that is over, as soon as the script has printed its outcome, and returns a function that ends this. Where the
 * kernel has no watch to give (inotify's limits) it never does.
 * @param file the script's console output; its folder exists
 */
export function watchConsole(file: string, over: (outcome: PhaseOutcome) => void): () => void {
  let seen = 0;
  const watcher = ifThere(() =>
    watch(path.dirname(file), (_, name) => {
      if (name !== path.basename(file)) return;
      const lines = linesOf(file);
      for (; seen < lines.length; seen++) {
        const line = lines[seen] as string;
        try {
          if (line.startsWith(phaseLinePrefix)) over(outcomeIn(line));
        } catch (error) {
          // Half a line of a full disk: readPhases tells of it.
          if (!(error instanceof SyntaxError)) throw error;
        }
      }
    }),
  );
  watcher?.on('error', () => watcher.close());
  return () => watcher?.close();
}

function outcomeIn(line: string): PhaseOutcome {
  return JSON.parse(line.slice(phaseLinePrefix.length)) as PhaseOutcome;
}

/** Follows a record that k6 is writing. */
export class RecordTail {
  readonly #file: string;
  #offset = 0;
  #rest = '';
  #buffer = Buffer.alloc(64 * 1024);
  /** Of the second whose samples are being read. */
  #seconds = 0;
  #responses = 0;
  #rps: number | null = null;

  constructor(file: string) {
    this.#file = file;
  }

  /** Responses per second under load, by the newest whole second's samples; null before the first. */
  responsesPerSecond(): number | null {
    for (const line of this.#newLines()) {
      const [, metric, value] = sampleLine.exec(line) ?? [];
      if (metric === 'seconds') [this.#seconds, this.#responses] = [Number(value), 0];
      else if (metric === 'responses') this.#responses += Number(value);
      else if (metric === 'connections' && this.#seconds >= shortestSeconds)
        this.#rps = this.#responses / this.#seconds;
    }
    return this.#rps;
  }

  #newLines(): string[] {
    const descriptor = ifThere(() => openSync(this.#file, 'r'));
    if (descriptor === undefined) return []; // k6 has not made it yet.
    try {
      for (;;) {
        const length = readSync(descriptor, this.#buffer, 0, this.#buffer.length, this.#offset);
        if (length === 0) break;
        this.#offset += length;
        this.#rest += this.#buffer.toString('latin1', 0, length);
      }
    } finally {
      closeSync(descriptor);
    }
    const lines = this.#rest.split('\n');
    this.#rest = lines.pop() ?? '';
    return lines;
  }
}

/** The outcomes of the phases, in order, from the script's console output, and whether they are all. None when the file is not there. */
export function readPhases(file: string): { phases: PhaseOutcome[]; over: boolean } {
  const lines = linesOf(file);
  return {
    phases: lines.filter((line) => line.startsWith(phaseLinePrefix)).map(outcomeIn),
    over: lines.includes(loadOverLine),
  };
}

/** Whether the script has told the results of all phases. */
export function isLoadOver(file: string): boolean {
  return linesOf(file).includes(loadOverLine);
}

/** The last one is half a line, or none. */
function linesOf(file: string): string[] {
  return textOf(file).split('\n').slice(0, -1);
}
