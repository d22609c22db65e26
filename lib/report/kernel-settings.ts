// Kernel settings of a run's own namespaces: those that hold, and each that this kernel would not take.
import { enumeration } from '../format.ts';
import type { KernelSetting, Result } from '../runner/result.ts';

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
  return all.length > 1 && all.every((name) => names.includes(name)) ? 'every variant' : names.join(', ');
}

/** "net.core.somaxconn=128", as sysctl takes it. */
function written({ name, value }: KernelSetting): string {
  return `${name}=${value}`;
}

function groupedBy(settings: readonly KernelSetting[], keyOf: (setting: KernelSetting) => string): Map<string, KernelSetting[]> {
  const groups = new Map<string, KernelSetting[]>();
  for (const setting of settings) groups.set(keyOf(setting), [...(groups.get(keyOf(setting)) ?? []), setting]);
  return groups;
}
