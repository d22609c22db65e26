// A user's command as a server: without a shell, as the current user.
import path from 'node:path';
import { UserError } from '../errors.ts';
import { commandWords } from '../scenario/load/shell-words.ts';
import type { CommandServer } from '../scenario/model.ts';
import { find, isExecutableFile, thisMachine } from '../setup/machine.ts';
import { fromCallersFolder } from '../setup/paths.ts';
import { newMark } from './lifecycle.ts';
import type { Address } from './ports.ts';
import { fileLimitFor, hardFilesLimit } from './rights.ts';
import type { Scratch } from './scratch.ts';
import type { Prepared, StartOptions } from './server.ts';

/** Some commands compile, or read all their files, before they answer. */
const readyLimitMs = 60_000;

/** Prepares a command to start in its folder. Throws UserError if there is no such program. */
export async function prepareCommand(
  spec: CommandServer,
  at: Address,
  options: StartOptions,
  { temp }: Scratch,
): Promise<Prepared> {
  const cwd = spec.folder ?? fromCallersFolder('.');
  const [program = '', ...args] = commandWords(spec.command, at.port);
  const name = path.basename(program);
  return {
    about: { name, version: '', workers: options.workers, redirections: [], upstreams: [] },
    process: {
      command: await programIn(cwd, program),
      args,
      cwd,
      env: { ...process.env, HOST: at.address, PORT: String(at.port), PWD: cwd, TMPDIR: temp },
    },
    mark: newMark(),
    fileLimit: fileLimitFor(name, undefined, options.connections ?? 0, hardFilesLimit()),
    logFile: path.join(path.resolve(options.folder), 'output.log'),
    tls: spec.tls === true,
    check: { protocol: 'http/1.1', anyLength: true },
    readyLimitMs,
  };
}

async function programIn(folder: string, program: string): Promise<string> {
  const isPath = program.includes('/');
  const found = isPath ? path.resolve(folder, program) : await find(program, thisMachine());
  if (found === undefined)
    throw new UserError(
      `there is no program ${program} on PATH: install it, or write its path (./${program})`,
    );
  if (!(await isExecutableFile(found)))
    throw new UserError(
      `${found} is no program that can be run: ${isPath && folder !== path.dirname(found) ? `paths are meant from ${folder}` : 'see that it is there, and executable (chmod +x)'}`,
    );
  return found;
}
