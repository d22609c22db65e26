// Servers as a scenario names them. What starts them is lib/servers.
import type { AddressServer, CommandServer, ConfiguredServer } from './model.ts';

export type ServerOptions = Omit<ConfiguredServer, 'name' | 'config'>;

/** An nginx whose config is composed of these files of `server-configs/nginx/` (without `.conf`), or of your own (./knob.conf), the base first. */
export function nginx(config: readonly string[], options: ServerOptions): ConfiguredServer {
  return { name: 'nginx', config, ...options };
}

/** An h2o whose config is composed of these files of `server-configs/h2o/` (without `.conf`), or of your own (./knob.conf), the base first. */
export function h2o(config: readonly string[], options: ServerOptions): ConfiguredServer {
  return { name: 'h2o', config, ...options };
}

/** An nghttpd whose command line is composed of these files of `server-configs/nghttpd/` (without `.conf`), or of your own (./knob.conf), the base first. It speaks HTTP/2 only. */
export function nghttpd(config: readonly string[], options: ServerOptions): ConfiguredServer {
  return { name: 'nghttpd', config, ...options };
}

/** A command of your own: `command('node server.js')`, `command('caddy file-server --listen 127.0.0.1:{port} --root www')`. */
export function command(line: string, options: Omit<CommandServer, 'name' | 'command'> = {}): CommandServer {
  return { name: 'command', command: line, ...options };
}

/** Something that runs already: `address('http://127.0.0.1:8080')`. It is loaded, and otherwise left alone. */
export function address(origin: string): AddressServer {
  return { name: 'address', origin };
}
