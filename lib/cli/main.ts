// The commands. bin/bakeoff.mjs calls main once the packages are there. The core names the features here alone.
import { inOneLine, messageOf, remedyFor, UserError, unknownWord } from '../errors.ts';
import { calibrate } from '../features/calibrate/feature.ts';
import { commits } from '../features/commits/feature.ts';
import { counts } from '../features/counts/feature.ts';
import { hosts } from '../features/hosts/feature.ts';
import { influxdb } from '../features/influxdb/feature.ts';
import { k6Scripts } from '../features/k6-scripts/feature.ts';
import { knobs } from '../features/knobs/feature.ts';
import { kubernetes } from '../features/kubernetes/feature.ts';
import { network } from '../features/network/feature.ts';
import { report } from '../features/report/feature.ts';
import { search } from '../features/search/feature.ts';
import { traffic } from '../features/traffic/feature.ts';
import { why } from '../features/why/feature.ts';
import type { AnyTemplates } from '../report/finding-words.ts';
import { Interrupted } from '../signals.ts';
import { installVariable, useSafePath } from '../setup/machine.ts';
import { requireOwnHome, typed } from '../setup/paths.ts';
import { noInstall, printHelp } from './arguments.ts';
import type { Additions, Command, Feature } from './feature.ts';
import packageJson from '../../package.json' with { type: 'json' };

/**
 * The features, in the order in which the help lists their commands. To take one out, delete its lines here, its folder, and its exports in index.ts.
 */
const features: readonly Feature[] = [
  knobs,
  k6Scripts,
  kubernetes,
  calibrate,
  report,
  commits,
  counts,
  hosts,
  network,
  influxdb,
  search,
  traffic,
  why,
];

const ownCommands: Readonly<Record<string, Command>> = {
  scenario: {
    help: 'run a scenario, or list them',
    run: async (args, additions) =>
      (await import('./scenario.ts')).scenarioCommand(args, additions),
  },
  compare: {
    help: 'compare your own configs, commands and addresses',
    run: async (args, additions) => (await import('./compare.ts')).compareCommand(args, additions),
  },
};

/** What features keep between runs. */
const kept = features.flatMap(({ keeps }) => keeps ?? []);

const clean: Command = {
  help: 'delete what bakeoff keeps between runs',
  run: async (args) => (await import('./clean.ts')).cleanCommand(args, kept),
};

export const additions: Additions = {
  runParts: features.flatMap(({ run }) => run ?? []),
  contributionsTo: (result) => features.flatMap((feature) => feature.report?.(result) ?? []),
  templates: Object.assign({}, ...features.map(({ templates }) => templates)) as AnyTemplates,
};

/** Returns the commands by name, in the order of the help. */
function allCommands(): Record<string, Command> {
  const commands: Record<string, Command> = { ...ownCommands };
  for (const feature of features) Object.assign(commands, feature.commands);
  return { ...commands, clean };
}

/** Runs a command and returns its exit code (docs/verdicts.md). Prints an error in one line. */
export async function main(argv: readonly string[]): Promise<number> {
  try {
    const code = await runCommand(argv, allCommands());
    // Errors of the last output arrive after it.
    await new Promise((resolve) => setImmediate(resolve));
    if (outputError === undefined) return code;
    console.error(`cannot write the output: ${outputError.message}`);
    return 1;
  } catch (error) {
    if (error instanceof Interrupted) return 130;
    if (error instanceof UserError) {
      console.error(error.message);
      return error.exitCode;
    }
    if (process.env['BAKEOFF_DEBUG'] === '1') throw error;
    console.error(
      remedyFor(error) ??
        `something unexpected happened: ${inOneLine(messageOf(error))} (BAKEOFF_DEBUG=1 shows where)`,
    );
    return 1;
  }
}

let outputError: Error | undefined;

for (const stream of [process.stdout, process.stderr]) {
  stream.on('error', (error: NodeJS.ErrnoException) => {
    // A reader that goes away (`… | head`) does not end a run in the middle.
    if (error.code !== 'EPIPE' && error.code !== 'EIO') outputError = error;
  });
}

async function runCommand(
  argv: readonly string[],
  all: Readonly<Record<string, Command>>,
): Promise<number> {
  const words = argv.filter((word) => word !== '--no-install');
  // Processes that a command starts inherit it.
  if (words.length < argv.length) process.env[installVariable] = 'no';
  const [name, ...args] = words;
  if (name === '--version') {
    console.log(packageJson.version);
    return 0;
  }
  if (name === undefined || name === '--help' || name === '-h') {
    printHelp(
      [
        `Commands, each as ${typed('NAME')} …`,
        ...Object.entries(all).map(([command, { help }]) => `  ${command.padEnd(10)}${help}`),
      ],
      noInstall,
    );
    return name === undefined ? 2 : 0;
  }
  const command = Object.hasOwn(all, name) ? all[name] : undefined;
  if (command === undefined) throw unknownWord('command', name, Object.keys(all));
  useSafePath();
  requireOwnHome();
  return command.run(args, additions);
}
