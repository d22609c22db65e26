// Starts the server that a variant names.
import type { ServerSpec } from '../scenario/model.ts';
import { startNginx } from './nginx.ts';
import type { RunningServer, StartOptions } from './server.ts';

export { nginxBuild } from './nginx-build.ts';
export type { RunningServer, StartOptions } from './server.ts';

const starters: Record<ServerSpec['name'], (spec: ServerSpec, options: StartOptions) => Promise<RunningServer>> = {
  nginx: startNginx,
};

/** Starts it and returns once it serves the page. Throws UserError, or the signal's reason; nothing is left running then. */
export function startServer(spec: ServerSpec, options: StartOptions): Promise<RunningServer> {
  return starters[spec.name](spec, options);
}

/** How many workers the server gets here: the article's with `exact`, otherwise as many as the spec says for this number of cores. */
export function workersFor(spec: ServerSpec, serverCores: number, exact: boolean): number {
  if (exact) return spec.articleWorkers;
  return Math.max(spec.minWorkers ?? 1, spec.workers === 'server-cores' ? serverCores : spec.workers);
}
