// Bars of ratios, published beside measured: of rows to their baseline, or of a ladder to its first row.
import { streamSweep } from '../../analysis/stream-sweep.ts';
import { times } from '../../format.ts';
import type { Comparison, Result } from '../../result/result.ts';
import { ladderOf, ladderPart } from '../ladder.ts';
import { figure, tableOf } from '../table.ts';
import { verdictCell } from '../verdict-cell.ts';
import type { Bar, Figure } from './figure.ts';

/** None where the article has no ratio to stand beside. Steps of a ladder and points of a curve are in figures of their own. */
export function ratioFigures(result: Result): Figure[] {
  const steps = new Set(ladderOf(result).map(({ step }) => step));
  const curve = streamSweep(result)?.line.variant.name;
  const compared = result.comparisons.filter((one) => !steps.has(one) && one.baseline !== curve && one.metric === 'rps' && (one.ratio > 0 || one.publishedRatio !== null));
  if (!compared.some(({ publishedRatio }) => publishedRatio !== null)) return [];
  const baselines = new Set(compared.map(({ baseline }) => baseline));
  const only = baselines.size === 1 ? [...baselines][0] : undefined;
  const nameOf = ({ variant, baseline }: Comparison): string => (only === undefined ? `${variant} against ${baseline}` : variant);
  return [{
    title: `requests/s against ${only ?? 'the baseline'}, published beside measured`,
    text: `Ratios: 1 is as many requests/s as ${only ?? 'the baseline'}. They are what two machines can be compared by.`,
    data: {
      kind: 'bars', axis: 'ratio', reference: 1,
      panels: [{ title: '', bars: compared.flatMap((one) => ratioBars(nameOf(one), one.publishedRatio, one.ratio === 0 ? null : one.ratio)) }],
    },
    tables: [tableOf(compared, [
      { group: '', title: 'variant', align: 'left', cell: nameOf },
      { group: '', title: 'published', align: 'right', cell: ({ publishedRatio }) => figure(publishedRatio, times) },
      { group: '', title: 'here', align: 'left', cell: (one) => verdictCell(one, result) },
    ])],
  }];
}

/** A ladder's bars, of measured and of published requests/s, each by those of the first row that has both. */
export function ladderFigures(result: Result): Figure[] {
  const rows = ladderOf(result).map(({ variant }) => ({ name: variant.name, here: variant.rps?.median ?? null, published: variant.published?.rps ?? null }));
  const first = rows.find(({ here, published }) => (here ?? 0) > 0 && published !== null) ?? rows.find(({ here }) => (here ?? 0) > 0);
  if (first === undefined) return [];
  const by = (value: number | null, unit: number | null): number | null => (value === null || unit === null ? null : value / unit);
  return [{
    title: 'Step by step, published beside measured',
    text: `requests/s by those of ${first.name}: 1 is as many.`,
    data: {
      kind: 'bars', axis: `ratio to ${first.name}`, reference: 1,
      panels: [{ title: '', bars: rows.flatMap(({ name, here, published }) => ratioBars(name, by(published, first.published), by(here, first.here))) }],
    },
    tables: ladderPart(result).flatMap(({ tables }) => tables),
  }];
}

function ratioBars(group: string, published: number | null, here: number | null): Bar[] {
  const bar = (value: number | null, isPublished: boolean): Bar[] => (
    value === null ? [] : [{ group, published: isPublished, value, label: times(value) }]
  );
  return [...bar(published, true), ...bar(here, false)];
}
