import { axisX, axisY, dot, gridY, line } from '@observablehq/plot';
import { extent } from '../../../analysis/statistics.ts';
import type { Rounds } from '../figure.ts';
import { drawn, frame, seriesOf } from './common.ts';

type Point = Rounds['points'][number];

export function drawRounds({ axis, names, points }: Rounds, width: number): Element[] {
  const { key, colour, symbol } = seriesOf(names);
  const numbers = [...new Set(points.map(({ round }) => round))].sort((a, b) => a - b);
  const [low, high] = extent(points.map(({ value }) => value));
  const room = (high - low) * 0.06 || high * 0.01;
  // Numbers that would stand on each other are left out.
  const every = Math.ceil((numbers.length * 22) / width);
  const ticks = numbers.flatMap((_, index) => (index % every === 0 ? [index] : []));
  // The sides of a round share the middle of its place.
  const x = ({ name, round }: Point): number =>
    numbers.indexOf(round) + 0.56 * (names.indexOf(name) / (names.length - 1) - 0.5);
  return [
    key,
    drawn({
      ...frame(
        width,
        { least: 240, most: 340, part: 0.34 },
        { left: 62, right: 12, top: 24, bottom: 42 },
      ),
      x: { domain: [-0.5, numbers.length - 0.5] },
      y: { domain: [2 * low > high ? low - room : 0, high + room] },
      marks: [
        gridY({ ticks: 5 }),
        axisX(ticks, {
          text: (index: number) => String(numbers[index]),
          tickSize: 0,
          label: 'round',
          labelAnchor: 'left',
          labelArrow: 'none',
          labelOffset: 38,
        }),
        axisY({ ticks: 5, label: axis, labelArrow: 'none', tickFormat: text }),
        line(points, {
          x,
          y: 'value',
          z: 'round',
          stroke: 'currentColor',
          strokeOpacity: 0.3,
          className: 'pair',
        }),
        dot(points, {
          x,
          y: 'value',
          stroke: colour,
          fill: colour,
          symbol,
          r: Math.min(4, width / points.length / 1.8),
          className: 'side',
          title: (one: Point) => `${one.name}, round ${one.round}: ${text(one.value)}`,
        }),
      ],
    }),
  ];
}

function text(value: number): string {
  return value.toLocaleString('en-US', { maximumFractionDigits: value < 100 ? 3 : 0 });
}
