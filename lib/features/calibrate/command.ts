// The command calibrate.
import { join } from 'node:path';
import { blindTest } from './blind.ts';
import { figuresTable } from './calibrate.ts';
import { costTable } from './cost.ts';
import { effectNames, effectTest } from './effect.ts';
import { requirePeerNames } from './installed-peers.ts';
import { usageError, UserError } from '../../errors.ts';
import type { Additions } from '../../cli/feature.ts';
import { fromCallersFolder, typed } from '../../setup/paths.ts';
import {
  noInstall,
  oneOfNames,
  printHelp,
  readArguments,
  wholeNumber,
  type Flag,
  type Arguments,
} from '../../cli/arguments.ts';

const flags = {
  quick: { help: 'five servers, alone and in turns of two, without other generators: a minute' },
  only: { value: 'NAME', help: 'only servers, or loads of --cost, whose names begin so' },
  peers: {
    value: 'wrk,vegeta',
    help: 'these generators only, or none (all that are installed of wrk, wrk2, h2load, ab, vegeta, oha, k6/http)',
  },
  record: {
    value: 'DIR',
    help: 'write the page, its Markdown and JSON there (results/calibration)',
  },
  blind: {
    value: 'N',
    help: 'instead: verdicts on so many pairs of servers, which a seed draws, and their score against the truth',
  },
  disturb: {
    value: 'N',
    help: 'the same while something happens to each run: a server or InfluxDB stops, a core is busy',
  },
  effect: {
    value: 'NAME',
    help: `instead: one effect, as bakeoff and --peers (wrk,h2load) see it: ${effectNames.join(', ')}`,
  },
  cost: {
    help: "instead: the generator's CPU time per request, bakeoff beside --peers (half an hour; with --quick some minutes)",
  },
  pairs: { value: 'N', help: 'of --effect: pairs of servers (40)' },
  seed: { value: 'N', help: 'of --blind, --disturb and --effect (1)' },
  resume: { help: 'go on with the seed that was interrupted' },
  ...noInstall,
  help: { help: 'this text' },
} as const satisfies Record<string, Flag>;

/** Exit code 3: bakeoff is beyond its bounds. @throws UserError */
export async function calibrateCommand(
  args: readonly string[],
  additions: Additions,
): Promise<number> {
  const { positionals, flags: given } = readArguments(args, flags);
  if (given.has('help')) {
    printHelp(
      [
        `${typed('calibrate')} [flags]`,
        '',
        'Loads servers whose figures are known by arithmetic, and shows what bakeoff and other generators say of them.',
      ],
      flags,
    );
    return 0;
  }
  if (positionals.length > 0)
    throw usageError(`calibrate takes no words but its flags: leave out "${positionals[0]}"`);
  const folder = fromCallersFolder(given.get('record') ?? join('results', 'calibration'));
  const [mode, another] = modes.filter((name) => given.has(name));
  if (another !== undefined) throw new UserError(`--${mode}, --${another}: name one of them`, 2);
  if (mode !== 'effect') refuse(given, ['pairs'], 'belongs to --effect: name one');
  const isTable = mode === undefined || mode === 'cost';
  if (isTable)
    refuse(
      given,
      ['seed', 'resume'],
      'belongs to --blind, --disturb or --effect: name one of them',
    );
  else
    refuse(
      given,
      mode === 'effect' ? ['quick', 'only'] : ['quick', 'only', 'peers'],
      `a part of the table, which --${mode} does not make: leave it out`,
    );
  const seed = wholeNumber(2 ** 31)('--seed', given.get('seed') ?? '1');
  const isResumed = given.has('resume');
  const peers = peersIn(given.get('peers'));
  if (mode === 'effect') {
    const asked = new Set(peers ?? ['wrk', 'h2load']);
    if (asked.size === 0)
      throw new UserError('--peers none: --effect needs another generator: name one', 2);
    requirePeerNames([...asked]);
    return effectTest({
      additions,
      effect: oneOfNames(effectNames)('--effect', given.get('effect') ?? ''),
      peers: [...asked],
      pairs: wholeNumber(mostPairs)('--pairs', given.get('pairs') ?? '40'),
      seed,
      isResumed,
      folder,
    });
  }
  if (!isTable)
    return blindTest({
      additions,
      count: wholeNumber(mostPairs)(`--${mode}`, given.get(mode) ?? ''),
      seed,
      isDisturbed: mode === 'disturb',
      isResumed,
      folder,
    });
  const makeTable = mode === 'cost' ? costTable : figuresTable;
  return makeTable({
    additions,
    isQuick: given.has('quick'),
    only: given.get('only'),
    peers,
    folder,
    command: [typed('calibrate'), ...args].join(' '),
  });
}

/** Instead of the table. */
const modes = ['blind', 'disturb', 'effect', 'cost'] as const;

/** A pair takes about a minute. */
const mostPairs = 1000;

function refuse(given: Arguments['flags'], names: readonly string[], why: string): void {
  for (const name of names) if (given.has(name)) throw new UserError(`--${name}: ${why}`, 2);
}

function peersIn(text: string | undefined): string[] | undefined {
  if (text === undefined) return undefined;
  if (text === 'none') return [];
  const names = text.split(',').map((name) => name.trim());
  if (names.includes('')) throw new UserError('--peers: name generators, with commas between', 2);
  return names;
}
