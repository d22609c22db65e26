// Servers as a scenario names them. What starts them is lib/servers.
import type { ServerSpec } from './model.ts';

export type NginxOptions = Omit<ServerSpec, 'name' | 'config'>;

/** An nginx whose config is composed of these files of `server-configs/nginx/` (without `.conf`), the base first. */
export function nginx(config: readonly string[], options: NginxOptions): ServerSpec {
  return { name: 'nginx', config, ...options };
}
