import { axisX, axisY, dot, gridY, line, ruleX, ruleY, text } from '@observablehq/plot';
import type { Streams } from '../figure.ts';
import { drawn, frame, keyOf } from './common.ts';

type Point = Streams['points'][number];

export function drawStreams({ line: reference, points }: Streams, width: number): Element[] {
  const published = points.filter((point) => point.published !== null);
  const highest = Math.max(
    1,
    ...points.flatMap(({ ratio, interval, published: article }) => [
      ratio,
      interval?.[1] ?? 0,
      article ?? 0,
    ]),
  );
  const counts = [...new Set(points.map(({ streams }) => streams))].sort((a, b) => a - b);
  const key = [
    { name: 'here', fill: 'var(--here)', symbol: 'circle' as const },
    ...(published.length === 0
      ? []
      : [{ name: 'published', fill: 'var(--published)', symbol: 'square' as const }]),
  ];
  return [
    keyOf(key),
    drawn({
      ...frame(
        width,
        { least: 260, most: 380, part: 0.4 },
        { left: 44, right: 16, top: 24, bottom: 42 },
      ),
      x: { type: 'log', domain: [(counts[0] ?? 1) * 0.9, (counts.at(-1) ?? 10) * 1.1] },
      y: { domain: [0, highest * 1.06] },
      marks: [
        gridY({ ticks: 6 }),
        axisX(counts, {
          text: String,
          label: 'concurrent streams per connection (log scale)',
          labelAnchor: 'left',
          labelArrow: 'none',
          labelOffset: 38,
        }),
        axisY({
          ticks: 6,
          label: `requests/s by those of ${reference}`,
          labelArrow: 'none',
          tickFormat: (ratio: number) => `×${ratio}`,
        }),
        ruleY([0, 1], { stroke: 'currentColor' }),
        line(points, {
          x: 'streams',
          y: 'ratio',
          stroke: 'var(--here)',
          strokeWidth: 2,
          sort: 'streams',
        }),
        ruleX(
          points.filter(({ interval }) => interval !== null),
          {
            x: 'streams',
            y1: ({ interval }: Point) => interval?.[0],
            y2: ({ interval }: Point) => interval?.[1],
            stroke: 'var(--here)',
            strokeWidth: 2,
            className: 'interval',
          },
        ),
        dot(published, {
          x: 'streams',
          y: 'published',
          symbol: 'square',
          r: 5,
          fill: 'var(--published)',
          className: 'published',
          title: ({ streams, published: ratio }: Point) =>
            `published, ${streams} streams: ×${ratio?.toFixed(2)}`,
        }),
        dot(points, {
          x: 'streams',
          y: 'ratio',
          r: 4.5,
          fill: 'var(--here)',
          className: 'streams',
          title: 'label',
        }),
        text([reference], {
          x: counts.at(-1) ?? 1,
          y: 1,
          text: (name: string) => name,
          textAnchor: 'end',
          dy: 9,
          stroke: 'var(--ground)',
          strokeWidth: 4,
          fill: 'currentColor',
        }),
      ],
    }),
  ];
}
