// The command calibrate.
import { join } from 'node:path';
import { blindTest } from './blind.ts';
import { calibrate } from './calibrate.ts';
import { usageError, UserError } from '../../errors.ts';
import { fromCallersFolder, typed } from '../../setup/paths.ts';
import {
  noInstall,
  printHelp,
  readWords,
  wholeNumber,
  type Flag,
  type Words,
} from '../../cli/words.ts';

const flags = {
  quick: { help: 'five servers, alone and in turns of two, without other generators: a minute' },
  only: { value: 'NAME', help: 'only servers whose names begin so' },
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
    help: 'the same while something happens to each run: a server stops, a core is busy',
  },
  seed: { value: 'N', help: 'of --blind and --disturb (1)' },
  resume: { help: 'go on with the seed that was interrupted' },
  ...noInstall,
  help: { help: 'this text' },
} as const satisfies Record<string, Flag>;

/** Exit code 3: bakeoff is beyond its bounds. @throws UserError */
export async function calibrateCommand(args: readonly string[]): Promise<number> {
  const { positionals, flags: given } = readWords(args, flags);
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
  const [blind, disturbed] = [given.get('blind'), given.get('disturb')];
  if (blind !== undefined && disturbed !== undefined)
    throw new UserError('--blind, --disturb: name one of them', 2);
  if (blind !== undefined || disturbed !== undefined) {
    refuse(
      given,
      ['quick', 'only', 'peers'],
      'a part of the table, which --blind and --disturb do not make: leave it out',
    );
    return blindTest({
      count: wholeNumber(mostPairs)(
        blind === undefined ? '--disturb' : '--blind',
        blind ?? disturbed ?? '',
      ),
      seed: wholeNumber(2 ** 31)('--seed', given.get('seed') ?? '1'),
      isDisturbed: disturbed !== undefined,
      isResumed: given.has('resume'),
      folder,
    });
  }
  refuse(given, ['seed', 'resume'], 'belongs to --blind or --disturb: name one of them');
  return calibrate({
    isQuick: given.has('quick'),
    only: given.get('only'),
    peers: peersIn(given.get('peers')),
    folder,
    command: [typed('calibrate'), ...args].join(' '),
  });
}

/** A run of a pair takes half a minute. */
const mostPairs = 1000;

function refuse(given: Words['flags'], names: readonly string[], why: string): void {
  for (const name of names) if (given.has(name)) throw new UserError(`--${name}: ${why}`, 2);
}

function peersIn(text: string | undefined): string[] | undefined {
  if (text === undefined) return undefined;
  if (text === 'none') return [];
  const names = text.split(',').map((name) => name.trim());
  if (names.includes('')) throw new UserError('--peers: name generators, with commas between', 2);
  return names;
}
