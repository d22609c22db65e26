// Runs the `scenario` command as a person does, in a process of its own, and looks at what it starts and leaves.
import { spawn } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Result } from '../lib/runner/result.ts';
import { projectRoot } from '../lib/setup/paths.ts';

export interface ScenarioRun {
  pid: number;
  stdout(): string;
  stderr(): string;
  kill(signal: NodeJS.Signals): void;
  /** Exit code, or the signal's name. */
  ended: Promise<number | NodeJS.Signals>;
  hasEnded(): boolean;
}

export function startScenario(args: readonly string[], env: Readonly<Record<string, string>>): ScenarioRun {
  const child = spawn(process.execPath, ['bin/bakeoff.mjs', 'scenario', ...args], {
    cwd: projectRoot, env: { ...process.env, ...env }, stdio: ['ignore', 'pipe', 'pipe'],
  });
  let stdout = '';
  let stderr = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => { stdout += text; });
  child.stderr.setEncoding('utf8').on('data', (text: string) => { stderr += text; });
  let over = false;
  const ended = new Promise<number | NodeJS.Signals>((resolve) => {
    child.once('close', (code, signal) => {
      over = true;
      resolve(code ?? (signal as NodeJS.Signals));
    });
  });
  return { pid: child.pid as number, stdout: () => stdout, stderr: () => stderr, kill: (signal) => child.kill(signal), ended, hasEnded: () => over };
}

/** A process is named by its id and its start, since ids are used again. */
export interface Seen { pid: number; startedAt: string; command: string }

/** All that descends from a process now. */
export function descendants(root: number): Seen[] {
  const processes = readdirSync('/proc').filter((name) => /^\d+$/.test(name)).flatMap((name) => look(Number(name)) ?? []);
  const found: Seen[] = [];
  let parents = [root];
  while (parents.length > 0) {
    const children = processes.filter(({ parent }) => parents.includes(parent));
    found.push(...children);
    parents = children.map(({ pid }) => pid);
  }
  return found;
}

/** Those of them that still run. */
export function stillRunning(processes: readonly Seen[]): Seen[] {
  return processes.filter(({ pid, startedAt }) => {
    const now = look(pid);
    return now !== undefined && now.startedAt === startedAt && now.state !== 'Z';
  });
}

function look(pid: number): (Seen & { parent: number; state: string }) | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    const command = stat.slice(stat.indexOf('(') + 1, stat.lastIndexOf(')'));
    return { pid, command, state: fields[0] as string, parent: Number(fields[1]), startedAt: fields[19] as string };
  } catch {
    return undefined;
  }
}

/** The only run's folder in `out`. */
export function runFolder(out: string): string {
  const [run, ...others] = readdirSync(out);
  if (run === undefined || others.length > 0) throw new Error(`one run expected in ${out}, there are ${1 + others.length}`);
  return join(out, run);
}

export function readResult(out: string): Result {
  return JSON.parse(readFileSync(join(runFolder(out), 'result.json'), 'utf8')) as Result;
}
