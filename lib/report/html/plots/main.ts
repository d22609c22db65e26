// Draws the plots in the page, at the width that they find, and again when it changes. Colours come from the style sheet, so
// that they follow the colour scheme.
import { barX, dot, gridX, gridY, line, ruleX, ruleY, text } from '@observablehq/plot';
import { extent } from '../../../analysis/statistics.ts';
import type { Bar, Bars, CurveData, Percentile, Percentiles, PlotData, Rounds } from '../figure.ts';
import {
  bottomAxis,
  drawn,
  keyOf,
  leftAxis,
  outlined,
  seriesOf,
  sizeOf,
  textWidth,
} from './common.ts';

const barHeight = 15;
const groupGap = 12;
/** Hatched and plain, to be told apart without colours. */
const fills = { published: 'url(#published)', here: 'var(--here)' } as const;

function drawBars(data: Bars, width: number): Element[] {
  const values = data.panels.flatMap(({ bars }) => bars.map(({ value }) => value));
  const highest = Math.max(data.reference ?? 0, ...values);
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
  const most = Math.max(...groups.map((group) => bars.filter((bar) => bar.group === group).length));
  const widest = Math.max(...groups.map(textWidth));
  // Long names stand above their bars.
  const above = widest > width * 0.3;
  const step = most * barHeight + groupGap + (above ? 14 : 0);
  const marginTop = above ? 18 : 6;
  const sources = most > 1 ? ['published', 'here'] : [...new Set(bars.map(sourceOf))];
  const ticks = Math.max(2, Math.floor(width / 120));
  const place = { x: 'value', y: sourceOf, fy: 'group' } as const;
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
      gridX({ ticks }),
      bottomAxis(axis, { ticks, labelOffset: 36, ...(percent ? { tickFormat: String } : {}) }),
      barX(bars, {
        ...place,
        className: 'bar',
        fill: (bar: Bar) => fills[sourceOf(bar)],
        stroke: (bar: Bar) => `var(--${sourceOf(bar)})`,
        title: (bar: Bar) => `${bar.group}, ${sourceOf(bar)}: ${bar.label}`,
      }),
      ruleX(reference === undefined ? [] : [reference], {
        stroke: 'currentColor',
        strokeDasharray: '3,3',
      }),
      text(bars, {
        ...place,
        ...outlined,
        text: 'label',
        textAnchor: 'start',
        dx: 5,
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

/** Latency by rate, both on log scales: at a knee a line turns up. */
function drawCurve({ names, limit, points, lines }: CurveData, width: number): Element[] {
  const { key, colour, symbol } = seriesOf(names);
  const limits = limit === null ? [] : [limit];
  const [lowest, highest] = extent(points.map(({ rate }) => rate));
  const [shortest, longest] = extent([
    ...limits.map(({ ms }) => ms),
    ...points.flatMap(({ p50, p99 }) => [p50, p99]).filter((ms) => ms > 0),
  ]);
  const tick = (ms: number): string => String(Number(ms.toPrecision(2)));
  const described = ({ name, rate, p50, p99, kept }: Step): string =>
    `${name}, ${rate.toLocaleString('en')} requests/s: p50 ${tick(p50)} ms, p99 ${tick(p99)} ms${kept === false ? ', not kept' : ''}`;
  // The name of a line stands beside its last point.
  const ends = names.flatMap((name) => lines.findLast((point) => point.name === name) ?? []);
  const lineOf = { x: 'rate', stroke: colour, z: 'name' } as const;
  return [
    key,
    drawn({
      ...sizeOf(width, { least: 300, most: 440, part: 0.5 }, { left: 56, right: 40 }),
      x: { type: 'log', domain: [lowest * 0.9, highest * 1.1] },
      y: { type: 'log', domain: [shortest * 0.8, longest * 1.25] },
      marks: [
        gridY({ ticks: 5 }),
        bottomAxis('requests/s (log scale)', {
          ticks: width > 500 ? 6 : 3,
          tickFormat: (rate: number) => rate.toLocaleString('en'),
        }),
        leftAxis('latency, ms (log scale)', { ticks: 5, tickFormat: tick }),
        ruleY(limits, {
          y: 'ms',
          stroke: 'currentColor',
          strokeDasharray: '4 3',
          className: 'limit',
        }),
        line(lines, { ...lineOf, y: 'p50', strokeWidth: 1.5, strokeDasharray: '2 3' }),
        line(lines, { ...lineOf, y: 'p99', strokeWidth: 2 }),
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
            ...outlined,
            x: 'rate',
            y: name,
            text: () => name,
            textAnchor: 'start',
            dx: 8,
            fill: colour,
          }),
        ),
        text(limits, {
          ...outlined,
          x: lowest,
          y: 'ms',
          text: 'text',
          textAnchor: 'start',
          dy: -7,
        }),
      ],
    }),
  ];
}

type PercentilePoint = Percentile & { round: number | null; percentile: string };

