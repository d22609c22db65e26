// The versions of servers' and k6's binaries, as these say themselves.
import { UserError } from '../errors.ts';
import type { ServerName } from '../scenario/model.ts';
import { lastLine, run } from '../setup/run.ts';
import { toolVariable } from '../setup/tools.ts';
import { atLeast } from '../setup/machine.ts';
import type { Build } from './server.ts';

/** How to ask a binary for its version. `pattern` finds it in the answer; `why`: what only the `oldest` and newer ones do. */
interface Question {
  args: readonly string[];
  pattern: RegExp;
  oldest: string;
  why: string;
}

const questions: Record<ServerName, Question> = {
  nginx: {
    args: ['-V'],
    pattern: /^nginx version: [^/]*\/(\S+)/m,
    oldest: '1.18.0',
    why: 'know what the shipped configs say',
  },
  h2o: {
    args: ['--version'],
    pattern: /^h2o version (\S+)/m,
    oldest: '2.2.0',
    why: "know article 001's config",
  },
  nghttpd: {
    args: ['--version'],
    pattern: /^nghttpd nghttp2\/(\S+)/m,
    oldest: '1.0.0',
    why: 'speak HTTP/2 as it was finished (RFC 7540)',
  },
};

const answerSeconds = 30;

const known = new Map<string, Build>();

/** Asks each binary once. Throws UserError when it does not run, is something else or too old, or the signal's reason. */
export async function serverBuild(
  name: ServerName,
  binary: string,
  signal?: AbortSignal,
): Promise<Build> {
  const build = known.get(binary) ?? (await ask(name, binary, signal));
  known.set(binary, build);
  return build;
}

async function ask(
  name: ServerName,
  binary: string,
  signal: AbortSignal | undefined,
): Promise<Build> {
  const { args, pattern, oldest, why } = questions[name];
  const { code, stdout, stderr } = await run({
    command: binary,
    args,
    signal,
    limit: {
      seconds: answerSeconds,
      words: `${binary} ${args.join(' ')} does not end: set ${toolVariable(name)} to the ${name} to measure`,
    },
  });
  const answer = stdout + stderr;
  const version = pattern.exec(answer)?.[1];
  if (code !== 0 || version === undefined) {
    throw new UserError(
      `${binary} is not an ${name} that runs here (${lastLine(answer) || 'it says nothing'}): set ${toolVariable(name)} to the one to measure`,
    );
  }
  if (!atLeast(version, oldest)) {
    throw new UserError(
      `${binary} is ${name} ${version}, and only ${oldest} and newer ${why}: set ${toolVariable(name)} to a newer one`,
    );
  }
  return { version, answer };
}

type Tool = 'k6' | ServerName;

/** By tool, e.g. { k6: '2.2.0', nginx: '1.22.1' }. Throws UserError as versionOf. */
export async function versionsOf(
  binaries: Partial<Record<Tool, string>>,
  signal?: AbortSignal,
): Promise<Record<string, string>> {
  const tools = Object.entries(binaries) as [Tool, string][];
  return Object.fromEntries(
    await Promise.all(
      tools.map(async ([tool, binary]) => [tool, await versionOf(tool, binary, signal)]),
    ),
  );
}

/** e.g. "1.22.1". Throws UserError when the binary does not run or is something else. */
export async function versionOf(tool: Tool, binary: string, signal?: AbortSignal): Promise<string> {
  if (tool !== 'k6') return (await serverBuild(tool, binary, signal)).version;
  const { stdout, stderr } = await run({
    command: binary,
    args: ['version'],
    signal,
    limit: { seconds: answerSeconds, words: `${binary} version does not end: set K6_BIN to a k6` },
  });
  const version = /^k6 v(\S+)/m.exec(stdout)?.[1];
  if (version !== undefined) return version;
  throw new UserError(
    `${binary} does not tell the version of k6 (${lastLine(stderr) || lastLine(stdout) || 'it says nothing'}): set K6_BIN to one that does`,
  );
}
