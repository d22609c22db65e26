import { axisX, axisY, dot, gridY, line, ruleX, ruleY, text } from '@observablehq/plot';
import { extent } from '../../../analysis/statistics.ts';
import type { Timeline } from '../figure.ts';
import { drawn, frame, seriesOf } from './common.ts';

interface Point { name: string; round: number; line: number; seconds: number; rps: number }

export function drawTimeline({ names, lines, rounds }: Timeline, width: number): Element[] {
  const { key, colour, symbol } = seriesOf(names);
  const points = lines.flatMap(({ name, round, points: all }, line) => all.map(([seconds, rps]): Point => ({ name, round, line, seconds, rps })));
  const times = points.map(({ seconds }) => seconds);
  const [first, last] = extent(times);
  const margin = Math.max(0.5, (last - first) * 0.01);
  const ticks = Math.max(3, Math.floor(width / 110));
  const channels = { x: 'seconds', y: 'rps', stroke: colour } as const;
  // Numbers that would stand on each other are left out.
  const every = Math.ceil((rounds.length * 22) / width);
  return [key, drawn({
    ...frame(width, { least: 260, most: 360, part: 0.38 }, { left: 58, right: 12, top: 34, bottom: 42 }),
    x: { domain: [first - margin, last + margin] },
    y: { domain: [0, Math.max(1, extent(points.map(({ rps }) => rps))[1]) * 1.04] },
    marks: [
      gridY({ ticks: 5 }),
      axisX({ ticks, label: 'seconds since the run began', labelAnchor: 'left', labelArrow: 'none', labelOffset: 38 }),
      axisY({ ticks: 5, label: 'requests/s', labelArrow: 'none', tickFormat: (rps: number) => (rps >= 10_000 ? `${rps / 1000}k` : rps.toLocaleString('en-US')) }),
      ruleX(rounds, { x: 'seconds', dx: -4, stroke: 'currentColor', strokeOpacity: 0.25, className: 'round-begin' }),
      text(rounds.filter((_, index) => index % every === 0), { x: 'seconds', frameAnchor: 'top', dy: -8, text: ({ round }: { round: number }) => String(round), fontWeight: 600 }),
      ruleY([0], { stroke: 'currentColor' }),
      line(points, { ...channels, z: 'line', strokeWidth: 1.5, className: 'rate' }),
      dot(points, {
        ...channels, fill: colour, r: points.length > 400 ? 2 : 3, symbol, className: 'second',
        title: ({ name, round, seconds, rps }: Point) => `${name}, round ${round}, at ${seconds.toFixed(1)} s: ${Math.round(rps)} requests/s`,
      }),
    ],
  })];
}
