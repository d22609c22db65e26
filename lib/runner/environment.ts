// What a result says about the machine it was measured on.
import { readFileSync } from 'node:fs';
import os from 'node:os';
import type { Environment } from './result.ts';
import type { Cores } from './cores.ts';
import packageJson from '../../package.json' with { type: 'json' };

/** Facts about this machine now. `versions`: of the tools, by name. */
export function readEnvironment(cores: Cores, versions: Record<string, string>): Environment {
  const processors = os.cpus();
  return {
    bakeoff: packageJson.version,
    cpuModel: processors[0]?.model.trim() || os.machine(),
    cores: processors.length,
    memoryBytes: os.totalmem(),
    kernel: `${os.type()} ${os.release()}`,
    os: /^PRETTY_NAME="?([^"\n]*)"?$/m.exec(readOrEmpty('/etc/os-release'))?.[1] ?? os.platform(),
    governor: readOrEmpty('/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor').trim() || null,
    loadAverage: os.loadavg() as [number, number, number],
    serverCpus: cores.serverCpus,
    generatorCpus: cores.generatorCpus,
    versions: { node: process.versions.node, ...versions },
  };
}

function readOrEmpty(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}
