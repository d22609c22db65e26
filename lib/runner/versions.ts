// Versions of the tools, as they say themselves.
import { UserError } from '../errors.ts';
import { nginxBuild } from '../servers/index.ts';
import { lastLine, run } from '../setup/run.ts';

/** e.g. "1.22.1". Throws UserError when the binary does not run or is something else. */
export async function versionOf(tool: 'k6' | 'nginx', binary: string, signal?: AbortSignal): Promise<string> {
  return tool === 'nginx' ? (await nginxBuild(binary, signal)).version : k6Version(binary, signal);
}

async function k6Version(binary: string, signal: AbortSignal | undefined): Promise<string> {
  const { stdout, stderr } = await run({ command: binary, args: ['version'], ...(signal === undefined ? {} : { signal }) });
  const version = /^k6 v(\S+)/m.exec(stdout)?.[1];
  if (version !== undefined) return version;
  throw new UserError(`${binary} does not tell the version of k6 (${lastLine(stderr) || lastLine(stdout) || 'it says nothing'}): set K6_BIN to one that does`);
}
