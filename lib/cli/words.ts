// Reads a command's words strictly: what is not known is refused, with the nearest right one offered.
import { parseArgs } from 'node:util';
import { UserError } from '../errors.ts';
import { unknownWord } from '../nearest.ts';
import { wrapLines } from '../report/table.ts';

export interface Flag {
  /** How the value is called in the help, e.g. "N"; absent for a switch. */
  value?: string;
  /** It may be given more than once. */
  repeated?: true;
  help: string;
}

/** What any command takes; `main` takes it out of the words before the command reads them. */
export const noInstall = {
  'no-install': { help: 'install no packages, but say which are missing (as BAKEOFF_INSTALL=no)' },
} as const satisfies Record<string, Flag>;

export interface Words {
  positionals: string[];
  /** Values by flag name without dashes; '' for a switch that was given. */
  flags: ReadonlyMap<string, string>;
  /** All values of those that may be repeated, in their order. */
  lists: ReadonlyMap<string, readonly string[]>;
  /** What `reader` makes of a flag, named with its dashes, and its value; undefined where it was not given. */
  read<T>(flag: string, reader: (flag: string, text: string) => T): T | undefined;
}

/** @throws UserError (exit code 2) for a flag that is unknown, given twice, lacks its value, or has one and takes none */
export function readWords(args: readonly string[], known: Readonly<Record<string, Flag>>): Words {
  const options = Object.fromEntries(
    Object.entries(known).map(([name, flag]) => [
      name,
      {
        type: flag.value === undefined ? 'boolean' : 'string',
        ...(name === 'help' ? { short: 'h' } : {}),
      } as const,
    ]),
  );
  const { tokens } = parseArgs({
    args: [...args],
    options,
    strict: false,
    allowPositionals: true,
    tokens: true,
  });
  const positionals: string[] = [];
  const flags = new Map<string, string>();
  const lists = new Map<string, string[]>();
  for (const token of tokens) {
    if (token.kind === 'positional') positionals.push(token.value);
    if (token.kind !== 'option') continue;
    const flag = Object.hasOwn(known, token.name) ? known[token.name] : undefined;
    if (flag === undefined)
      throw unknownWord(
        'flag',
        token.rawName,
        Object.keys(known).map((name) => `--${name}`),
        '--help lists them',
      );
    if (flags.has(token.name) && flag.repeated === undefined)
      throw new UserError(
        `${token.rawName} is given twice${Object.hasOwn(known, `${token.name}s`) ? `: several go into one --${token.name}s` : ''}`,
        2,
      );
    if (flag.value === undefined && token.value !== undefined)
      throw new UserError(`${token.rawName} takes no value`, 2);
    // A forgotten value would swallow the next flag.
    if (
      flag.value !== undefined &&
      (token.value === undefined ||
        token.value === '' ||
        (!token.inlineValue && token.value.startsWith('--')))
    ) {
      throw new UserError(`${token.rawName} needs a value: ${token.rawName} ${flag.value}`, 2);
    }
    flags.set(token.name, token.value ?? '');
    if (flag.repeated)
      lists.set(token.name, [...(lists.get(token.name) ?? []), token.value as string]);
  }
  const read: Words['read'] = (flag, reader) =>
    flags.has(flag) ? reader(`--${flag}`, flags.get(flag) as string) : undefined;
  return { positionals, flags, lists, read };
}

/** Reads a word; what is wrong with it gets `before` in front and the exit code of wrong words (2). Throws UserError. */
export function asWords<T>(read: () => T, before: string): T {
  try {
    return read();
  } catch (error) {
    throw error instanceof UserError ? new UserError(before + error.message, 2) : error;
  }
}

/** Prints a help, with its flags at the end. In a terminal, what is too long for a line goes on below where its text begins, which is behind a wider gap. */
export function printHelp(lines: readonly string[], flags?: Readonly<Record<string, Flag>>): void {
  const textAt = (line: string): number => /^ *\S.*? {2,}(?=\S)|^ */.exec(line)?.[0].length ?? 0;
  console.log(
    wrapLines(
      [...lines, ...(flags === undefined ? [] : ['', ...flagLines(flags)])],
      process.stdout.columns || Infinity,
      textAt,
    ).join('\n'),
  );
}

/** One line per flag. */
export function flagLines(known: Readonly<Record<string, Flag>>): string[] {
  const heads = Object.entries(known).map(
    ([name, { value }]) => `  --${name}${value === undefined ? '' : ` ${value}`}`,
  );
  const width = Math.max(...heads.map((head) => head.length));
  return Object.values(known).map(
    ({ help }, index) => `${(heads[index] as string).padEnd(width)}  ${help}`,
  );
}

/** A text of that form; `wanted` says which that is. */
export function ofForm(flag: string, text: string, form: RegExp, wanted: string): string {
  if (form.test(text)) return text;
  throw new UserError(`${flag} ${text}: ${wanted}`, 2);
}

/** A whole number from 1 to `most`. */
export function wholeNumber(flag: string, text: string, most: number): number {
  const number = Number(text);
  if (/^\d+$/.test(text) && number >= 1 && number <= most) return number;
  throw new UserError(`${flag} ${text}: give a whole number from 1 to ${most}`, 2);
}

const secondsPerUnit: Readonly<Record<string, number>> = { ms: 0.001, s: 1, m: 60, h: 3600 };

/** Seconds of 500ms, 10, 10s, 2m or 1h; at least `least`. */
export function seconds(flag: string, text: string, least: number): number {
  const [, digits, unit = 's'] = /^(\d+(?:\.\d+)?)(ms|s|m|h)?$/.exec(text) ?? [];
  const value = Number(digits) * (secondsPerUnit[unit] as number);
  if (value >= least && value <= 86_400) return value;
  throw new UserError(`${flag} ${text}: give a time from ${least} s to 24 h, such as 10s or 2m`, 2);
}
