/** The names of the shipped configs in server-configs/, without `.conf`, which editors complete. */
import type { ServerName } from './model.ts';

export const shippedConfigs = {
  nginx: [
    'accept-mutex-delay',
    'access-log-off',
    'backlog-16384',
    'base',
    'connections-1024',
    'connections-640',
    'curve-p256',
    'error-log-info',
    'h2',
    'h2-tuned',
    'keepalive-unlimited',
    'open-file-cache',
    'packaged',
    'small-file',
    'small-file-h2',
    'tcp-nopush',
    'tls',
    'workers',
  ],
  h2o: ['base', 'h2', 'h2-tuned', 'tuned'],
  nghttpd: ['h2', 'streams-1024'],
} as const satisfies Record<ServerName, readonly string[]>;

/** A shipped config, which an editor completes, or a path of your own. */
export type ConfigName<Server extends ServerName> =
  (typeof shippedConfigs)[Server][number] | (string & {});
