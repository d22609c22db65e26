// Which package of which system brings a tool.
import { find, type Machine } from './machine.ts';

/** How packages are installed, by the command that has to be there. */
const installs = {
  'apt-get': 'apt-get install --no-install-recommends',
  dnf: 'dnf install',
  pacman: 'pacman -S',
  zypper: 'zypper install',
  apk: 'apk add',
} as const;

type Manager = keyof typeof installs;

/** `all`: the packages' names wherever nothing else is said; a system without either has no such package. `page`: of the tool itself. */
type Packaged = { page: string; all?: string } & { [M in Manager]?: string };

const packaged = {
  nginx: { page: 'https://nginx.org/en/linux_packages.html', all: 'nginx' },
  h2o: { page: 'https://h2o.examp1e.net/install.html', 'apt-get': 'h2o', apk: 'h2o' },
  nghttpd: {
    page: 'https://nghttp2.org',
    'apt-get': 'nghttp2-server',
    dnf: 'nghttp2',
    zypper: 'nghttp2',
    apk: 'nghttp2',
  },
  openssl: { page: 'https://www.openssl.org', all: 'openssl' },
  influxd: {
    page: 'https://docs.influxdata.com/influxdb/v1/introduction/install/',
    'apt-get': 'influxdb',
    pacman: 'influxdb',
    apk: 'influxdb',
  },
  wrk: { page: 'https://github.com/wg/wrk', all: 'wrk' },
  ab: {
    page: 'https://httpd.apache.org',
    all: 'apache2-utils',
    dnf: 'httpd-tools',
    pacman: 'apache',
  },
  h2load: {
    page: 'https://nghttp2.org',
    'apt-get': 'nghttp2-client',
    dnf: 'nghttp2',
    zypper: 'nghttp2',
    apk: 'nghttp2',
  },
  gcc: { page: 'https://gcc.gnu.org', all: 'gcc', 'apt-get': 'gcc libc6-dev', apk: 'gcc musl-dev' },
  chromium: { page: 'https://www.chromium.org', all: 'chromium' },
  caddy: { page: 'https://caddyserver.com/docs/install', all: 'caddy' },
  lighttpd: { page: 'https://www.lighttpd.net', all: 'lighttpd' },
  apache2: { page: 'https://httpd.apache.org', 'apt-get': 'apache2', zypper: 'apache2' },
  haproxy: { page: 'https://www.haproxy.org', all: 'haproxy' },
  sshd: { page: 'https://www.openssh.com/portable.html', all: 'openssh-server', pacman: 'openssh' },
} satisfies Record<string, Packaged>;

export type PackagedTool = keyof typeof packaged;

function packagesOf(tool: PackagedTool, manager: Manager): string | undefined {
  const { [manager]: own, all }: Packaged = packaged[tool];
  return own ?? all;
}

/** The names of a tool's packages on a system with apt. */
export function aptPackages(tool: PackagedTool): string[] {
  return packagesOf(tool, 'apt-get')?.split(' ') ?? [];
}

/** How a person installs the tool on this machine: a command, or where to get it. */
export async function howToInstall(tool: PackagedTool, machine: Machine): Promise<string> {
  for (const [manager, install] of Object.entries(installs)) {
    const packages = packagesOf(tool, manager as Manager);
    if (packages !== undefined && (await find(manager, machine)) !== undefined)
      return `install it with: ${machine.isRoot ? '' : 'sudo '}${install} ${packages}`;
  }
  return `get it from ${packaged[tool].page}`;
}
