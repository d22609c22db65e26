// Which cores the server and the generator get.
import { readFileSync } from 'node:fs';
import { UserError } from '../errors.ts';
import type { Scenario } from '../scenario/model.ts';

export interface Cores { serverCpus: number[]; generatorCpus: number[] }

/** Whether server and generator run on the same cores; if on some of them, then on all. */
export function sharesCores({ serverCpus, generatorCpus }: { serverCpus: readonly number[]; generatorCpus: readonly number[] }): boolean {
  return serverCpus.some((cpu) => generatorCpus.includes(cpu));
}

/**
 * Parses a list of cores as taskset and the kernel write it: "0-3,5". Sorted, each once.
 * @throws UserError (exit code 2) that names the flag
 */
export function parseCpuList(text: string, flag: string): number[] {
  const cpus = new Set<number>();
  for (const part of text.split(',')) {
    const match = /^\s*(\d{1,4})(?:-(\d{1,4}))?\s*$/.exec(part);
    const first = Number(match?.[1]);
    const last = Number(match?.[2] ?? match?.[1]);
    if (match === null || last < first) throw new UserError(`${flag} ${text}: write cores as 1 or 0-3,5`, 2);
    for (let cpu = first; cpu <= last; cpu++) cpus.add(cpu);
  }
  return [...cpus].sort((a, b) => a - b);
}

/** The cores that this process may run on: taskset and cpusets count, a container's too; a quota of CPU time does not. */
export function allowedCpus(): number[] {
  const list = /^Cpus_allowed_list:\s*(\S+)$/m.exec(readFileSync('/proc/self/status', 'utf8'))?.[1];
  if (list === undefined) throw new UserError('cannot read the allowed cores from /proc/self/status: bakeoff needs Linux');
  return parseCpuList(list, 'Cpus_allowed_list');
}

/**
 * Divides the cores: half and half unless told, the server gets the upper half, the generator the odd one (the runner and
 * InfluxDB run on its cores as well). When one side is told, the other gets the rest. A scenario with `sharedCores` gives
 * both all of them unless told, and they may be told the same ones.
 * @throws UserError on an overlap (of a scenario with `sharedCores`: on one in part), on cores that are not there or not allowed, and when one core is all there is
 */
export function divideCores(
  allowed: readonly number[], asked: { server?: readonly number[] | undefined; generator?: readonly number[] | undefined },
  { sharedCores }: Pick<Scenario, 'sharedCores'> = {},
): Cores {
  check(asked.server, '--server-cpus');
  check(asked.generator, '--generator-cpus');
  const shared = asked.server?.filter((cpu) => asked.generator?.includes(cpu)) ?? [];
  const bothSame = asked.server?.join() === asked.generator?.join();
  if (sharedCores && bothSame) return { serverCpus: [...(asked.server ?? allowed)], generatorCpus: [...(asked.server ?? allowed)] };
  if (shared.length > 0) {
    const inPart = sharedCores ? 'both the same ones, or each its own' : 'each its own';
    throw new UserError(`--server-cpus and --generator-cpus share core ${formatCpuList(shared)}: give ${inPart}`, 2);
  }
  if (allowed.length < 2) {
    throw new UserError(`a comparison needs 2 cores, one for the server and one for the generator; only core ${formatCpuList(allowed)} is allowed here`);
  }
  const rest = (taken: readonly number[]): number[] => allowed.filter((cpu) => !taken.includes(cpu));
  const half = Math.ceil(allowed.length / 2);
  const serverCpus = asked.server ?? (asked.generator === undefined ? allowed.slice(half) : rest(asked.generator));
  const generatorCpus = asked.generator ?? (asked.server === undefined ? allowed.slice(0, half) : rest(asked.server));
  if (serverCpus.length === 0) throw new UserError('--generator-cpus leaves no core for the server: name fewer', 2);
  if (generatorCpus.length === 0) throw new UserError('--server-cpus leaves no core for the generator: name fewer', 2);
  return { serverCpus: [...serverCpus], generatorCpus: [...generatorCpus] };

  function check(cpus: readonly number[] | undefined, flag: string): void {
    const missing = cpus?.filter((cpu) => !allowed.includes(cpu)) ?? [];
    if (missing.length > 0) {
      throw new UserError(`${flag}: core ${formatCpuList(missing)} is not there or not allowed; there are ${formatCpuList(allowed)}`, 2);
    }
  }
}

/** Writes cores as a list of ranges: [0, 1, 2, 5] is "0-2,5". */
export function formatCpuList(cpus: readonly number[]): string {
  const ranges: string[] = [];
  for (let from = 0; from < cpus.length;) {
    let to = from;
    while (cpus[to + 1] === (cpus[to] as number) + 1) to++;
    ranges.push(from === to ? `${cpus[from]}` : `${cpus[from]}-${cpus[to]}`);
    from = to + 1;
  }
  return ranges.join(',');
}
