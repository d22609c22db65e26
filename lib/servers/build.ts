// What a server's binary says of itself.
import { UserError } from '../errors.ts';
import { lastLine, run } from '../setup/run.ts';
import { toolVariable } from '../setup/tools.ts';
import { atLeast } from '../setup/version.ts';
import type { Build, VersionQuestion } from './server.ts';

const known = new Map<string, Build>();

/** Asks each binary once. Throws UserError when it does not run, is something else or too old, or the signal's reason. */
export async function askBuild(question: VersionQuestion, binary: string, signal?: AbortSignal): Promise<Build> {
  const build = known.get(binary) ?? await ask(question, binary, signal);
  known.set(binary, build);
  return build;
}

async function ask({ name, args, pattern, oldest }: VersionQuestion, binary: string, signal: AbortSignal | undefined): Promise<Build> {
  const { code, stdout, stderr } = await run({ command: binary, args, signal });
  const answer = stdout + stderr;
  const version = pattern.exec(answer)?.[1];
  if (code !== 0 || version === undefined) {
    throw new UserError(`${binary} is not an ${name} that runs here (${lastLine(answer) || 'it says nothing'}): set ${toolVariable(name)} to the one to measure`);
  }
  if (!atLeast(version, oldest.version)) {
    throw new UserError(`${binary} is ${name} ${version}, and only ${oldest.version} and newer ${oldest.why}: set ${toolVariable(name)} to a newer one`);
  }
  return { version, answer };
}
