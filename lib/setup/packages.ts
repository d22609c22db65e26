// Which package of which system brings a tool.
import { find, type Machine } from './machine.ts';

export type PackagedTool = 'nginx' | 'h2o' | 'nghttpd' | 'openssl' | 'influxd' | 'wrk' | 'ab' | 'h2load' | 'gcc' | 'chromium' | 'caddy' | 'lighttpd' | 'apache2' | 'haproxy' | 'sshd';

interface PackageManager {
  command: string;
  install: string;
  /** Package names as on the command line; absent where the distribution has no such package. */
  packages: Partial<Record<PackagedTool, string>>;
}

const packageManagers: readonly PackageManager[] = [
  {
    command: 'apt-get',
    install: 'apt-get install --no-install-recommends',
    packages: {
      nginx: 'nginx', h2o: 'h2o', nghttpd: 'nghttp2-server', openssl: 'openssl', influxd: 'influxdb',
      wrk: 'wrk', ab: 'apache2-utils', h2load: 'nghttp2-client', gcc: 'gcc libc6-dev', chromium: 'chromium',
      caddy: 'caddy', lighttpd: 'lighttpd', apache2: 'apache2', haproxy: 'haproxy', sshd: 'openssh-server',
    },
  },
  {
    command: 'dnf',
    install: 'dnf install',
    packages: { nginx: 'nginx', nghttpd: 'nghttp2', openssl: 'openssl', wrk: 'wrk', ab: 'httpd-tools', h2load: 'nghttp2', gcc: 'gcc', chromium: 'chromium', caddy: 'caddy', lighttpd: 'lighttpd', haproxy: 'haproxy', sshd: 'openssh-server' },
  },
  {
    command: 'pacman',
    install: 'pacman -S',
    packages: { nginx: 'nginx', openssl: 'openssl', influxd: 'influxdb', wrk: 'wrk', ab: 'apache', gcc: 'gcc', chromium: 'chromium', caddy: 'caddy', lighttpd: 'lighttpd', haproxy: 'haproxy', sshd: 'openssh' },
  },
  {
    command: 'zypper',
    install: 'zypper install',
    packages: { nginx: 'nginx', nghttpd: 'nghttp2', openssl: 'openssl', wrk: 'wrk', ab: 'apache2-utils', h2load: 'nghttp2', gcc: 'gcc', chromium: 'chromium', caddy: 'caddy', lighttpd: 'lighttpd', apache2: 'apache2', haproxy: 'haproxy', sshd: 'openssh-server' },
  },
  {
    command: 'apk',
    install: 'apk add',
    packages: {
      nginx: 'nginx', h2o: 'h2o', nghttpd: 'nghttp2', openssl: 'openssl', influxd: 'influxdb',
      wrk: 'wrk', ab: 'apache2-utils', h2load: 'nghttp2', gcc: 'gcc musl-dev', chromium: 'chromium', caddy: 'caddy', lighttpd: 'lighttpd', haproxy: 'haproxy', sshd: 'openssh-server',
    },
  },
];

const homePages: Record<PackagedTool, string> = {
  nginx: 'https://nginx.org/en/linux_packages.html',
  h2o: 'https://h2o.examp1e.net/install.html',
  nghttpd: 'https://nghttp2.org',
  openssl: 'https://www.openssl.org',
  influxd: 'https://docs.influxdata.com/influxdb/v1/introduction/install/',
  wrk: 'https://github.com/wg/wrk',
  ab: 'https://httpd.apache.org',
  h2load: 'https://nghttp2.org',
  gcc: 'https://gcc.gnu.org',
  chromium: 'https://www.chromium.org',
  caddy: 'https://caddyserver.com/docs/install',
  lighttpd: 'https://www.lighttpd.net',
  apache2: 'https://httpd.apache.org',
  haproxy: 'https://www.haproxy.org',
  sshd: 'https://www.openssh.com/portable.html',
};

/** The names of a tool's packages on a system with apt. */
export function aptPackages(tool: PackagedTool): string[] {
  return packageManagers[0]?.packages[tool]?.split(' ') ?? [];
}

/** How a person installs the tool on this machine: a command, or where to get it. */
export async function howToInstall(tool: PackagedTool, machine: Machine): Promise<string> {
  for (const manager of packageManagers) {
    if (await find(manager.command, machine) === undefined) continue;
    const packages = manager.packages[tool];
    if (packages !== undefined) return `install it with: ${machine.isRoot ? '' : 'sudo '}${manager.install} ${packages}`;
  }
  return `get it from ${homePages[tool]}`;
}
