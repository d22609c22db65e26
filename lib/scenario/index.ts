// The library of scenario files.

// The first import, so that its name is the error of `k6 run` on a scenario: k6 finds no such module. It is empty.
import '#a scenario is not a k6 script: npm run scenario -- NAME, or --k6-script to write one';
import type { ServerName } from '../setup/servers.ts';
import type { AddressServer, CommandServer, ConfigName, ConfiguredServer } from './model.ts';

export { defineArticle, type Article, type Claim } from './article.ts';
export { defineScenario } from './define-scenario.ts';
export { extendScenario, type ScenarioChanges } from './extend-scenario.ts';
export type {
  AddressServer,
  CommandServer,
  ConfigName,
  ConfiguredServer,
  Overlay,
  LinkDirection,
  LoadProfile,
  LoadRequest,
  NetworkSpec,
  Page,
  Scenario,
  ServerSpec,
  TlsOffer,
  Variant,
} from './model.ts';
export type { Published, PublishedDistribution } from './published.ts';
export { ab, h2load, vegeta, weighttp, wrk } from './load/generators.ts';

export type ServerOptions = Omit<ConfiguredServer, 'name' | 'config'>;

type Composed<Server extends ServerName> = (
  config: readonly ConfigName<Server>[],
  options: ServerOptions,
) => ConfiguredServer;
const composed =
  <Server extends ServerName>(name: Server): Composed<Server> =>
  (config, options) => ({ name, config, ...options });

/**
 * An nginx with a config of these files, the base first: names in `server-configs/nginx/` without `.conf`, or paths such as ./knob.conf.
 */
export const nginx = composed('nginx');

/** Like `nginx`, with files of `server-configs/h2o/`. */
export const h2o = composed('h2o');

/** Like `nginx`, with files of `server-configs/nghttpd/`, which hold flags. It speaks HTTP/2 only. */
export const nghttpd = composed('nghttpd');

/** A command of your own: `command('node server.js')`, `command('caddy file-server --listen 127.0.0.1:{port} --root www')`. */
export function command(
  line: string,
  options: Omit<CommandServer, 'name' | 'command'> = {},
): CommandServer {
  return { name: 'command', command: line, ...options };
}

/**
 * A running server: `address('http://127.0.0.1:8080')`. It is loaded, and otherwise left alone. `cgroup`: its control group, such as a
 * container's.
 */
export function address(
  origin: string,
  options: Omit<AddressServer, 'name' | 'origin'> = {},
): AddressServer {
  return { name: 'address', origin, ...options };
}
