// Versions of servers and generators, from their own output.
import { present } from '../../present.ts';
import { run } from '../../process.ts';
import { serverBuild } from '../../servers/index.ts';
import type { ToolName } from '../../setup/tools.ts';

/** What generators print their versions for, and where these stand. */
const questions = {
  wrk: ['-v', /wrk \D*([\d.]+)/],
  wrk2: ['-v', /wrk \D*([\d.]+)/],
  ab: ['-V', /Version (\S+)/],
  h2load: ['--version', /nghttp2\/(\S+)/],
  vegeta: ['-version', /Version: *(\S+)/],
  oha: ['--version', /oha (\S+)/],
} as const satisfies Record<string, readonly [argument: string, pattern: RegExp]>;

const isAsked = (tool: string): tool is keyof typeof questions => tool in questions;

/** A program that prints its version takes milliseconds. */
const limitSeconds = 10;

/**
 * Undefined for a tool that is asked in another way (influxd). @throws UserError for a program that does not end, or for a server that is
 * none; the signal's reason
 */
export async function versionOf(
  tool: string,
  binary: string,
  signal?: AbortSignal,
): Promise<string | undefined> {
  if (tool === 'k6' || tool === 'nginx' || tool === 'h2o' || tool === 'nghttpd')
    return (await serverBuild(tool, binary, signal)).version;
  if (!isAsked(tool)) return undefined;
  const [argument, pattern] = questions[tool];
  const message = `${binary} ${argument} had not ended after ${limitSeconds} s: is it ${tool}?`;
  const { stdout, stderr } = await run({
    command: binary,
    args: [argument],
    limit: { seconds: limitSeconds, message },
    ...present({ signal }),
  });
  return pattern.exec(stdout + stderr)?.[1] ?? 'of an unknown version';
}

/**
 * Returns versions by tool name.
 * @throws as versionOf
 */
export async function toolVersions(
  binaries: Partial<Record<ToolName, string>>,
  signal: AbortSignal,
): Promise<Record<string, string>> {
  const versions: Record<string, string> = {};
  for (const [tool, binary] of Object.entries(binaries)) {
    const version = await versionOf(tool, binary, signal);
    if (version !== undefined) versions[tool] = version;
  }
  return versions;
}
