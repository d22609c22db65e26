// Versions of the tools, as they say themselves.
import { UserError } from '../errors.ts';
import { lastLine, run } from '../setup/run.ts';

const questions = {
  k6: { args: ['version'], answer: /^k6 v(\S+)/m },
  nginx: { args: ['-v'], answer: /^nginx version: [^/\n]*\/(\S+)/m },
} as const;

/** e.g. "1.22.1". Throws UserError when the binary does not run or is something else. */
export async function versionOf(tool: keyof typeof questions, binary: string, signal?: AbortSignal): Promise<string> {
  const { args, answer } = questions[tool];
  const { stdout, stderr } = await run({ command: binary, args, ...(signal === undefined ? {} : { signal }) });
  const version = answer.exec(stdout + stderr)?.[1];
  if (version !== undefined) return version;
  throw new UserError(`${binary} does not tell the version of ${tool} (${lastLine(stderr) || lastLine(stdout) || 'it says nothing'}): set ${tool.toUpperCase()}_BIN to one that does`);
}
