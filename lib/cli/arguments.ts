// Reads a command's arguments strictly. A wrong one is refused with the nearest right one.
import { parseArgs } from 'node:util';
import { nearest, usageError, unknownWord } from '../errors.ts';
import { keysOf } from '../present.ts';
import { wrapLines } from '../report/table.ts';
import { secondsOf, type Reader } from '../scenario/load/flags.ts';

/** Groups of flags in a help, in their order. */
const groupTitles = {
  request: 'What to request:',
  time: 'How long:',
  verdict: 'Verdict:',
  output: 'Output:',
  machine: 'Servers and machine:',
  help: '',
} as const;

export interface Flag {
  /** Group in the help; by default before the groups. */
  group?: keyof typeof groupTitles;
  /** A help in groups has it under `--help all` only. */
  rare?: true;
  /** The value's name in the help, e.g. "N"; absent for a switch. */
  value?: string;
  /** May be given more than once. */
  repeated?: true;
  help: string;
  /** The flag is refused unless one of these is given. */
  needs?: readonly string[];
  /** The flag is refused if one of these is given. */
  without?: readonly string[];
  /** Checks the value of a feature's flag once all flags are read. Throws UserError (exit code 2). */
  check?: Reader<unknown>;
  /** The flag sets the requests/s of loads. A command takes one such flag. */
  setsRate?: true;
  /** With this flag of a feature loads are made in steps, so flags with `notInSteps` are refused. */
  inSteps?: true;
  /** The flag is refused beside one with `inSteps`. */
  notInSteps?: true;
  /** The flag names the requests. A command takes one such flag. */
  namesRequests?: true;
  /** This flag of a feature is accepted with --k6-script too. */
  inScripts?: true;
}

/** Flags that are gone, and what to use instead. A flag stays here for one release. */
const goneFlags: ReadonlyMap<string, string> = new Map([
  ['generator-host', 'this machine makes the load, or with k8s several of a cluster'],
  ['pace', "a log's requests come by their shares: give a rate in --load"],
]);

/** What other load generators have flags for. */
const partsOfLoad: ReadonlyMap<string, string> = new Map([
  ['c', 'wrk -c 50'],
  ['concurrency', 'wrk -c 50'],
  ['connections', 'wrk -c 50'],
  ['n', 'h2load -n 10000'],
  ['requests', 'h2load -n 10000'],
  ['rate', 'wrk2 -R 1000'],
  ['vus', 'wrk -c 50'],
  ['streams', 'h2load -m 10'],
  ['threads', 'wrk -t 2'],
]);

/** Every command takes it; `main` removes it from the arguments. */
export const noInstall = {
  'no-install': {
    group: 'machine',
    rare: true,
    help: 'install and build nothing, but say what is missing (as BAKEOFF_INSTALL=no)',
  },
} as const satisfies Record<string, Flag>;

export type Arguments = ReturnType<typeof readArguments>;

/**
 * @throws UserError (exit code 2) for a flag that is unknown or given twice, that lacks its value, that has a value and takes none, or
 * that does not go with another
 * @param takesCommands an argument may be a command; its quotes may have been forgotten
 */
export function readArguments(
  args: readonly string[],
  known: Readonly<Record<string, Flag>>,
  takesCommands = false,
) {
  const options = Object.fromEntries(
    Object.entries(known).map(([name, { value }]) => [
      name,
      {
        type: value === undefined ? 'boolean' : 'string',
        ...(name === 'help' ? { short: 'h' } : {}),
      } as const,
    ]),
  );
  const { tokens, positionals } = parseArgs({
    args: [...args],
    options,
    strict: false,
    allowPositionals: true,
    tokens: true,
  });
  const flags = new Map<string, string>();
  const lists = new Map<string, readonly string[]>();
  for (const token of tokens) {
    if (token.kind !== 'option') continue;
    const { name, rawName, value } = token;
    const flag = Object.hasOwn(known, name) ? known[name] : undefined;
    if (flag === undefined) {
      const instead = goneFlags.get(name);
      if (instead !== undefined) throw usageError(`${rawName} is gone: ${instead}`);
      // A flag of one letter may be the program's as well as a load generator's.
      const command = takesCommands ? unquotedCommand(args, tokens, token.index) : undefined;
      const load = command !== undefined && name.length === 1 ? undefined : partsOfLoad.get(name);
      if (load !== undefined && Object.hasOwn(known, 'load'))
        throw usageError(
          `there is no flag "${rawName}": give it in the load, such as --load "${load}"`,
        );
      const all = Object.keys(known).map((flagName) => `--${flagName}`);
      if (command !== undefined && nearest(rawName, all) === undefined)
        throw usageError(`there is no flag "${rawName}": ${asOneSide(`${command} …`)}`);
      throw unknownWord('flag', rawName, all, '--help lists them');
    }
    if (flags.has(name) && flag.repeated === undefined)
      throw usageError(`${rawName} is given twice`);
    if (flag.value === undefined && value !== undefined)
      throw usageError(`${rawName} takes no value`);
    // parseArgs takes the next flag for a forgotten value.
    if (flag.value !== undefined && (!value || (!token.inlineValue && value.startsWith('--'))))
      throw usageError(`${rawName} needs a value: ${rawName} ${flag.value}`);
    flags.set(name, value ?? '');
    if (flag.repeated) lists.set(name, [...(lists.get(name) ?? []), value ?? '']);
  }
  for (const name of flags.keys()) {
    const { needs = [] } = known[name] ?? {};
    if (needs.length > 0 && !needs.some((flag) => flags.has(flag)))
      throw usageError(`--${name} is for --${needs.join(' or --')}: give one, or leave it out`);
    const other = refusedWith(name, known).find((flag) => flag !== name && flags.has(flag));
    if (other !== undefined)
      throw usageError(`--${name} and --${other} do not go together: leave one out`);
  }
  return {
    positionals,
    /** Values by flag name without dashes; '' for a switch. */
    flags,
    /** All values of repeated flags, in their order. */
    lists,
    /** Reads a flag's value; undefined if the flag is not given. */
    read<T>(flag: string, reader: Reader<T>): T | undefined {
      const value = flags.get(flag);
      return value === undefined ? undefined : reader(`--${flag}`, value);
    },
  };
}

