import { axisX, axisY, dot, gridY, line, ruleY, text } from '@observablehq/plot';
import { extent } from '../../../analysis/statistics.ts';
import type { CurveData } from '../figure.ts';
import { drawn, frame, seriesOf } from './common.ts';

type Point = CurveData['points'][number];

/** Latency by rate, both on log scales: a knee is where a line turns up. */
export function drawCurve({ names, limit, points, lines }: CurveData, width: number): Element[] {
  const { key, colour, symbol } = seriesOf(names);
  const [lowest, highest] = extent(points.map(({ rate }) => rate));
  const [shortest, longest] = extent([
    ...(limit === null ? [] : [limit.ms]),
    ...points.flatMap(({ p50, p99 }) => [p50, p99]).filter((ms) => ms > 0),
  ]);
  const described = ({ name, rate, p50, p99, kept }: Point): string =>
    `${name}, ${rate.toLocaleString('en')} requests/s: p50 ${tick(p50)} ms, p99 ${tick(p99)} ms${kept === false ? ', not kept' : ''}`;
  // The last point of each line, beside which its name stands.
  const ends = names.flatMap((name) => lines.findLast((point) => point.name === name) ?? []);
  return [
    key,
    drawn({
      ...frame(
        width,
        { least: 300, most: 440, part: 0.5 },
        { left: 56, right: 40, top: 24, bottom: 42 },
      ),
      x: { type: 'log', domain: [lowest * 0.9, highest * 1.1] },
      y: { type: 'log', domain: [shortest * 0.8, longest * 1.25] },
      marks: [
        gridY({ ticks: 5 }),
        axisX({
          ticks: width > 500 ? 6 : 3,
          tickFormat: (rate: number) => rate.toLocaleString('en'),
          label: 'requests/s (log scale)',
          labelAnchor: 'left',
          labelArrow: 'none',
          labelOffset: 38,
        }),
        axisY({ ticks: 5, label: 'latency, ms (log scale)', labelArrow: 'none', tickFormat: tick }),
        ...(limit === null
          ? []
          : [
              ruleY([limit.ms], {
                stroke: 'currentColor',
                strokeDasharray: '4 3',
                className: 'limit',
              }),
            ]),
        line(lines, {
          x: 'rate',
          y: 'p50',
          stroke: colour,
          z: 'name',
          strokeWidth: 1.5,
          strokeDasharray: '2 3',
        }),
        line(lines, { x: 'rate', y: 'p99', stroke: colour, z: 'name', strokeWidth: 2 }),
        dot(points, {
          x: 'rate',
          y: 'p99',
          r: 3.5,
          symbol,
          stroke: colour,
          fill: (point: Point) => (point.kept === false ? 'var(--ground)' : colour(point)),
          className: 'step',
          title: described,
        }),
        ...['p50', 'p99'].map((name) =>
          text(ends, {
            x: 'rate',
            y: name,
            text: () => name,
            textAnchor: 'start',
            dx: 8,
            fill: colour,
            stroke: 'var(--ground)',
            strokeWidth: 4,
          }),
        ),
        ...(limit === null
          ? []
          : [
              text([limit], {
                x: lowest,
                y: 'ms',
                text: 'text',
                textAnchor: 'start',
                dy: -7,
                stroke: 'var(--ground)',
                strokeWidth: 4,
                fill: 'currentColor',
              }),
            ]),
      ],
    }),
  ];
}

function tick(ms: number): string {
  return String(Number(ms.toPrecision(2)));
}
