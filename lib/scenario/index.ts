// What a scenario file imports.
import type { AddressServer, CommandServer, ConfiguredServer, ServerName } from './model.ts';

export { defineScenario } from './define-scenario.ts';
export type {
  AddressServer,
  CommandServer,
  ConfiguredServer,
  LaidLines,
  LinkDirection,
  LoadProfile,
  NetworkSpec,
  Page,
  Published,
  PublishedDistribution,
  Scenario,
  ServerSpec,
  TlsOffer,
  Variant,
} from './model.ts';
export { h2load, type H2loadOptions } from './load/generators.ts';
export { ab, weighttp, wrk } from './load/generators.ts';
export { vegeta, type VegetaOptions } from './load/generators.ts';

// Servers as a scenario names them. What starts them is lib/servers.

export type ServerOptions = Omit<ConfiguredServer, 'name' | 'config'>;

type Composed = (config: readonly string[], options: ServerOptions) => ConfiguredServer;
const composed =
  (name: ServerName): Composed =>
  (config, options) => ({ name, config, ...options });

/** An nginx whose config is composed of these files of `server-configs/nginx/` (without `.conf`), or of your own (./knob.conf), the base first. */
export const nginx = composed('nginx');

/** An h2o whose config is composed of these files of `server-configs/h2o/` (without `.conf`), or of your own (./knob.conf), the base first. */
export const h2o = composed('h2o');

/** An nghttpd whose command line is composed of these files of `server-configs/nghttpd/` (without `.conf`), or of your own (./knob.conf), the base first. It speaks HTTP/2 only. */
export const nghttpd = composed('nghttpd');

/** A command of your own: `command('node server.js')`, `command('caddy file-server --listen 127.0.0.1:{port} --root www')`. */
export function command(
  line: string,
  options: Omit<CommandServer, 'name' | 'command'> = {},
): CommandServer {
  return { name: 'command', command: line, ...options };
}

/** Something that runs already: `address('http://127.0.0.1:8080')`. It is loaded, and otherwise left alone. */
export function address(origin: string): AddressServer {
  return { name: 'address', origin };
}
