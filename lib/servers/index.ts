// Starts the server that a variant names.
import type {
  AddressServer,
  CommandServer,
  ConfiguredServer,
  ServerName,
  ServerSpec,
} from '../scenario/model.ts';
import { isConfigured, programOf } from '../scenario/variants.ts';
import { startCommand } from './command.ts';
import { h2oKind } from './h2o.ts';
import { nghttpdKind } from './nghttpd.ts';
import { nginxKind } from './nginx.ts';
import { waitUntilReady } from './ready.ts';
import type {
  Build,
  ComposedConfig,
  Place,
  RunningServer,
  ServerKind,
  StartedServer,
  StartOptions,
} from './server.ts';
import { start } from './start.ts';

export { serverBuild } from './build.ts';
export { readOwnConfig } from './own/own-config.ts';
export type { Listen, OwnConfig } from './own/listens.ts';
export { isLoopback } from './ports.ts';
export { answerOfAll } from './ready-inside.ts';
export { waitUntilReady, type ReadyCheck } from './ready.ts';
export { temporaryFolder } from './scratch.ts';
export {
  isStarted,
  type Answer,
  type Build,
  type RunningServer,
  type StartedServer,
  type StartOptions,
} from './server.ts';
export { watchUpstreams } from './upstreams.ts';
export { stoppedIn } from './usage.ts';

const kinds: Record<ServerName, ServerKind> = {
  nginx: nginxKind,
  h2o: h2oKind,
  nghttpd: nghttpdKind,
};

/** Starts the server, unless it is an address, and returns once it serves the page. Throws UserError or the signal's reason. */
export function startServer(
  spec: ConfiguredServer | CommandServer,
  options: StartOptions,
): Promise<StartedServer>;
export function startServer(spec: ServerSpec, options: StartOptions): Promise<RunningServer>;
export function startServer(spec: ServerSpec, options: StartOptions): Promise<RunningServer> {
  if (isConfigured(spec)) return start(kinds[spec.name], spec, options);
  return spec.name === 'command' ? startCommand(spec, options) : openAddress(spec, options);
}

/** A server that runs already. Throws UserError where it does not answer. */
async function openAddress(spec: AddressServer, options: StartOptions): Promise<RunningServer> {
  const { origin } = spec;
  const {
    page,
    protocol = 'http/1.1',
    request,
    tls,
    workers,
    signal = new AbortController().signal,
  } = options;
  return {
    name: programOf(spec),
    version: '',
    origin,
    workers,
    redirections: [],
    upstreams: [],
    answer: await waitUntilReady(
      { origin, page, protocol, request, tls, anyLength: true, isThere: true },
      signal,
    ),
    // When it ends, its load fails.
    died: new Promise(() => undefined),
    stop: () => Promise.resolve(),
  };
}

/** Composes a shipped config for another machine, with the name of its file. Throws UserError when it cannot. */
export async function composeFor(
  { name, config }: ConfiguredServer,
  place: Place,
  build: Build,
): Promise<ComposedConfig & { fileName: string }> {
  return { ...(await kinds[name].compose(config, place, build)), fileName: `${name}.conf` };
}

/** The number of workers: the article's with `exact`, otherwise the spec's for this number of cores. */
export function workersFor(spec: ServerSpec, serverCores: number, exact: boolean): number {
  // Not known: they may use all cores.
  if (!isConfigured(spec)) return serverCores;
  if (exact && spec.articleWorkers !== undefined) return spec.articleWorkers;
  return Math.max(
    spec.minWorkers ?? 1,
    spec.workers === 'server-cores' ? serverCores : spec.workers,
  );
}
