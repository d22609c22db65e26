// What an nginx binary says of itself.
import { UserError } from '../errors.ts';
import { lastLine, run } from '../setup/run.ts';

export interface NginxBuild {
  /** e.g. 1.22.1 */
  version: string;
  /** Modules that keep temporary files and were not left out of this build. */
  tempModules: readonly string[];
}

const known = new Map<string, NginxBuild>();

/** Asks each binary once, with `nginx -V`. Throws UserError when it does not run or is something else, or the signal's reason. */
export async function nginxBuild(binary: string, signal?: AbortSignal): Promise<NginxBuild> {
  const build = known.get(binary) ?? await inspect(binary, signal);
  known.set(binary, build);
  return build;
}

async function inspect(binary: string, signal: AbortSignal | undefined): Promise<NginxBuild> {
  const { code, stderr } = await run({ command: binary, args: ['-V'], ...(signal === undefined ? {} : { signal }) });
  const version = /^nginx version: [^/]*\/(\S+)/m.exec(stderr)?.[1];
  if (code !== 0 || version === undefined) {
    throw new UserError(`${binary} is not an nginx that runs here (${lastLine(stderr)}): set NGINX_BIN to the one to measure`);
  }
  const tempModules = ['proxy', 'fastcgi', 'uwsgi', 'scgi'].filter((module) => !stderr.includes(`--without-http_${module}_module`));
  return { version, tempModules };
}
