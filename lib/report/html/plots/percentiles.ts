import { axisX, axisY, dot, gridX, gridY, line } from '@observablehq/plot';
import { extent } from '../../../analysis/statistics.ts';
import type { Percentile, Percentiles } from '../figure.ts';
import { drawn, frame, seriesOf } from './common.ts';

type Point = Percentile & { round: number | null; percentile: string };

/** From this quotient of the ends on short latencies would lie on the axis. */
const wide = 20;

const margins = { left: 52, right: 28, top: 22, bottom: 42 };
/** Half of a character, in pixels. */
const halfCharacter = 3.4;

export function drawPercentiles({ names, lines }: Percentiles, width: number): Element[] {
  const { key, colour, symbol } = seriesOf(names);
  const points = (ofAll: boolean): Point[] =>
    lines
      .filter(({ round }) => (round === null) === ofAll)
      .flatMap(({ name, round, points: all }) =>
        all.map((point) => ({ ...point, percentile: point.name, name, round })),
      );
  const strong = points(true);
  const thin = points(false);
  const shown = [...strong, ...thin];
  const [shortest, longest] = [
    extent(strong.map(({ ms }) => ms).filter((ms) => ms > 0))[0],
    extent(shown.map(({ ms }) => ms))[1],
  ];
  const isLog = longest / shortest > wide;
  const furthest = Math.max(100, extent(shown.map(({ at }) => at))[1]);
  const ticks = ticksFor(furthest, width - margins.left - margins.right);
  const channels = {
    x: 'at',
    y: 'ms',
    stroke: colour,
    z: ({ name, round }: Point) => `${name} ${round}`,
  } as const;
  return [
    key,
    drawn({
      ...frame(width, { least: 280, most: 420, part: 0.45 }, margins),
      x: { type: 'log', domain: [1, furthest] },
      y: isLog
        ? { type: 'log', domain: [shortest * 0.9, longest * 1.1] }
        : { domain: [0, longest * 1.04] },
      marks: [
        gridX(ticks),
        gridY({ ticks: 6 }),
        axisX(ticks, {
          text: percentileOf,
          label: 'percentile, on a log scale of 1 / (1 − p)',
          labelAnchor: 'left',
          labelArrow: 'none',
          labelOffset: 38,
        }),
        axisY({
          ticks: 6,
          label: `latency, ms${isLog ? ' (log scale)' : ''}`,
          labelArrow: 'none',
          tickFormat: (ms: number) => String(Number(ms.toPrecision(3))),
        }),
        line(thin, { ...channels, strokeWidth: 1, strokeOpacity: 0.35, className: 'one-round' }),
        line(strong, { ...channels, strokeWidth: 2, className: 'all-rounds' }),
        dot(strong, {
          ...channels,
          fill: colour,
          r: 4,
          symbol,
          className: 'percentile',
          title: ({ name, percentile, ms }: Point) => `${name}, ${percentile}: ${ms} ms`,
        }),
      ],
    }),
  ];
}

/** Those whose labels stand clear of each other; where there is no room for 0 % and 50 %, the latter. */
function ticksFor(furthest: number, pixels: number): number[] {
  const isClear = (a: number, b: number): boolean =>
    (pixels * Math.log(b / a)) / Math.log(furthest) >
    (percentileOf(a).length + percentileOf(b).length + 2) * halfCharacter;
  const upward: number[] = [];
  for (const at of [2, 10, 100, 1000, 1e4, 1e5, 1e6, 1e7]) {
    const last = upward.at(-1);
    if (at <= furthest && (last === undefined || isClear(last, at))) upward.push(at);
  }
  return isClear(1, upward[0] ?? furthest) ? [1, ...upward] : upward;
}

/** 1000 is "99.9 %". */
function percentileOf(at: number): string {
  return `${Number((100 * (1 - 1 / at)).toFixed(6))} %`;
}
