// Flags that hold for all sides of a comparison, or for one: `--port 3000`, `--port new=3000`.
import { UserError } from '../errors.ts';
import { unknownWord } from '../nearest.ts';

/** What was given for sides, by their names. */
export interface OfSides {
  /** What was given for this side, or else for all. */
  of(name: string): string | undefined;
}

/**
 * @param values as the flag was given, in order
 * @param names of the sides
 * @param only those that the flag can be for, and what they are
 * @throws UserError (exit code 2) for a side that there is not or that it cannot be for, and for two values that are for the same
 */
export function ofSides(flag: string, values: readonly string[], names: readonly string[], only = { what: 'a side', names }): OfSides {
  const given = new Map<string | undefined, string>();
  for (const value of values) {
    const [, name, rest = value] = /^([a-z0-9][a-z0-9-]*)=(.*)$/s.exec(value) ?? [];
    if (name !== undefined && !names.includes(name)) throw unknownWord('side', name, names);
    if (only.names.length === 0) throw new UserError(`${flag} is for ${only.what}, and no side is one`, 2);
    if (name !== undefined && !only.names.includes(name)) throw new UserError(`${flag} is for ${only.what}, and ${name} is none`, 2);
    if (given.has(name)) throw new UserError(`${flag} is given twice for ${name ?? 'all sides'}`, 2);
    if (rest === '') throw new UserError(`${flag} ${value}: there is nothing behind ${name}=`, 2);
    given.set(name, rest);
  }
  return { of: (name) => given.get(name) ?? given.get(undefined) };
}