function drawPercentiles({ names, lines }: Percentiles, width: number): Element[] {
  const { key, colour, symbol } = seriesOf(names);
  const points = lines.flatMap(({ name, round, points: all }) =>
    all.map((point): PercentilePoint => ({ ...point, percentile: point.name, name, round })),
  );
  const strong = points.filter(({ round }) => round === null);
  const thin = points.filter(({ round }) => round !== null);
  const [shortest] = extent(strong.map(({ ms }) => ms).filter((ms) => ms > 0));
  const [, longest] = extent(points.map(({ ms }) => ms));
  const isLog = longest > 20 * shortest;
  const furthest = Math.max(100, extent(points.map(({ at }) => at))[1]);
  const margins = { left: 52, right: 28 };
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
      ...sizeOf(width, { least: 280, most: 420, part: 0.45 }, margins),
      x: { type: 'log', domain: [1, furthest] },
      y: isLog
        ? { type: 'log', domain: [shortest * 0.9, longest * 1.1] }
        : { domain: [0, longest * 1.04] },
      marks: [
        gridX(ticks),
        gridY({ ticks: 6 }),
        bottomAxis('percentile, on a log scale of 1 / (1 − p)', { text: percentileOf }, ticks),
        leftAxis(`latency, ms${isLog ? ' (log scale)' : ''}`, {
          ticks: 6,
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

/** The ticks whose labels do not touch; without room for both 0 % and 50 %, the latter. */
function ticksFor(furthest: number, pixels: number): number[] {
  // Half of a character has 3.4 pixels.
  const isClear = (a: number, b: number): boolean =>
    (pixels * Math.log(b / a)) / Math.log(furthest) >
    (percentileOf(a).length + percentileOf(b).length + 2) * 3.4;
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

function drawRounds({ axis, names, points }: Rounds, width: number): Element[] {
  const { key, colour, symbol } = seriesOf(names);
  const numbers = [...new Set(points.map(({ round }) => round))].sort((a, b) => a - b);
  const [low, high] = extent(points.map(({ value }) => value));
  const room = (high - low) * 0.06 || high * 0.01;
  // As many numbers as have room.
  const every = Math.ceil((numbers.length * 22) / width);
  const ticks = numbers.flatMap((_, index) => (index % every === 0 ? [index] : []));
  const valueText = (value: number): string =>
    value.toLocaleString('en-US', { maximumFractionDigits: value < 100 ? 3 : 0 });
  // The sides of a round stand beside each other around its number.
  const x = ({ name, round }: Side): number =>
    numbers.indexOf(round) + 0.56 * (names.indexOf(name) / (names.length - 1) - 0.5);
  return [
    key,
    drawn({
      ...sizeOf(width, { least: 240, most: 340, part: 0.34 }, { left: 62, right: 12 }),
      x: { domain: [-0.5, numbers.length - 0.5] },
      y: { domain: [2 * low > high ? low - room : 0, high + room] },
      marks: [
        gridY({ ticks: 5 }),
        bottomAxis(
          'round',
          { text: (index: number) => String(numbers[index]), tickSize: 0 },
          ticks,
        ),
        leftAxis(axis, { ticks: 5, tickFormat: valueText }),
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

const draw: {
  [Kind in PlotData['kind']]: (data: PlotData & { kind: Kind }, width: number) => Element[];
} = {
  bars: drawBars,
  percentiles: drawPercentiles,
  rounds: drawRounds,
  curve: drawCurve,
};

const all = JSON.parse(document.getElementById('figures')?.textContent ?? '[]') as PlotData[];
for (const [index, data] of all.entries()) {
  const place = document.getElementById(`plot-${index}`);
  if (place === null) continue;
  let shown = 0;
  const redraw = (): void => {
    const width = Math.floor(place.clientWidth);
    if (width === shown || width === 0) return;
    shown = width;
    place.replaceChildren(...draw[data.kind](data as never, width));
  };
  redraw();
  new ResizeObserver(redraw).observe(place);
}

/** The figure at the begin of a cell; of an effect ("+41 %", "3 times") the ratio. */
function figureIn(text: string): number {
  const [, sign = '', digits, unit] = /^([+−]?)([\d.,]+)(\s%)?/.exec(text) ?? [];
  if (digits === undefined) return -Infinity;
  const figure = Number(digits.replaceAll(',', '')) * (sign === '−' ? -1 : 1);
  return sign !== '' && unit !== undefined ? 1 + figure / 100 : figure;
}

// A click on a title sorts the rows by its column: names from a to z, the largest figures first. Another one turns that round.
for (const table of document.querySelectorAll<HTMLTableElement>('table.sorts'))
  for (const [place, title] of [...table.querySelectorAll('thead tr:last-child th')].entries()) {
    const button = document.createElement('button');
    button.textContent = title.textContent;
    title.replaceChildren(button);
    button.addEventListener('click', () => {
      const [first, second] =
        place === 0 ? ['ascending', 'descending'] : ['descending', 'ascending'];
      const way = title.getAttribute('aria-sort') === first ? second : first;
      for (const other of table.querySelectorAll('[aria-sort]')) other.removeAttribute('aria-sort');
      title.setAttribute('aria-sort', way as string);
      const textOf = (row: Element): string => row.children[place]?.textContent ?? '';
      const [body] = table.tBodies;
      const rows = [...(body?.rows ?? [])].sort((one, other) => {
        const [a, b] = [textOf(one), textOf(other)];
        return place === 0 ? a.localeCompare(b) : figureIn(a) - figureIn(b);
      });
      body?.append(...(way === 'ascending' ? rows : rows.reverse()));
    });
  }

// On paper nothing can be unfolded.
addEventListener('beforeprint', () => {
  for (const details of document.querySelectorAll('details')) details.open = true;
});
