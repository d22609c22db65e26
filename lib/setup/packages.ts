// Which package of which system brings a tool.
import { find, type Machine } from './machine.ts';

export type PackagedTool = 'nginx' | 'influxd' | 'wrk' | 'ab' | 'gcc';

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
    packages: { nginx: 'nginx', influxd: 'influxdb', wrk: 'wrk', ab: 'apache2-utils', gcc: 'gcc libc6-dev' },
  },
  { command: 'dnf', install: 'dnf install', packages: { nginx: 'nginx', wrk: 'wrk', ab: 'httpd-tools', gcc: 'gcc' } },
  { command: 'pacman', install: 'pacman -S', packages: { nginx: 'nginx', influxd: 'influxdb', wrk: 'wrk', ab: 'apache', gcc: 'gcc' } },
  { command: 'zypper', install: 'zypper install', packages: { nginx: 'nginx', wrk: 'wrk', ab: 'apache2-utils', gcc: 'gcc' } },
  { command: 'apk', install: 'apk add', packages: { nginx: 'nginx', influxd: 'influxdb', wrk: 'wrk', ab: 'apache2-utils', gcc: 'gcc musl-dev' } },
];

const homePages: Record<PackagedTool, string> = {
  nginx: 'https://nginx.org/en/linux_packages.html',
  influxd: 'https://docs.influxdata.com/influxdb/v1/introduction/install/',
  wrk: 'https://github.com/wg/wrk',
  ab: 'https://httpd.apache.org',
  gcc: 'https://gcc.gnu.org',
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
