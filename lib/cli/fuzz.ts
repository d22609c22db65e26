// Go's own fuzzing, for a few seconds: inputs that nobody thought of. One that fails is kept by Go as a test of its target.
import { join } from 'node:path';
import { inTemporaryFolder } from '../folders.ts';
import { run, type RunOptions } from '../setup/run.ts';
import type { Outcome } from './test-counts.ts';

/** A Go package, and how Go is run on it. */
export interface GoPackage extends Pick<RunOptions, 'command' | 'env' | 'signal'> {
  /** The folder of its module, and the package's own in it, as in ./engine. */
  module: string;
  folder: string;
  /** Of every build. */
  flags: readonly string[];
}

/** All targets together. */
const secondsForAll = 20;
const mostSecondsPerTarget = 5;

/** How long each of so many targets is fuzzed. */
export function fuzzSeconds(targets: number): number {
  return Math.min(mostSecondsPerTarget, secondsForAll / targets);
}

/** The names of a package's fuzz targets; without any, or when it does not compile, what Go printed. Rejects with the signal's reason. */
export async function fuzzTargets(goPackage: GoPackage): Promise<{ targets: string[]; output: string }> {
  const { stdout, stderr } = await test(goPackage, ['-list', '^Fuzz']);
  return { targets: stdout.split('\n').filter((line) => /^Fuzz\w*$/.test(line)), output: stdout + stderr };
}

/**
 * Fuzzes one target. It passes or fails, and `output` then names the file in testdata that Go wrote: `go test` tries it from
 * now on, until it is removed. Rejects with the signal's reason.
 */
export async function fuzz(target: string, seconds: number, goPackage: GoPackage): Promise<Outcome> {
  const { code, stdout, stderr } = await test(goPackage, ['-run', '^$', '-fuzz', `^${target}$`, '-fuzztime', `${seconds.toFixed(1)}s`, '-fuzzminimizetime', '2s']);
  const output = stdout + stderr;
  if (code === 0 || endedLate(output)) return { passed: 1, failed: 0, output };
  const written = writtenFile(output);
  const kept = written === undefined ? '' : `the input is kept in ${join(goPackage.module, goPackage.folder, written)}\n`;
  return { passed: 0, failed: 1, output: kept + output.replace(/^fuzz: elapsed: .*\n/gm, '') };
}

function writtenFile(output: string): string | undefined {
  return /^ *Failing input written to (\S+)$/m.exec(output)?.[1];
}

/** Before 1.27 Go takes the end of -fuzztime for a failure when a worker is late to hear of it (golang/go#75804). It found nothing then. */
function endedLate(output: string): boolean {
  return /^--- FAIL: \S+ \([\d.]+s\)\n +context deadline exceeded\n(?:FAIL|exit status)/m.test(output) && writtenFile(output) === undefined;
}

async function test({ module, folder, flags, env, ...options }: GoPackage, args: readonly string[]): ReturnType<typeof run> {
  // Go leaves its own there where it is ended: 100 MB for each worker.
  return inTemporaryFolder('bakeoff-fuzz-', (temporary) => (
    run({ ...options, env: { ...env ?? process.env, TMPDIR: temporary }, cwd: module, args: ['test', ...flags, ...args, folder] })
  ));
}
