// The flags of `scenario`: those of every run, and its own.
import { UserError } from '../errors.ts';
import { present } from '../present.ts';
import { readRunOptions, runFlags, type RunOptions } from './run-options.ts';
import { readWords, type Flag } from './words.ts';

export const scenarioFlags = {
  ...runFlags,
  'variants': { value: 'a,b', help: 'only these variants' },
  'exact': { help: 'threads, workers, times and counts as published, not fitted to this machine' },
} as const satisfies Record<string, Flag>;

export interface ScenarioOptions extends RunOptions {
  /** Absent: list the scenarios. */
  name?: string;
  variants?: string[];
  exact: boolean;
}

/** @throws UserError (exit code 2) for words that are wrong or do not go together */
export function readScenarioOptions(args: readonly string[]): ScenarioOptions {
  const words = readWords(args, scenarioFlags);
  const { positionals, flags } = words;
  const [name, extra] = positionals;
  if (extra !== undefined) throw new UserError(`one scenario at a time: "${extra}" is one word too many`, 2);
  return {
    ...readRunOptions(words),
    ...present({ name, variants: flags.get('variants')?.split(',') }),
    exact: flags.has('exact'),
  };
}
