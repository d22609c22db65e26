// Comparisons while a compiler is at work on both sides' cores.
import { mkdtemp } from 'node:fs/promises';
import { join } from 'node:path';
import { UserError } from '../../lib/errors.ts';
import { findScenario } from '../../lib/scenario/catalogue.ts';
import { findGo, goEnvironment } from '../../lib/setup/k6.ts';
import { thisMachine } from '../../lib/setup/machine.ts';
import { lastLine, run } from '../../lib/setup/run.ts';
import { noted, runOf, runText, wholeRun, type Lab } from './lab.ts';
import type { ProofData } from './results.ts';

/** Runs of a config against itself and of open_file_cache, in turn. */
export async function measureDisturbed(
  lab: Lab,
  data: ProofData['disturbed'],
  save: () => Promise<void>,
): Promise<void> {
  const scenarios = [
    ['control', await findScenario('aa')],
    ['effect', await findScenario('nginx-open-file-cache')],
  ] as const;
  const compiler = await startCompiler(lab, () => {
    data.builds++;
  });
  try {
    for (let number = 1; number <= lab.repeats; number++) {
      for (const [kind, scenario] of scenarios) {
        const measured = await noted(lab, async () => runOf(await wholeRun(lab, scenario)));
        compiler.throwIfFailed();
        if (measured === undefined) continue;
        data[kind].push(measured);
        lab.say(`${scenario.name}, run ${number} of ${lab.repeats}: ${runText(measured)}`);
        await save();
      }
    }
  } finally {
    await compiler.stop();
  }
}

interface Compiler {
  /** @throws UserError when it has ended by itself: what was measured since was not disturbed */
  throwIfFailed(): void;
  stop(): Promise<void>;
}

/**
 * Compiles the load engine with all that it is made of, again and again from the start, on the cores of both sides.
 * @throws UserError when there is no Go
 */
async function startCompiler(
  { cores, scratch, interrupt }: Lab,
  built: () => void,
): Promise<Compiler> {
  const machine = thisMachine();
  const go = await findGo(machine);
  const folder = await mkdtemp(join(scratch, 'compiler-'));
  const ended = new AbortController();
  const signal = AbortSignal.any([ended.signal, interrupt.signal]);
  let failure: unknown;
  const compiling = (async () => {
    for (;;) {
      const { code, stderr } = await run({
        command: go.binary,
        args: [
          'build',
          '-a',
          '-trimpath',
          '-buildvcs=false',
          '-o',
          join(folder, 'built'),
          './cmd/k6',
        ],
        cwd: machine.k6Sources,
        env: { ...goEnvironment(machine.env), GOCACHE: join(folder, 'cache'), GOTMPDIR: folder },
        cpus: [...cores.serverCpus, ...cores.generatorCpus],
        signal,
      });
      if (code !== 0)
        throw new UserError(`the compiler that is to disturb has failed: ${lastLine(stderr)}`);
      built();
    }
  })().catch((error: unknown) => {
    if (!signal.aborted) failure = error;
  });
  return {
    throwIfFailed() {
      if (failure !== undefined) throw failure;
    },
    async stop() {
      ended.abort();
      await compiling;
    },
  };
}
