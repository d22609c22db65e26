// Draws the plots, in the page. Each takes the width that it finds and is drawn again when that changes. Colours are the
// style sheet's, so that they follow the colour scheme.
import {
  axisX,
  axisY,
  barX,
  dot,
  gridX,
  gridY,
  line,
  ruleX,
  ruleY,
  text,
} from '@observablehq/plot';
import { extent } from '../../../analysis/statistics.ts';
import type {
  Bar,
  Bars,
  CurveData,
  Percentile,
  Percentiles,
  PlotData,
  Rounds,
  Streams,
} from '../figure.ts';
import { drawn, frame, keyOf, seriesOf, textWidth } from './common.ts';

const barHeight = 15;
const groupGap = 12;
/** Hatched and plain, so that they are told apart without colours. */
const fills = { published: 'url(#published)', here: 'var(--here)' } as const;

export function drawBars(data: Bars, width: number): Element[] {
  const highest = Math.max(
    data.reference ?? 0,
    ...data.panels.flatMap(({ bars }) => bars.map(({ value }) => value)),
  );
  const panels = document.createElement('div');
  panels.className = 'panels';
  const columns = Math.min(data.panels.length, Math.max(1, Math.floor((width + 32) / 332)));
  const panelWidth = Math.floor((width - 32 * (columns - 1)) / columns);
  for (const { title, bars } of data.panels) {
    const panel = document.createElement('div');
    if (title !== '')
      panel.append(Object.assign(document.createElement('h4'), { textContent: title }));
    panel.append(drawPanel(data, bars, highest, panelWidth));
    panels.append(panel);
  }
  const key = keyOf([
    { name: 'published', fill: fills.published, symbol: 'square' },
    { name: 'here', fill: fills.here, symbol: 'square' },
  ]);
  return [key, panels];
}

function drawPanel(
  { axis, reference, percent }: Bars,
  bars: readonly Bar[],
  highest: number,
  width: number,
): Element {
  const groups = [...new Set(bars.map(({ group }) => group))];
  const sourcesOf = (group: string): number => bars.filter((bar) => bar.group === group).length;
  const most = Math.max(...groups.map(sourcesOf));
  const widest = Math.max(...groups.map(textWidth));
  // Names that would take too much of the width stand above their bars.
  const above = widest > width * 0.3;
  const step = most * barHeight + groupGap + (above ? 14 : 0);
  const marginTop = above ? 18 : 6;
  const sources =
    most > 1
      ? ['published', 'here']
      : [bars.some(({ published }) => published) ? 'published' : 'here'];
  return drawn({
    width,
    height: marginTop + groups.length * step + 40,
    marginTop,
    marginBottom: 40,
    marginLeft: above ? 1 : widest + 10,
    marginRight: 8 + Math.max(...bars.map(({ label }) => textWidth(label))),
    x: { domain: [0, highest === 0 ? 1 : highest], label: axis, labelArrow: 'none' },
    fy: { domain: groups, axis: null, padding: (groupGap + (above ? 14 : 0)) / step },
    y: { domain: sources, axis: null, padding: 0.08 },
    marks: [
      gridX({ ticks: Math.max(2, Math.floor(width / 120)) }),
      axisX({
        ticks: Math.max(2, Math.floor(width / 120)),
        label: axis,
        labelAnchor: 'left',
        labelArrow: 'none',
        labelOffset: 36,
        ...(percent ? { tickFormat: String } : {}),
      }),
      barX(bars, {
        x: 'value',
        y: sourceOf,
        fy: 'group',
        className: 'bar',
        fill: (bar: Bar) => fills[sourceOf(bar)],
        stroke: (bar: Bar) => (bar.published ? 'var(--published)' : 'var(--here)'),
        title: (bar: Bar) => `${bar.group}, ${sourceOf(bar)}: ${bar.label}`,
      }),
      ...(reference === undefined
        ? []
        : [ruleX([reference], { stroke: 'currentColor', strokeDasharray: '3,3' })]),
      text(bars, {
        x: 'value',
        y: sourceOf,
        fy: 'group',
        text: 'label',
        textAnchor: 'start',
        dx: 5,
        fill: 'currentColor',
        stroke: 'var(--ground)',
        strokeWidth: 5,
      }),
      text(groups, {
        fy: (group: string) => group,
        text: (group: string) => group,
        fontWeight: 600,
        ...(above
          ? { frameAnchor: 'top-left', dy: -3, lineAnchor: 'bottom' }
          : { frameAnchor: 'left', dx: -10, textAnchor: 'end' }),
      }),
      ruleX([0], { stroke: 'currentColor' }),
    ],
  });
}

