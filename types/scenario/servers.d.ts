// Made of lib/scenario/servers.ts by `npm run types`.
import type { ServerSpec } from './model.ts';
export type ServerOptions = Omit<ServerSpec, 'name' | 'config'>;
/** An nginx whose config is composed of these files of `server-configs/nginx/` (without `.conf`), or of your own (./knob.conf), the base first. */
export declare function nginx(config: readonly string[], options: ServerOptions): ServerSpec;
/** An h2o whose config is composed of these files of `server-configs/h2o/` (without `.conf`), or of your own (./knob.conf), the base first. */
export declare function h2o(config: readonly string[], options: ServerOptions): ServerSpec;
/** An nghttpd whose command line is composed of these files of `server-configs/nghttpd/` (without `.conf`), or of your own (./knob.conf), the base first. It speaks HTTP/2 only. */
export declare function nghttpd(config: readonly string[], options: ServerOptions): ServerSpec;
