// Go's own fuzzing, for some seconds. Go keeps an input that fails as a test of its target.
import { inTemporaryFolder } from '../lib/folders.ts';
import { run, type RunOptions } from '../lib/setup/run.ts';
import type { Outcome } from './counts.ts';

/** A Go package, and how Go is run on it. */
export interface GoPackage extends Pick<RunOptions, 'command' | 'env' | 'signal'> {
  /** The module's folder, and the package's own in it, as in ./engine. */
  module: string;
  folder: string;
  /** Flags of every build. */
  flags: readonly string[];
}

/** Returns the names of a package's fuzz targets, and what Go printed. Rejects with the signal's reason. */
export async function fuzzTargets(
  goPackage: GoPackage,
): Promise<{ targets: string[]; output: string }> {
  const { stdout, stderr } = await test(goPackage, ['-list', '^Fuzz']);
  return {
    targets: stdout.split('\n').filter((line) => /^Fuzz\w*$/.test(line)),
    output: stdout + stderr,
  };
}

/** Fuzzes one target. If it fails, `output` names the file in testdata that Go wrote. Rejects with the signal's reason. */
export async function fuzz(
  target: string,
  seconds: number,
  goPackage: GoPackage,
): Promise<Outcome> {
  const { code, stdout, stderr } = await test(goPackage, [
    '-run',
    '^$',
    '-fuzz',
    `^${target}$`,
    '-fuzztime',
    `${seconds}s`,
    '-fuzzminimizetime',
    '2s',
  ]);
  const output = (stdout + stderr).replace(/^fuzz: elapsed: .*\n/gm, '');
  const passed = code === 0 || endedLate(output);
  return { passed: passed ? 1 : 0, failed: passed ? 0 : 1, output };
}

/** Before 1.27 Go reports the end of -fuzztime as a failure if a worker is late to hear of it (golang/go#75804). It found nothing then. */
function endedLate(output: string): boolean {
  return (
    /^--- FAIL: \S+ \([\d.]+s\)\n +context deadline exceeded\n(?:FAIL|exit status)/m.test(output) &&
    !output.includes('Failing input written to')
  );
}

async function test(
  { module, folder, flags, env, ...options }: GoPackage,
  args: readonly string[],
): ReturnType<typeof run> {
  // Go leaves 100 MB for each worker in TMPDIR if it is ended.
  return inTemporaryFolder('bakeoff-fuzz-', (temporary) =>
    run({
      ...options,
      env: { ...(env ?? process.env), TMPDIR: temporary },
      cwd: module,
      args: ['test', ...flags, ...args, folder],
    }),
  );
}
