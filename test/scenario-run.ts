// Runs the `scenario` command as a person does, in a process of its own.
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

/** The only run's folder in `out`. */
export function runFolder(out: string): string {
  const [run, ...others] = readdirSync(out);
  if (run === undefined || others.length > 0) throw new Error(`one run expected in ${out}, there are ${1 + others.length}`);
  return join(out, run);
}

export function readResult(out: string): Result {
  return JSON.parse(readFileSync(join(runFolder(out), 'result.json'), 'utf8')) as Result;
}
