// Plots of runs over networks.
import {
  alphaOf,
  exponential,
  meanInterval,
  median,
  minimumRounds,
} from '../../analysis/statistics.ts';
import { isTooWide } from '../../format.ts';
import { present, allNames } from '../../present.ts';
import { pointsByRound } from '../../report/metric-words.ts';
import type { Figure } from '../../report/html/page.ts';
import { rightColumn, tableOf } from '../../report/table.ts';
import type { Result } from '../../result/result.ts';
import type { NetworkSpec } from '../../scenario/model.ts';

const linkNumbers: { title: string; of: (link: NetworkSpec) => number }[] = [
  {
    title: 'packets lost, %',
    of: ({ toServer, toClient }) =>
      100 * Math.max(toServer.lossShare ?? 0, toClient.lossShare ?? 0),
  },
  {
    title: 'delay there and back, ms',
    of: ({ toServer, toClient }) => toServer.delayMs + toClient.delayMs,
  },
];

/**
 * Plots two or more series if their links differ in exactly one number. Variants with too few rounds are left out: their intervals are
 * too wide.
 */
export function linkFigures(result: Result): Figure[] {
  const { axis, text, points } = pointsByRound(result);
  const measured = result.variants.flatMap(({ name: variant, series: name, network }) => {
    if (name === undefined || network === null) return [];
    const values = points.filter((point) => point.name === variant).map(({ value }) => value);
    if (values.length < minimumRounds || values.includes(0)) return [];
    return { name, spec: network.spec, values };
  });
  const [number, another] = linkNumbers.filter(
    ({ of }) => new Set(measured.map(({ spec }) => of(spec))).size > 1,
  );
  const names = [...new Set(allNames(measured))];
  if (number === undefined || another !== undefined || names.length < 2) return [];
  const { title: x, of } = number;
  const unsorted = measured.map(({ name, spec, values }) => {
    const at = { name, x: of(spec), y: median(values) };
    const interval = exponential(meanInterval(values.map(Math.log), alphaOf()));
    const isWide = isTooWide(interval);
    const shown = `${text(at.y)} [${isWide ? 'too wide' : interval.map(text).join(', ')}]`;
    const drawn = present({ interval: isWide ? undefined : interval });
    return { ...at, ...drawn, shown, title: `${name}, ${at.x}: ${shown}` };
  });
  const marks = unsorted.sort((a, b) => a.x - b.x);
  const shownAt = (name: string) => (at: number) =>
    marks.find((mark) => mark.name === name && mark.x === at)?.shown ?? '';
  const title = `${axis.replace(/, ms$/, '')} by ${x.replace(/, \S+$/, '')}`;
  return [
    {
      title,
      text: 'Medians of the rounds, with the 95 % confidence interval of their mean.',
      data: {
        kind: 'lines',
        x: { title: x },
        y: { title: axis },
        names,
        marks,
        lines: marks.map(({ name, x, y }) => ({ name, line: name, look: 'strong', x, y })),
      },
      tables: [
        tableOf(
          [...new Set(marks.map((mark) => mark.x))],
          [rightColumn(x, String), ...names.map((name) => rightColumn(name, shownAt(name), axis))],
        ),
      ],
    },
  ];
}
