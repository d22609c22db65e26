// Finds the programs that bakeoff drives, or gets them: environment variable, PATH, the system's packages where that is allowed,
// and for k6 a build from source.
import { UserError } from '../errors.ts';
import { aptInstall } from './apt.ts';
import { lookForK6 } from './k6.ts';
import { find, isExecutableFile, thisMachine, type Machine } from './machine.ts';
import { howToInstall, type PackagedTool } from './packages.ts';
import { fromCallersFolder } from './paths.ts';

export type ToolName = 'k6' | PackagedTool;

/** The variable in which a person names a tool's binary. */
export function toolVariable(name: ToolName): string {
  return `${name.toUpperCase()}_BIN`;
}

/**
 * Finds each tool or gets it, independent ones side by side, with progress on stderr; silent when all are there.
 * Returns absolute paths. Throws UserError with one line for each tool that cannot be had; then nothing has been
 * installed unless an installation itself failed. When `signal` fires it rejects with the signal's reason, after what it
 * has begun has ended in order.
 */
export async function ensureTools<N extends ToolName>(
  names: readonly N[],
  machine: Machine = thisMachine(),
  signal: AbortSignal = new AbortController().signal,
): Promise<Record<N, string>> {
  const outcomes = await Promise.allSettled(names.map((name) => look(name, machine)));
  const looked = valuesOrThrow(outcomes);
  signal.throwIfAborted();

  const toInstall = looked.flatMap(({ install }) => install ?? []);
  const installed = toInstall.length === 0 ? [] : [installPackaged(toInstall, machine, signal)];
  const built = looked.flatMap(({ build }) =>
    build === undefined
      ? []
      : machine.progress.step('k6', 'building from xk6-loadgen/, once (a minute or two)', () =>
          build(signal),
        ),
  );
  valuesOrThrow(await Promise.allSettled([...installed, ...built]));

  const paths: Partial<Record<N, string>> = {};
  for (const [index, name] of names.entries()) {
    const path = looked[index]?.path ?? (await find(name, machine));
    if (path === undefined)
      throw new UserError(
        `${name} was installed but is not on PATH: set ${toolVariable(name)} to its path`,
      );
    paths[name] = path;
  }
  return paths as Record<N, string>;
}

/** A tool that is there has a path only. */
type Looked = Partial<Awaited<ReturnType<typeof lookForK6>>> & { install?: PackagedTool };

async function look(name: ToolName, machine: Machine): Promise<Looked> {
  const variable = toolVariable(name);
  const named = machine.env[variable];
  if (named !== undefined && named !== '') {
    const path = fromCallersFolder(named);
    if (await isExecutableFile(path)) return { path };
    throw new UserError(
      `${variable}=${named} is not an executable file: correct it, or unset it to let bakeoff find ${name}`,
    );
  }
  if (name === 'k6') return lookForK6(machine);
  const path = await find(name, machine);
  if (path !== undefined) return { path };
  if (machine.mayInstall && machine.isRoot && (await find('apt-get', machine)) !== undefined)
    return { install: name };
  throw new UserError(
    `${name} is missing: ${await howToInstall(name, machine)}, or set ${variable} to its path`,
  );
}

async function installPackaged(
  tools: readonly PackagedTool[],
  machine: Machine,
  signal: AbortSignal,
): Promise<void> {
  await machine.progress.step(tools.join(', '), 'installing with apt-get', async (step) => {
    const sayInterrupted = (): void =>
      step.doing('interrupted, apt-get finishes what it has begun');
    signal.addEventListener('abort', sayInterrupted);
    try {
      await aptInstall(
        async () => {
          const found = await Promise.all(tools.map((tool) => find(tool, machine)));
          return tools.filter((_, index) => found[index] === undefined);
        },
        machine,
        signal,
      );
    } finally {
      signal.removeEventListener('abort', sayInterrupted);
    }
  });
}

/** All values, or one UserError with the messages of all failures. Any other failure is a defect and is thrown as it is. */
function valuesOrThrow<T>(outcomes: readonly PromiseSettledResult<T>[]): T[] {
  const reasons: unknown[] = outcomes.flatMap((outcome) =>
    outcome.status === 'rejected' ? [outcome.reason] : [],
  );
  for (const reason of reasons) if (!(reason instanceof UserError)) throw reason;
  if (reasons.length > 0)
    throw new UserError((reasons as UserError[]).map((reason) => reason.message).join('\n'));
  return outcomes.map((outcome) => (outcome as PromiseFulfilledResult<T>).value);
}