function sourceOf({ published }: Bar): keyof typeof fills {
  return published ? 'published' : 'here';
}

type Step = CurveData['points'][number];

/** Latency by rate, both on log scales: a knee is where a line turns up. */
export function drawCurve({ names, limit, points, lines }: CurveData, width: number): Element[] {
  const { key, colour, symbol } = seriesOf(names);
  const [lowest, highest] = extent(points.map(({ rate }) => rate));
  const [shortest, longest] = extent([
    ...(limit === null ? [] : [limit.ms]),
    ...points.flatMap(({ p50, p99 }) => [p50, p99]).filter((ms) => ms > 0),
  ]);
  const described = ({ name, rate, p50, p99, kept }: Step): string =>
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
          fill: (point: Step) => (point.kept === false ? 'var(--ground)' : colour(point)),
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

type PercentilePoint = Percentile & { round: number | null; percentile: string };

/** From this quotient of the ends on short latencies would lie on the axis. */
const wide = 20;

const margins = { left: 52, right: 28, top: 22, bottom: 42 };
/** Half of a character, in pixels. */
const halfCharacter = 3.4;

export function drawPercentiles({ names, lines }: Percentiles, width: number): Element[] {
  const { key, colour, symbol } = seriesOf(names);
  const points = (ofAll: boolean): PercentilePoint[] =>
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
    z: ({ name, round }: PercentilePoint) => `${name} ${round}`,
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
          title: ({ name, percentile, ms }: PercentilePoint) => `${name}, ${percentile}: ${ms} ms`,
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

type Side = Rounds['points'][number];

export function drawRounds({ axis, names, points }: Rounds, width: number): Element[] {
  const { key, colour, symbol } = seriesOf(names);
  const numbers = [...new Set(points.map(({ round }) => round))].sort((a, b) => a - b);
  const [low, high] = extent(points.map(({ value }) => value));
  const room = (high - low) * 0.06 || high * 0.01;
  // Numbers that would stand on each other are left out.
  const every = Math.ceil((numbers.length * 22) / width);
  const ticks = numbers.flatMap((_, index) => (index % every === 0 ? [index] : []));
  // The sides of a round share the middle of its place.
  const x = ({ name, round }: Side): number =>
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
        axisY({ ticks: 5, label: axis, labelArrow: 'none', tickFormat: valueText }),
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
          title: (one: Side) => `${one.name}, round ${one.round}: ${valueText(one.value)}`,
        }),
      ],
    }),
  ];
}

function valueText(value: number): string {
  return value.toLocaleString('en-US', { maximumFractionDigits: value < 100 ? 3 : 0 });
}

type StreamsPoint = Streams['points'][number];

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
            y1: ({ interval }: StreamsPoint) => interval?.[0],
            y2: ({ interval }: StreamsPoint) => interval?.[1],
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
          title: ({ streams, published: ratio }: StreamsPoint) =>
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

const draw: {
  [Kind in PlotData['kind']]: (data: PlotData & { kind: Kind }, width: number) => Element[];
} = {
  bars: drawBars,
  percentiles: drawPercentiles,
  rounds: drawRounds,
  streams: drawStreams,
  curve: drawCurve,
};

const all = JSON.parse(document.getElementById('figures')?.textContent ?? '[]') as PlotData[];
for (const [index, data] of all.entries()) {
  const place = document.getElementById(`plot-${index}`);
  if (place === null) continue;
  let drawn = 0;
  const redraw = (): void => {
    const width = Math.floor(place.clientWidth);
    if (width === drawn || width === 0) return;
    drawn = width;
    place.replaceChildren(...draw[data.kind](data as never, width));
  };
  redraw();
  new ResizeObserver(redraw).observe(place);
}

// Paper does not unfold.
addEventListener('beforeprint', () => {
  for (const details of document.querySelectorAll('details')) details.open = true;
});
