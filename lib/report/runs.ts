// The rows of the tables that show what load tools print of a run: published above measured, per variant and load phase.
import { phasePairs } from '../analysis/phases.ts';
import { exactPercent } from '../format.ts';
import type { Distribution, PhaseResult, VariantResult } from '../result/result.ts';
import type { Published, PublishedDistribution } from '../scenario/model.ts';
import { figure, tableOf, type Column, type Table } from './table.ts';

/** A row's name and its figures in the shape of the tool's lines. */
type Named<Run> = Run & { name: string };

/** How the figures come into that shape. */
export interface Readings<Run> { published(figures: Published): Run; measured(phase: PhaseResult): Run }

/** One row per variant, phase and source; what was not published, or not measured, has none. */
export function runsOf<Run>(variants: readonly VariantResult[], { published: read, measured: readMeasured }: Readings<Run>): Named<Run>[] {
  const width = widestName(variants);
  const several = variants.some((variant) => phasePairs(variant).length > 1);
  return variants.flatMap((variant) => phasePairs(variant).flatMap(({ phase, published, measured }) => {
    const name = `${variant.name.padEnd(width)}  ${several ? `${phase}  ` : ''}`;
    return [
      ...(published === undefined ? [] : [{ ...read(published), name: `${name}published` }]),
      ...(measured === undefined ? [] : [{ ...readMeasured(measured), name: `${name}here` }]),
    ];
  }));
}

/** Characters of the longest of their names. */
export function widestName(variants: readonly VariantResult[]): number {
  return Math.max(...variants.map(({ name }) => name.length));
}

/** A table of such rows under a title of its own. */
export function runTable<Run>(runs: readonly Named<Run>[], title: string, columns: readonly Column<Named<Run>>[]): Table {
  return tableOf(runs, [{ group: '', title, align: 'left', cell: ({ name }) => name }, ...columns]);
}

/** A column of figures. */
export function column<Run>(title: string, cell: (run: Run) => string): Column<Run> {
  return { group: '', title, align: 'right', cell };
}

/** The columns of a distribution, by the tool's own names for its figures. */
export function distributionColumns<Run>(
  names: Partial<Record<keyof PublishedDistribution, string>>, of: (run: Run) => PublishedDistribution | undefined, format: (value: number) => string,
): Column<Run>[] {
  return (Object.entries(names) as [keyof PublishedDistribution, string][]).map(([part, name]) => (
    column(name, (run) => figure(of(run)?.[part], part === 'withinSdPercent' ? exactPercent : format))
  ));
}

/** A measured distribution as articles print one; of nothing it is all zeros, and none then. */
export function distribution({ min, mean, sd, max, withinSd }: Distribution): PublishedDistribution | undefined {
  return max === 0 ? undefined : { min, mean, sd, max, withinSdPercent: withinSd * 100 };
}
