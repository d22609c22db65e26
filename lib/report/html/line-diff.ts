// Which lines of two texts differ.

export interface DiffLine { kind: 'same' | 'added' | 'removed'; text: string }

/** Lines around a difference that are shown with it. */
const context = 2;

/** Above so many pairs of lines that may differ, all of them count as different. */
const mostPairs = 4e6;

/**
 * The fewest lines to take from `before` and to put in to come to `after`: their longest common subsequence stays.
 * `keyOf` says what of a line counts; the text shown is that of `after`.
 */
export function diffLines(before: readonly string[], after: readonly string[], keyOf: (line: string) => string = (line) => line): DiffLine[] {
  const [a, b] = [before.map(keyOf), after.map(keyOf)];
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start++;
  let end = 0;
  while (end < a.length - start && end < b.length - start && a[a.length - 1 - end] === b[b.length - 1 - end]) end++;
  const same = (lines: readonly string[]): DiffLine[] => lines.map((text) => ({ kind: 'same', text }));
  return [
    ...same(after.slice(0, start)),
    ...middle(before.slice(start, a.length - end), after.slice(start, b.length - end), keyOf),
    ...same(after.slice(b.length - end)),
  ];
}

/** The lines that differ with those around them; 'gap' where lines after these are left out. */
export function nearDifferences(lines: readonly DiffLine[]): (DiffLine | 'gap')[] {
  const near = lines.map((_, index) => lines.slice(Math.max(0, index - context), index + context + 1).some(({ kind }) => kind !== 'same'));
  return lines.flatMap((line, index): (DiffLine | 'gap')[] => (near[index] === true ? [line] : near[index - 1] === true ? ['gap'] : []));
}

/** By the table of the common subsequences' lengths, from the ends backwards. */
function middle(before: readonly string[], after: readonly string[], keyOf: (line: string) => string): DiffLine[] {
  const removed = (text: string): DiffLine => ({ kind: 'removed', text });
  const added = (text: string): DiffLine => ({ kind: 'added', text });
  if (before.length * after.length > mostPairs) return [...before.map(removed), ...after.map(added)];
  const [a, b] = [before.map(keyOf), after.map(keyOf)];
  const width = b.length + 1;
  const lengths = new Uint32Array((a.length + 1) * width);
  const at = (i: number, j: number): number => lengths[i * width + j] ?? 0;
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--) {
      lengths[i * width + j] = a[i] === b[j] ? at(i + 1, j + 1) + 1 : Math.max(at(i + 1, j), at(i, j + 1));
    }
  }
  const lines: DiffLine[] = [];
  let [i, j] = [0, 0];
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) {
      lines.push({ kind: 'same', text: after[j++] as string });
      i++;
    } else if (i < a.length && (j === b.length || at(i + 1, j) >= at(i, j + 1))) {
      lines.push(removed(before[i++] as string));
    } else {
      lines.push(added(after[j++] as string));
    }
  }
  return lines;
}
