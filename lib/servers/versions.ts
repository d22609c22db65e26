// Versions of the tools, as they say themselves.
import { UserError } from '../errors.ts';
import type { ServerName } from '../scenario/model.ts';
import { serverBuild } from './index.ts';
import { lastLine, run } from '../setup/run.ts';

type Tool = 'k6' | ServerName;

/** By tool, e.g. { k6: '2.2.0', nginx: '1.22.1' }. Throws UserError as versionOf. */
export async function versionsOf(binaries: Partial<Record<Tool, string>>, signal?: AbortSignal): Promise<Record<string, string>> {
  const tools = Object.entries(binaries) as [Tool, string][];
  return Object.fromEntries(await Promise.all(tools.map(async ([tool, binary]) => [tool, await versionOf(tool, binary, signal)])));
}

/** e.g. "1.22.1". Throws UserError when the binary does not run or is something else. */
export async function versionOf(tool: Tool, binary: string, signal?: AbortSignal): Promise<string> {
  return tool === 'k6' ? k6Version(binary, signal) : (await serverBuild(tool, binary, signal)).version;
}

async function k6Version(binary: string, signal: AbortSignal | undefined): Promise<string> {
  const { stdout, stderr } = await run({ command: binary, args: ['version'], signal });
  const version = /^k6 v(\S+)/m.exec(stdout)?.[1];
  if (version !== undefined) return version;
  throw new UserError(`${binary} does not tell the version of k6 (${lastLine(stderr) || lastLine(stdout) || 'it says nothing'}): set K6_BIN to one that does`);
}
