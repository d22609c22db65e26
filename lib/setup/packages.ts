// Which package of which system brings a tool.
import { find, type Machine } from './machine.ts';

export type PackagedTool = 'nginx' | 'h2o' | 'nghttpd' | 'openssl' | 'influxd' | 'wrk' | 'ab' | 'h2load' | 'gcc' | 'chromium' | 'caddy' | 'lighttpd' | 'apache2' | 'haproxy' | 'sshd';

interface PackageManager {
  /** Its first word is the command that has to be there. */
  install: string;
  /** Package names as on the command line; absent where the distribution has no such package. */
  packages: Partial<Record<PackagedTool, string>>;
}

/** The names that all of them have. */
const alike = { nginx: 'nginx', openssl: 'openssl', wrk: 'wrk', gcc: 'gcc', chromium: 'chromium', caddy: 'caddy', lighttpd: 'lighttpd', haproxy: 'haproxy' };

const apt: PackageManager = {
  install: 'apt-get install --no-install-recommends',
  packages: {
    ...alike, h2o: 'h2o', nghttpd: 'nghttp2-server', influxd: 'influxdb', ab: 'apache2-utils', h2load: 'nghttp2-client', gcc: 'gcc libc6-dev',
    apache2: 'apache2', sshd: 'openssh-server',
  },
};

const packageManagers: readonly PackageManager[] = [
  apt,
  {
    install: 'dnf install',
    packages: { ...alike, nghttpd: 'nghttp2', ab: 'httpd-tools', h2load: 'nghttp2', sshd: 'openssh-server' },
  },
  {
    install: 'pacman -S',
    packages: { ...alike, influxd: 'influxdb', ab: 'apache', sshd: 'openssh' },
  },
  {
    install: 'zypper install',
    packages: { ...alike, nghttpd: 'nghttp2', ab: 'apache2-utils', h2load: 'nghttp2', apache2: 'apache2', sshd: 'openssh-server' },
  },
  {
    install: 'apk add',
    packages: { ...alike, h2o: 'h2o', nghttpd: 'nghttp2', influxd: 'influxdb', ab: 'apache2-utils', h2load: 'nghttp2', gcc: 'gcc musl-dev', sshd: 'openssh-server' },
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
  return apt.packages[tool]?.split(' ') ?? [];
}

/** How a person installs the tool on this machine: a command, or where to get it. */
export async function howToInstall(tool: PackagedTool, machine: Machine): Promise<string> {
  for (const manager of packageManagers) {
    const packages = manager.packages[tool];
    const [command = ''] = manager.install.split(' ');
    if (packages !== undefined && await find(command, machine) !== undefined) return `install it with: ${machine.isRoot ? '' : 'sudo '}${manager.install} ${packages}`;
  }
  return `get it from ${homePages[tool]}`;
}
