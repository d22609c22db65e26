// What was counted, in words.
import { amountText, differenceText, enumeration } from '../../format.ts';
import type { Contribution } from '../../report/contribution.ts';
import { figure, leftColumn, rightColumn, tableOf, type Table } from '../../report/table.ts';
import { countNames, type Counted, type CountName } from '../../result/counts.ts';
import type { Result } from '../../result/result.ts';
import { differs, meanOf, type CountDifference, type CountedSide } from './difference.ts';

/** In the table, a single one, and as what a side does. */
const words: Readonly<Record<CountName, { title: string; one: string; does: string }>> = {
  syscalls: { title: 'system calls', one: 'system call', does: 'makes' },
  bytes: { title: 'bytes to the client', one: 'byte to the client', does: 'sends' },
  segments: { title: 'segments to the client', one: 'segment to the client', does: 'sends' },
  switches: { title: 'context switches', one: 'context switch', does: 'makes' },
  faults: { title: 'page faults', one: 'page fault', does: 'has' },
};

export function countsReport({ counts }: Pick<Result, 'counts'>): Contribution {
  if (counts === undefined) return {};
  const title = `Per request, of ${amountText(counts.requests)} in a pass, one at a time:`;
  return {
    findings: countLines(counts),
    tables: [{ title, tables: [countsTable(counts)], below: [] }],
  };
}

function countsTable({ sides, differences }: Counted): Table {
  const [baseline, ...others] = sides;
  const known = countNames.filter((count) => sides.some((side) => side[count] !== undefined));
  const differenceOf = (side: CountedSide, name: CountName) =>
    differences.find(({ count, variant }) => count === name && variant === side.variant);
  return tableOf(known, [
    leftColumn('count', (count) => words[count].title),
    ...sides.map((side) =>
      rightColumn(side.variant, (count: CountName) =>
        figure(side[count] && meanOf(side, count), amountText),
      ),
    ),
    ...others.map((side) =>
      rightColumn(`${side.variant} − ${baseline?.variant}`, (count: CountName) =>
        figure(differenceOf(side, count), differenceText),
      ),
    ),
  ]);
}

/** A sentence for each difference, and on what does not differ or was not counted. */
function countLines(counted: Counted): string[] {
  const lines = counted.differences
    .filter(differs)
    .map((difference) => differenceLine(difference, counted));
  const [baseline, ...others] = counted.sides;
  for (const { variant } of others) {
    const others = counted.differences.filter(
      (difference) => difference.variant === variant && !differs(difference),
    );
    const equal = others.filter(({ low, high }) => low === high);
    const open = others.filter((difference) => !equal.includes(difference));
    const sides = `${variant} and ${baseline?.variant}`;
    if (equal.length > 0) lines.push(`${sides} do not differ in ${namesOf(equal)}.`);
    if (open.length > 0) lines.push(`Whether ${sides} differ in ${namesOf(open)} is not certain.`);
  }
  return [...lines, ...counted.missing.map((line) => `Not counted: ${line}.`)];
}

const namesOf = (differences: readonly CountDifference[]): string =>
  enumeration(differences.map(({ count }) => words[count].title));

function differenceLine(difference: CountDifference, { sides }: Counted): string {
  const { count, variant, baseline } = difference;
  const sideOf = (name: string) => sides.find((side) => side.variant === name);
  const [now, before] = [sideOf(variant), sideOf(baseline)];
  const { title, one, does } = words[count];
  const size = amountText(Math.abs(difference.difference));
  const more = difference.difference > 0 ? 'more' : 'fewer';
  const [figure, other] = [now, before].map((side) => (side ? meanOf(side, count) : NaN));
  const named = count === 'syscalls' ? callsText(now, before) : '';
  return `${variant} ${does} ${size} ${more} ${size === '1' ? one : title} per request than ${baseline}: ${amountText(figure ?? NaN)} instead of ${amountText(other ?? NaN)}${named}.`;
}

/** Per request; smaller differences of a call are not named. */
const leastCalls = 0.05;
const mostCalls = 5;

/** " (openat −1, close −1)": the calls that differ most. */
function callsText(now: CountedSide | undefined, before: CountedSide | undefined): string {
  const callsOf = (side: CountedSide | undefined) =>
    new Map((side?.calls ?? []).map(({ name, perRequest }) => [name, perRequest]));
  const [these, those] = [callsOf(now), callsOf(before)];
  const changes = [...new Set([...these.keys(), ...those.keys()])]
    .map((name) => ({ name, difference: (these.get(name) ?? 0) - (those.get(name) ?? 0) }))
    .filter(({ difference }) => Math.abs(difference) >= leastCalls)
    .sort((a, b) => Math.abs(b.difference) - Math.abs(a.difference))
    .slice(0, mostCalls)
    .map(({ name, difference }) => `${name} ${differenceText({ difference, low: 0, high: 0 })}`);
  return changes.length === 0 ? '' : ` (${changes.join(', ')})`;
}
