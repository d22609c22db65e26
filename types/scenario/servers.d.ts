// Made of lib/scenario/servers.ts by `npm run types`.
import type { AddressServer, CommandServer, ConfiguredServer } from './model.ts';
export type ServerOptions = Omit<ConfiguredServer, 'name' | 'config'>;
/** An nginx whose config is composed of these files of `server-configs/nginx/` (without `.conf`), or of your own (./knob.conf), the base first. */
export declare function nginx(config: readonly string[], options: ServerOptions): ConfiguredServer;
/** An h2o whose config is composed of these files of `server-configs/h2o/` (without `.conf`), or of your own (./knob.conf), the base first. */
export declare function h2o(config: readonly string[], options: ServerOptions): ConfiguredServer;
/** An nghttpd whose command line is composed of these files of `server-configs/nghttpd/` (without `.conf`), or of your own (./knob.conf), the base first. It speaks HTTP/2 only. */
export declare function nghttpd(config: readonly string[], options: ServerOptions): ConfiguredServer;
/** A command of your own: `command('node server.js')`, `command('caddy file-server --listen 127.0.0.1:{port} --root www')`. */
export declare function command(line: string, options?: Omit<CommandServer, 'name' | 'command'>): CommandServer;
/** Something that runs already: `address('http://127.0.0.1:8080')`. It is loaded, and otherwise left alone. */
export declare function address(origin: string): AddressServer;
