// Servers as a scenario names them. What starts them is lib/servers.
import type { ServerSpec } from './model.ts';

export type ServerOptions = Omit<ServerSpec, 'name' | 'config'>;

/** An nginx whose config is composed of these files of `server-configs/nginx/` (without `.conf`), or of your own (./knob.conf), the base first. */
export function nginx(config: readonly string[], options: ServerOptions): ServerSpec {
  return { name: 'nginx', config, ...options };
}

/** An h2o whose config is composed of these files of `server-configs/h2o/` (without `.conf`), or of your own (./knob.conf), the base first. */
export function h2o(config: readonly string[], options: ServerOptions): ServerSpec {
  return { name: 'h2o', config, ...options };
}

/** An nghttpd whose command line is composed of these files of `server-configs/nghttpd/` (without `.conf`), or of your own (./knob.conf), the base first. It speaks HTTP/2 only. */
export function nghttpd(config: readonly string[], options: ServerOptions): ServerSpec {
  return { name: 'nghttpd', config, ...options };
}
