// The commands. bin/bakeoff.mjs calls main once the packages are there.
import { messageOf, remedyFor, UserError, unknownWord } from '../errors.ts';
import { Interrupted } from '../process.ts';
import { installVariable } from '../setup/machine.ts';
import { typed } from '../setup/paths.ts';
import { noInstall, printHelp } from './words.ts';
import packageJson from '../../package.json' with { type: 'json' };

export interface Command {
  help: string;
  run(args: string[]): Promise<number>;
}

const commands: Readonly<Record<string, Command>> = {
  scenario: {
    help: 'run a scenario, or list them',
    run: async (args) => (await import('./scenario.ts')).scenarioCommand(args),
  },
  compare: {
    help: 'compare your own configs, commands and addresses',
    run: async (args) => (await import('./compare.ts')).compareCommand(args),
  },
  knobs: {
    help: 'try the usual advice on your config',
    run: async (args) => (await import('./knobs.ts')).knobsCommand(args),
  },
  k6: {
    help: 'run the k6 with k6/x/loadgen (run script.js), or print its path',
    run: async (args) => (await import('./k6.ts')).k6Command(args),
  },
  k8s: {
    help: 'run a scenario on Kubernetes, or print its manifests',
    run: async (args) => (await import('./k8s.ts')).k8sCommand(args),
  },
  calibrate: {
    help: 'load servers whose figures are known, by bakeoff and by wrk, h2load, vegeta and others',
    run: async (args) => (await import('./calibrate.ts')).calibrateCommand(args),
  },
  report: {
    help: 'make the page of a run again, or show a comparison over all its runs',
    run: async (args) => (await import('./report.ts')).reportCommand(args),
  },
  grafana: {
    help: 'show the dashboards of all runs, until Ctrl-C',
    run: async (args) => (await import('./grafana.ts')).grafanaCommand(args),
  },
  clean: {
    help: 'delete what bakeoff keeps between runs',
    run: async (args) => (await import('./clean.ts')).cleanCommand(args),
  },
};

/** Runs a command and returns its exit code (docs/verdicts.md); prints one line for an error. @param more further commands */
export async function main(
  argv: readonly string[],
  more: Readonly<Record<string, Command>> = {},
): Promise<number> {
  try {
    const code = await runCommand(argv, { ...commands, ...more });
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
        `something unexpected happened: ${messageOf(error)} (BAKEOFF_DEBUG=1 shows where)`,
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
  return command.run(args);
}
