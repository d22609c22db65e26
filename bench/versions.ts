// Versions of the bench's tools, from their own output.
import { serverBuild } from '../lib/servers/build.ts';
import { run } from '../lib/process.ts';
import type { ToolName } from '../lib/setup/tools.ts';

/** Commands and patterns for the peers' versions. */
const versionQuestions = {
  wrk: ['-v', /wrk \D*([\d.]+)/],
  ab: ['-V', /Version (\S+)/],
  h2load: ['--version', /nghttp2\/(\S+)/],
} as const satisfies Partial<Record<ToolName, readonly [string, RegExp]>>;

/** Returns versions by tool name. @param influxd version reported by the running server; absent if there is none */
export async function toolVersions(
  binaries: Partial<Record<ToolName, string>>,
  influxd?: string,
): Promise<Record<string, string>> {
  const versions: Record<string, string> = {};
  for (const [tool, binary] of Object.entries(binaries) as [ToolName, string][]) {
    if (tool === 'k6' || tool === 'nginx' || tool === 'h2o' || tool === 'nghttpd')
      versions[tool] = (await serverBuild(tool, binary)).version;
    if (tool === 'influxd' && influxd !== undefined) versions[tool] = influxd;
    if (tool === 'wrk' || tool === 'ab' || tool === 'h2load') {
      const [flag, pattern] = versionQuestions[tool];
      const { stdout, stderr } = await run({ command: binary, args: [flag] });
      versions[tool] = pattern.exec(stdout + stderr)?.[1] ?? 'of an unknown version';
    }
  }
  return versions;
}
