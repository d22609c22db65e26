// Which lines of two texts differ.
import { diffArrays } from 'diff';

export interface DiffLine { kind: 'same' | 'added' | 'removed'; text: string }

/** Lines around a difference that are shown with it. */
const context = 2;

/** Where more lines differ, all count as different: the time to find them grows with the square. */
const mostEdits = 3000;

/**
 * The fewest lines to take from `before` and to put in to come to `after`. `keyOf` says what of a line counts; the text shown is that
 * of `after`.
 */
export function diffLines(before: readonly string[], after: readonly string[], keyOf: (line: string) => string = (line) => line): DiffLine[] {
  const keyed = (lines: readonly string[]): { key: string; text: string }[] => lines.map((text) => ({ key: keyOf(text), text }));
  const [a, b] = [keyed(before), keyed(after)];
  const parts = diffArrays(a, b, { comparator: (one, other) => one.key === other.key, maxEditLength: mostEdits });
  return (parts ?? [{ value: a, removed: true, added: false }, { value: b, removed: false, added: true }]).flatMap(({ value, added, removed }) => (
    value.map(({ text }): DiffLine => ({ kind: added ? 'added' : removed ? 'removed' : 'same', text }))
  ));
}

/** The lines that differ with those around them; 'gap' where lines after these are left out. */
export function nearDifferences(lines: readonly DiffLine[]): (DiffLine | 'gap')[] {
  const near = lines.map((_, index) => lines.slice(Math.max(0, index - context), index + context + 1).some(({ kind }) => kind !== 'same'));
  return lines.flatMap((line, index): (DiffLine | 'gap')[] => (near[index] === true ? [line] : near[index - 1] === true ? ['gap'] : []));
}
