// Runs the `scenario` command and similar commands like a user: in a separate process.
import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, onTestFinished, vi } from 'vitest';
import type { Result } from '../lib/result/result.ts';
import { checkResult } from '../lib/result/result-file.ts';
import { projectRoot } from '../lib/setup/paths.ts';
import { ensureTools, toolVariable, type ToolName } from '../lib/setup/tools.ts';
import { newFolder } from './fixtures/new-folder.ts';
import { launch } from './fixtures/node-process.ts';
import { descendants, type Seen } from './fixtures/processes.ts';

/** Temporary files, locks, database and tools for the runs of a test file. */
export interface Home {
  folder: string;
  env: Record<string, string>;
  remove(): void;
}

export async function makeHome(tools: readonly ToolName[]): Promise<Home> {
  const binaries = Object.entries(await ensureTools(tools)) as [ToolName, string][];
  const folder = mkdtempSync(join(tmpdir(), 'bakeoff-home-'));
  // Servers run as another user and copy their pages below TMPDIR.
  chmodSync(folder, 0o755);
  const env = {
    TMPDIR: folder,
    BAKEOFF_HOME: folder,
    ...Object.fromEntries(binaries.map(([name, binary]) => [toolVariable(name), binary])),
  };
  return { folder, env, remove: () => rmSync(folder, { recursive: true, force: true }) };
}

/** Creates a home for a test file; call it at the top. It is filled in before the first test. */
export function useHome(tools: readonly ToolName[]): Home {
  const home: Home = { folder: '', env: {}, remove: () => undefined };
  beforeAll(async () => {
    Object.assign(home, await makeHome(tools));
  });
  afterAll(() => home.remove());
  return home;
}

/** The path of a results folder that does not exist yet; removed after the test. */
export function newOut(): string {
  const parent = newFolder();
  // Servers that root starts run as another user.
  chmodSync(parent, 0o755);
  return join(parent, 'results');
}

export interface ScenarioRun {
  pid: number;
  stdout(): string;
  stderr(): string;
  kill(signal: NodeJS.Signals): void;
  /** Exit code or signal name. */
  ended: Promise<number | NodeJS.Signals>;
  hasEnded(): boolean;
}

type Arguments = readonly string[] | string;

/** Starts a run, which is ended after the test. @param args a list, or a string separated by spaces */
export const startScenario = (args: Arguments, env: Home['env']): ScenarioRun =>
  startCommand(['scenario', ...wordsOf(args)], env);

const wordsOf = (args: Arguments) => (typeof args === 'string' ? args.split(' ') : args);

/** Starts any command like startScenario. @param before a command prefix that executes the command */
export function startCommand(
  args: Arguments,
  env: Readonly<Home['env']>,
  before: readonly string[] = [],
): ScenarioRun {
  const command = [...before, process.execPath, 'bin/bakeoff.mjs', ...wordsOf(args)];
  const {
    process: child,
    stdout,
    stderr,
    ...started
  } = launch(command, { ...process.env, ...env });
  let over = false;
  const ended = started.ended.then(([code, signal]) => {
    over = true;
    return code ?? (signal as NodeJS.Signals);
  });
  onTestFinished(async () => {
    if (!over) child.kill('SIGTERM');
    await ended;
  });
  return {
    pid: child.pid as number,
    stdout,
    stderr,
    kill: (signal) => child.kill(signal),
    ended,
    hasEnded: () => over,
  };
}

export function runFolder(out: string): string {
  const [run, ...others] = readdirSync(out).filter((name) => !name.startsWith('.'));
  if (run === undefined || others.length > 0)
    throw new Error(`one run expected in ${out}, there are ${1 + others.length}`);
  return join(out, run);
}

export function readResult(out: string): Result {
  const file = join(runFolder(out), 'result.json');
  return checkResult(readFileSync(file, 'utf8'), file);
}

/** Waits for the successful end of a run and reads its result. */
export async function wholeResult(run: ScenarioRun, out: string): Promise<Result> {
  expect(await run.ended, run.stderr()).toBe(0);
  return readResult(out);
}

/** Writes a scenario file next to the results and returns its path. `properties` are TypeScript. */
export function writeScenario(out: string, name: string, properties: string): string {
  const file = join(out, '..', `${name}.mts`);
  const index = JSON.stringify(join(projectRoot, 'lib/scenario/index.ts'));
  writeFileSync(
    file,
    `import { ab, defineScenario, nginx, wrk } from ${index};
    export default defineScenario({
      name: '${name}', title: 'a title', knob: 'a knob', page: { docroot: 'nginx', path: '/', bodyBytes: 612 },
      ${properties}
    });`,
  );
  return file;
}

export function keptRounds({ variants }: Result): number[] {
  return variants.find(({ rounds }) => rounds.length > 0)?.rounds.map(({ round }) => round) ?? [];
}

/** Waits until `shows` no longer throws, and returns the run's processes at that time. Throws if the run ends earlier. */
export async function startedOf(
  run: ScenarioRun,
  shows: (commands: readonly string[]) => void,
  timeout = 200_000,
): Promise<Seen[]> {
  let missing: unknown;
  const find = () => {
    if (run.hasEnded()) throw new Error(`the run ended: ${run.stderr()}`);
    const processes = descendants(run.pid);
    try {
      shows(processes.map(({ command }) => command));
      return processes;
    } catch (error) {
      missing = error;
      return undefined;
    }
  };
  const found = await vi.waitUntil(find, { timeout, interval: 20 }).catch((error) => {
    throw run.hasEnded() ? error : missing;
  });
  return found as Seen[];
}

interface Try {
  round: number;
  master: number;
}

/**
 * Waits until k6 runs in the round at `place`, in any try, and the file contains a text. Throws if the run ends earlier. @param
 * after the number of an earlier try
 * @returns the try's number and the process id of nginx's master
 */
export async function underLoad(
  run: ScenarioRun,
  out: string,
  place: number,
  { after = 0, file = 'record.ndjson', text = '' } = {},
): Promise<Try> {
  const find = (): Try | undefined => {
    const folder = runFolder(out);
    const kept = keptRounds(readResult(out));
    const round = Math.max(
      ...readdirSync(folder)
        .flatMap((name) => /^round-(\d+)$/.exec(name)?.[1] ?? [])
        .map(Number),
    );
    if (
      kept.length !== place - 1 ||
      round <= Math.max(after, ...kept) ||
      !readFileSync(join(folder, `round-${round}`, 'k6-1', file), 'utf8').includes(text)
    )
      return undefined;
    // Parents are listed before children.
    const master = descendants(run.pid).find(({ command }) => command === 'nginx');
    return master === undefined ? undefined : { round, master: master.pid };
  };
  return (await vi.waitUntil(
    () => {
      if (run.hasEnded()) throw new Error(`the run ended: ${run.stderr()}`);
      try {
        return find();
      } catch {
        // Some files do not exist yet.
        return undefined;
      }
    },
    { timeout: 60_000, interval: 20 },
  )) as Try;
}

/** Calls `act` in the first round and in each repetition, until the run ends. */
export async function inEachTry(
  run: ScenarioRun,
  out: string,
  when: { file?: string; text?: string },
  act: (current: Try) => void,
): Promise<void> {
  for (let after = 0; ;) {
    const current = await underLoad(run, out, 1, { ...when, after }).catch((error: unknown) => {
      if (!run.hasEnded() || after === 0) throw error;
      return undefined;
    });
    if (current === undefined) return;
    act(current);
    after = current.round;
  }
}

export const loadBegins = { file: 'phases.log', text: 'bakeoff-phase-begins' };