/** Says how to give a command whose quotes were forgotten. */
export const asOneSide = (command: string): string =>
  `a command and its arguments are one side, in quotes: '${command}'`;

/** Returns the words from the first argument that can only be a program's name, such as haproxy, to the unknown flag. */
function unquotedCommand(
  args: readonly string[],
  tokens: readonly { kind: string; index: number; value?: string | undefined }[],
  flagAt: number,
): string | undefined {
  const program = tokens.find(
    ({ kind, index, value = '' }) =>
      kind === 'positional' && index < flagAt && /^[\w-]+$/.test(value),
  );
  return program && args.slice(program.index, flagAt + 1).join(' ');
}

/** Returns the flags with which a flag is refused. It may be one of them itself. */
function refusedWith(name: string, known: Readonly<Record<string, Flag>>): string[] {
  const { without = [], namesRequests, setsRate, notInSteps } = known[name] ?? {};
  const refused = [...without];
  if (namesRequests) refused.push(...flagsWith('namesRequests', known));
  if (setsRate) refused.push(...flagsWith('setsRate', known));
  if (notInSteps) refused.push(...flagsWith('inSteps', known));
  return refused;
}

export function flagsWith(
  property: 'namesRequests' | 'setsRate' | 'inSteps',
  known: Readonly<Record<string, Flag>>,
): string[] {
  return Object.keys(known).filter((name) => known[name]?.[property]);
}

/**
 * Returns the only positional argument, or undefined if there is none.
 * @throws UserError (exit code 2) for several
 */
export function onlyArgument([only, extra]: readonly string[], what: string): string | undefined {
  if (extra === undefined) return only;
  throw usageError(`one ${what} at a time: "${extra}" is one word too many`);
}

/** On a terminal, long lines are wrapped and aligned with their text. */
export function printHelp(lines: readonly string[], flags?: Readonly<Record<string, Flag>>): void {
  const textAt = (line: string) => /^ *\S.*? {2,}(?=\S)|^ */.exec(line)?.[0].length ?? 0;
  const all = [...lines, ...(flags === undefined ? [] : ['', ...flagLines(flags)])];
  console.log(wrapLines(all, process.stdout.columns || Infinity, textAt).join('\n'));
}

/**
 * Prints a help text with its flags in groups.
 * @param isAll prints the rare flags too, as for `--help all`
 */
export function printGroupedHelp(
  lines: readonly string[],
  known: Readonly<Record<string, Flag>>,
  isAll: boolean,
): void {
  const isShown = ({ rare }: Flag) => isAll || rare !== true;
  const shown = Object.fromEntries(Object.entries(known).filter(([, flag]) => isShown(flag)));
  const hidden = Object.keys(known).length - Object.keys(shown).length;
  if (hidden > 0) {
    delete shown['help'];
    shown['help all'] = { group: 'help', help: `${hidden} rarer flags too` };
  }
  const texts = flagLines(shown);
  const linesOf = (group: Flag['group']) =>
    texts.filter((_, index) => Object.values(shown)[index]?.group === group);
  const grouped = linesOf(undefined);
  for (const group of keysOf(groupTitles)) {
    const title = groupTitles[group];
    if (title !== '') grouped.push(title);
    grouped.push(...linesOf(group));
  }
  printHelp([...lines, '', ...grouped]);
}

function flagLines(known: Readonly<Record<string, Flag>>): string[] {
  const all = Object.entries(known).map(([name, { value, help }]) => ({
    head: `  --${name}${value === undefined ? '' : ` ${value}`}`,
    help,
  }));
  const width = Math.max(...all.map(({ head }) => head.length));
  return all.map(({ head, help }) => `${head.padEnd(width)}  ${help}`);
}

/** Reads text that matches `form`; `wanted` describes it in the error. */
export const ofForm =
  (form: RegExp, wanted: string): Reader<string> =>
  (flag, text) => {
    if (form.test(text)) return text;
    throw usageError(`${flag} ${text}: ${wanted}`);
  };

export const oneOfNames =
  <const Word extends string>(choices: readonly Word[]): Reader<Word> =>
  (flag, text) => {
    const choice = choices.find((word) => word === text);
    if (choice === undefined) throw unknownWord(flag, text, choices);
    return choice;
  };

export const wholeNumber =
  (most: number): Reader<number> =>
  (flag, text) => {
    const number = Number(text);
    if (/^\d+$/.test(text) && number >= 1 && number <= most) return number;
    throw usageError(`${flag} ${text}: give a whole number from 1 to ${most}`);
  };

/** Reads 500ms, 10, 10s, 2m or 1h as seconds, at least `least`. */
export const seconds =
  (least: number): Reader<number> =>
  (flag, text) => {
    const [, digits, unit = 's'] = /^(\d+(?:\.\d+)?)(ms|s|m|h)?$/.exec(text) ?? [];
    const value = secondsOf(digits, unit);
    if (value >= least && value <= 86_400) return value;
    throw usageError(`${flag} ${text}: give a time from ${least} s to 24 h, such as 10s or 2m`);
  };
