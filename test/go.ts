// Go in the engine's module.
import { run, type Finished, type ProcessOptions } from '../lib/process.ts';
import { findGo, goEnvironment, quickFlags } from '../lib/setup/k6.ts';
import { thisMachine } from '../lib/setup/machine.ts';
import { givingWay } from './fixtures/giving-way.ts';

/** The flags of the k6 build, so that linters and tests share what it has compiled: all of k6. */
const GOFLAGS = quickFlags.map((flag) => `'${flag}'`).join(' ');

/** Options to compile or lint: with GOGC of the k6 build, which tests that measure memory run without. */
export const quickly = { env: { GOGC: '400' }, ...givingWay };

/** The packages that do not import k6. Linters would read all of k6 for the others, which takes minutes. */
export const withoutK6 = ['./engine', './link', './internal/...', './cmd/delaylink'];

/**
 * Runs Go to its end.
 * @param options `env`: variables beside Go's
 */
export async function ranGo(
  args: readonly string[],
  { env, ...others }: Pick<ProcessOptions, 'env' | 'started'> = {},
): Promise<Finished> {
  const machine = thisMachine();
  const { binary } = await findGo(machine);
  return run({
    command: binary,
    args,
    cwd: machine.k6Sources,
    env: { ...goEnvironment(machine.env), GOFLAGS, ...env },
    ...others,
  });
}

/** Runs Go. Throws what it printed if it fails. Takes what `ranGo` takes. */
export async function runGo(...given: Parameters<typeof ranGo>): Promise<void> {
  const { code, stdout, stderr } = await ranGo(...given);
  if (code !== 0) throw new Error(stdout + stderr);
}
