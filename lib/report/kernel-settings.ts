// Kernel settings of a run's own namespaces: those that hold, and each that this kernel would not take.
import { enumeration } from '../format.ts';
import type { KernelSetting } from '../result/network.ts';
import type { Result } from '../result/result.ts';
import { groupedBy } from './grouped.ts';

/** Two lines at most for each side and the variants that ask for the same; none without settings. */
export function kernelSettingLines({ kernelSettings, variants }: Pick<Result, 'kernelSettings' | 'variants'>): string[] {
  const inNamespaces = variants.filter(({ network }) => network !== null).map(({ name }) => name);
  const groups = groupedBy(kernelSettings, ({ side, variants: names }) => `${namesText(names, inNamespaces)}: kernel settings in the ${side}'s namespace`);
  return [...groups].flatMap(([where, settings]) => {
    const holding = settings.filter(({ problem }) => problem === undefined);
    const problems = groupedBy(settings.filter(({ problem }) => problem !== undefined), ({ problem }) => String(problem));
    const missing = [...problems].map(([problem, some]) => `${enumeration(some.map(written))} (${problem})`);
    return [
      ...(holding.length === 0 ? [] : [`${where}: ${holding.map(written).join(', ')}.`]),
      ...(missing.length === 0 ? [] : [`${where} that were asked for and do not hold: ${missing.join(', ')}.`]),
    ];
  });
}

function namesText(names: readonly string[], all: readonly string[]): string {
  const others = all.filter((name) => !names.includes(name));
  if (all.length < 2 || names.length <= 2 * others.length) return names.join(', ');
  return others.length === 0 ? 'every variant' : `every variant but ${enumeration(others)}`;
}

/** "net.core.somaxconn=128", as sysctl takes it. */
function written({ name, value }: KernelSetting): string {
  return `${name}=${value}`;
}
