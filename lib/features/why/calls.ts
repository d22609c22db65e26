// System calls of a server's processes, for whoever counts them.
import { join } from 'node:path';
import { UserError } from '../../errors.ts';
import { textOf } from '../../files.ts';
import type { CallCounter } from '../../runner/examine.ts';
import { thisMachine } from '../../setup/machine.ts';
import { ensureTools } from '../../setup/tools.ts';
import { countsIn, namesOfCalls } from './perf-output.ts';
import { counterArgs, perfObserver } from './perf.ts';

/** @throws UserError if perf is missing, or may not count */
export async function callCounter(signal: AbortSignal): Promise<CallCounter> {
  if (process.getuid?.() !== 0) throw new UserError('perf needs root');
  const { perf } = await ensureTools(['perf'], thisMachine(), signal);
  const known = await namesOfCalls(perf, signal);
  return (context, server, named) => {
    const calls = named.filter((name) => known.has(name));
    const file = join(context.folder, 'calls');
    return {
      observer: perfObserver(context, server, perf, counterArgs(calls), file),
      read: (requests) => countsIn(textOf(file), requests),
    };
  };
}
