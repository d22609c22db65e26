// Asks the binaries of servers and k6 for their versions.
import { UserError } from '../errors.ts';
import { atLeast } from '../setup/machine.ts';
import { lastLine, run } from '../process.ts';
import type { ServerName } from '../setup/servers.ts';
import { toolVariable } from '../setup/tools.ts';
import { serverKinds } from './kinds.ts';
import type { Build } from './server.ts';

type Tool = 'k6' | ServerName;

const k6Version = { argument: 'version', pattern: /^k6 v(\S+)/m, oldest: '0' };

const known = new Map<string, Build>();

/**
 * Returns a binary's version and its whole answer; asks once. Throws UserError if it does not run, is another program or is too old; or
 * throws the signal's reason.
 */
export async function serverBuild(
  name: Tool,
  binary: string,
  signal?: AbortSignal,
  isNamed = false,
): Promise<Build> {
  const build = known.get(binary) ?? (await ask(name, binary, signal, isNamed));
  known.set(binary, build);
  return build;
}

async function ask(
  name: Tool,
  binary: string,
  signal: AbortSignal | undefined,
  isNamed: boolean,
): Promise<Build> {
  const { argument, pattern, oldest } = name === 'k6' ? k6Version : serverKinds[name].version;
  // A variable does not replace a binary that its variant names.
  const remedy = isNamed ? 'name in its place' : `set ${toolVariable(name)} to`;
  const { code, stdout, stderr } = await run({
    command: binary,
    args: [argument],
    signal,
    limit: {
      seconds: 30,
      message: `${binary} ${argument} does not end: ${remedy} the ${name} to measure`,
    },
  });
  const answer = stdout + stderr;
  const version = pattern.exec(answer)?.[1];
  if (code !== 0 || version === undefined)
    throw new UserError(
      `${binary} is not ${name === 'k6' ? 'a' : 'an'} ${name} that runs here (${lastLine(answer) || 'it says nothing'}): ${remedy} the one to measure`,
    );
  if (!atLeast(version, oldest))
    throw new UserError(
      `${binary} is ${name} ${version}, and bakeoff needs ${oldest} or newer: ${remedy} a newer one`,
    );
  return { version, answer };
}

/** Returns the version of each tool, such as { k6: '2.2.0', nginx: '1.22.1' }. Throws as serverBuild does. */
export async function versionsOf(
  binaries: Partial<Record<Tool, string>>,
  signal?: AbortSignal,
): Promise<Record<string, string>> {
  const tools = Object.entries(binaries) as [Tool, string][];
  const asked = tools.map(async ([tool, binary]) => {
    const { version } = await serverBuild(tool, binary, signal);
    return [tool, version] as const;
  });
  return Object.fromEntries(await Promise.all(asked));
}
