// Who set the pace.
import { limitOf, usableCores } from '../analysis/limit.ts';
import { groupedBy } from '../analysis/statistics.ts';
import { percentRange } from '../format.ts';
import { sharesCores } from '../machine/cores.ts';
import { formatCpuList } from '../machine/processors.ts';
import type { Result, VariantResult } from '../result/result.ts';

/** "core 1", "cores 4-7". */
export function coresText(cpus: readonly number[]): string {
  return `${cpus.length === 1 ? 'core' : 'cores'} ${formatCpuList(cpus)}`;
}

/** One sentence on who was at its limit, with the share of CPU that each side used in the variants. */
export function limitLines({ variants, environment }: Result): string[] {
  const measured = variants.filter(({ generatorShare }) => generatorShare !== null);
  const servers = groupedBy(
    measured.filter(({ serverShare }) => serverShare !== null),
    ({ server }) => server?.name ?? '',
  );
  const isShared = sharesCores(environment);
  // On shared cores the generator alone says nothing.
  if (measured.length === 0 || (isShared && servers.size === 0)) return [];
  const cores = {
    server: environment.serverCpus.length,
    generator: environment.generatorCpus.length,
  };
  // On shared cores both are shares of all of them, so that they add up.
  const used = (variant: VariantResult, side: 'server' | 'generator'): number =>
    (variant[`${side}Share`] ?? 0) *
    (isShared ? usableCores(variant, cores)[side] / cores[side] : 1);
  const uses = [
    ...[...servers].map(
      ([name, its]) => `${name} at ${percentRange(its.map((one) => used(one, 'server')))}`,
    ),
    `the generator at ${percentRange(measured.map((one) => used(one, 'generator')))}`,
  ].join(', ');
  return [
    isShared
      ? `Server and generator shared ${coresText(environment.serverCpus)}: ${uses} of them.`
      : `${limitWords(measured, [...servers.keys()])}: ${uses} of its available CPU.`,
  ];
}

function limitWords(measured: readonly VariantResult[], servers: readonly string[]): string {
  const limits = measured.map(limitOf);
  const isLimit = (side: 'server' | 'generator'): boolean =>
    limits.every((one) => one === side || one === 'both');
  if (isLimit('server') && isLimit('generator')) return 'Both sides were at their limit';
  if (isLimit('server'))
    return servers.length === 1 ? `${servers[0]} was the limit` : 'The servers were the limit';
  if (isLimit('generator')) return 'The generator was the limit';
  return limits.every((one) => one === 'neither') ? 'Neither was the limit' : 'Use of the cores';
}
