// The servers whose configs bakeoff writes and reads, with their facts. Their code is in lib/servers/kinds.ts.
import { enumeration } from '../format.ts';
import { keysOf } from '../present.ts';

/**
 * `configs`: the shipped ones in server-configs/, without `.conf`, which editors complete. `contexts`: the blocks that lines can be added to.
 * `packages`: by package manager, `all` for the others, and the server's page. `imageVersion`: the one that docker/Dockerfile installs.
 */
export const servers = {
  nginx: {
    configs: [
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
    contexts: ['main', 'events', 'http', 'server'],
    http2Only: false,
    imageVersion: '1.22.1',
    packages: { page: 'https://nginx.org/en/linux_packages.html', all: 'nginx' },
  },
  h2o: {
    configs: ['base', 'h2', 'h2-tuned', 'tuned'],
    contexts: ['top', 'ssl'],
    http2Only: false,
    imageVersion: '2.2.5',
    packages: { page: 'https://h2o.examp1e.net/install.html', 'apt-get': 'h2o', apk: 'h2o' },
  },
  nghttpd: {
    configs: ['h2', 'streams-1024'],
    contexts: ['flags'],
    http2Only: true,
    imageVersion: '1.52.0',
    packages: {
      page: 'https://nghttp2.org',
      'apt-get': 'nghttp2-server',
      dnf: 'nghttp2',
      zypper: 'nghttp2',
      apk: 'nghttp2',
    },
  },
} as const;

export type ServerName = keyof typeof servers;

export const serverNames = keysOf<ServerName>(servers);

/** The servers' names for sentences: "nginx, h2o or nghttpd". */
export const anyServer = enumeration(serverNames, 'or');

export function isServerName(name: string): name is ServerName {
  return Object.hasOwn(servers, name);
}
