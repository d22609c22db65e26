// npm run compare: two configs of a person's own, as they are.
import { existsSync } from 'node:fs';
import { readdir, readFile, realpath, rm } from 'node:fs/promises';
import path from 'node:path';
import { UserError } from '../errors.ts';
import { divideCores, type Cores } from '../runner/cores.ts';
import { makePlan } from '../runner/plan.ts';
import { readProcessors } from '../runner/processors.ts';
import { nearest } from '../scenario/nearest.ts';
import { fromCallersFolder, typed } from '../setup/paths.ts';
import { readOwnConfig, startServer, temporaryFolder, workersFor } from '../servers/index.ts';
import { comparisonOf, serverOf, type Tried } from './compare-scenario.ts';
import { sidesOf, type Given, type Side } from './compare-sides.ts';
import { perform, type ServerBinaries } from './perform.ts';
import { readRunOptions, runFlags, type RunOptions } from './run-options.ts';
import { flagLines, readWords, type Flag } from './words.ts';

const compareFlags = {
  'url': { value: 'URL', help: 'a path, or a URL whose port says which of several addresses (/)' },
  'load': { value: '"wrk -c 100 -d 10"', help: 'a command line of wrk, h2load, ab, weighttp or vegeta (100 connections)' },
  ...runFlags,
} as const satisfies Record<string, Flag>;

interface CompareOptions extends RunOptions {
  /** As the person wrote them. */
  files: readonly string[];
  url?: string;
  load?: string;
}

/**
 * Returns the exit code; 2 without any words, where it prints the help. Throws UserError and Interrupted.
 */
export async function compareCommand(args: readonly string[]): Promise<number> {
  const options = readCompareOptions(args);
  if (options.help || args.length === 0) {
    console.log(help.join('\n'));
    return options.help ? 0 : 2;
  }
  const files = twoFiles(options.files);
  const cores = divideCores(readProcessors(), { server: options.serverCpus, generator: options.generatorCpus });
  const configs = [await readGiven(files[0]), await readGiven(files[1])] as const;
  const sides = sidesOf([...configs], options, cores.generatorCpus.length);
  const sameFile = await isSame(sides);
  return perform({
    servers: [...new Set(configs.map(({ config }) => config.server))],
    cores,
    async prepare(binaries, signal) {
      const tried = [await tryOnce(sides[0], cores, binaries, options, signal), await tryOnce(sides[1], cores, binaries, options, signal)] as const;
      const { scenario, said } = comparisonOf(tried, sameFile);
      for (const line of said) (options.json ? console.error : console.log)(line);
      return makePlan(scenario, scenario.variants, cores, { ...options, exact: false });
    },
  }, options);
}

const help = [
  `${typed('compare')} A.conf B.conf [flags]`,
  '',
  'Compares two configs of nginx, h2o or nghttpd as they are. What cannot be used here (addresses, logs, pid file, user) is',
  'redirected and said; the files are not touched. B is faster or slower than A. A config of nghttpd has one flag a line.',
  '',
  ...flagLines(compareFlags),
];

function readCompareOptions(args: readonly string[]): CompareOptions {
  const { positionals, flags } = readWords(args, compareFlags);
  const [url, load] = [flags.get('url'), flags.get('load')];
  return {
    ...readRunOptions(flags),
    files: positionals,
    ...(url === undefined ? {} : { url }),
    ...(load === undefined ? {} : { load }),
  };
}

function twoFiles([a, b, extra]: readonly string[]): [string, string] {
  if (a === undefined || b === undefined) throw new UserError(`compare wants two configs${a === undefined ? '' : `, and ${a} is one`}: ${typed('compare')} A.conf B.conf`, 2);
  if (extra !== undefined) throw new UserError(`two configs at a time: "${extra}" is one word too many`, 2);
  return [a, b];
}

/** Reads what a config says. Throws UserError in one line. */
async function readGiven(given: string): Promise<Given> {
  const file = fromCallersFolder(given);
  if (!existsSync(file)) {
    const names = await readdir(path.dirname(file)).catch((): string[] => []);
    throw new UserError(`there is no file ${file}${names.length === 0 ? '' : `: did you mean ${path.join(path.dirname(given), nearest(path.basename(file), names))}?`}`, 2);
  }
  return { given, config: await readOwnConfig(file) };
}

/** Whether both say the same, so that what differs is noise. Throws UserError for one file that is named twice. */
async function isSame([a, b]: readonly [Side, Side]): Promise<boolean> {
  const files = [a.config.file, b.config.file] as const;
  const [realA, realB] = await Promise.all(files.map((file) => realpath(file)));
  if (realA === realB) throw new UserError(`${a.given} and ${b.given} are the same file: to see what noise alone does here, compare it with a copy of it`, 2);
  const [bytesA, bytesB] = await Promise.all(files.map((file) => readFile(file)));
  if (bytesA === undefined || bytesB === undefined || !bytesA.equals(bytesB) || a.listen.port !== b.listen.port) return false;
  if (path.dirname(files[0]) === path.dirname(files[1])) return true;
  // Elsewhere, what is relative to them may be something else: what nginx includes, and all that the others serve.
  return a.config.server === 'nginx' && !/\binclude\s+["']?[^/\s"']/.test(bytesA.toString('utf8'));
}

/** Starts the config once, to see that it runs here and what it answers. Throws UserError that names it. */
async function tryOnce(side: Side, cores: Cores, binaries: ServerBinaries, { trustConfig }: CompareOptions, signal: AbortSignal): Promise<Tried> {
  const { given, config: { file }, load, page } = side;
  const spec = serverOf(side);
  const folder = await temporaryFolder();
  try {
    const server = await startServer(spec, {
      binaries,
      folder,
      cpus: cores.serverCpus,
      workers: workersFor(spec, cores.serverCpus.length, false),
      page,
      protocol: load.protocol,
      request: load,
      tls: load.tls,
      connections: load.connections,
      trustConfig: trustConfig === true,
      signal,
    });
    await server.stop();
    return { ...side, bodyBytes: server.bodyBytes, redirections: server.redirections };
  } catch (error) {
    if (!(error instanceof UserError) || error.message.includes(file)) throw error;
    throw new UserError(`${given}: ${error.message}`, error.exitCode);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
