// What a result says about the machine it was measured on.
import os from 'node:os';
import { textOf } from '../read-if-there.ts';
import type { Environment } from '../result/result.ts';
import { coreNotes, type Cores } from './cores.ts';
import type { Processors } from './processors.ts';
import packageJson from '../../package.json' with { type: 'json' };

/** Facts about this machine now. `processors`: those that may be used, of which `cores` are; `versions`: of the tools, by name. */
export function readEnvironment(
  processors: Processors,
  cores: Cores,
  versions: Record<string, string>,
): Environment {
  const cpus = os.cpus();
  const bootedAtSeconds = Number(
    /^btime (\d+)$/m.exec(textOf('/proc/stat'))?.[1] ?? Math.round(Date.now() / 1000 - os.uptime()),
  );
  return {
    bakeoff: packageJson.version,
    cpuModel: cpus[0]?.model.trim() || os.machine(),
    cores: cpus.length,
    memoryBytes: os.totalmem(),
    kernel: `${os.type()} ${os.release()}`,
    os: /^PRETTY_NAME="?([^"\n]*)"?$/m.exec(textOf('/etc/os-release'))?.[1] ?? os.platform(),
    governor: textOf('/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor').trim() || null,
    bootedAt: new Date(1000 * bootedAtSeconds).toISOString(),
    bootId: textOf('/proc/sys/kernel/random/boot_id').trim(),
    loadAverage: os.loadavg() as [number, number, number],
    serverCpus: cores.serverCpus,
    generatorCpus: cores.generatorCpus,
    ...(processors.quota === Infinity ? {} : { cpuQuota: processors.quota }),
    coreNotes: coreNotes(processors, cores),
    versions: { node: process.versions.node, ...versions },
  };
}
