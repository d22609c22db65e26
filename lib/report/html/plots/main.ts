// Draws the plots in the page, at the width that they find, and again when it changes. Colours come from the style sheet, so
// that they follow the colour scheme.
import {
  axisX,
  axisY,
  barX,
  dot,
  gridX,
  gridY,
  line,
  plot,
  ruleX,
  ruleY,
  text,
  type PlotOptions,
} from '@observablehq/plot';
import { extent } from '../../../analysis/statistics.ts';
import type { Bars, Curve, Percentiles, PlotData, Rounds } from '../figure.ts';

const axis = { labelAnchor: 'left', labelArrow: 'none', labelOffset: 38 } as const;

/** Text that stays readable over lines. */
const outlined = { fill: 'currentColor', stroke: 'var(--ground)', strokeWidth: 4 } as const;

/** The look of a series: the mark of each name has its colour and symbol. */
const series = { stroke: 'name', fill: 'name', symbol: 'name' } as const;

/** A plot below the key of its series. */
function drawn(names: readonly string[], options: PlotOptions, hasSymbols = true): Element[] {
  const chart = plot({
    marginTop: 24,
    marginBottom: 42,
    style: { fontFamily: 'inherit', fontSize: '12px', overflow: 'visible' },
    color: { domain: names, range: names.map((_, index) => `var(--series-${index % 8})`) },
    ...(hasSymbols && { symbol: { domain: names } }),
    ...options,
  });
  const key = chart.legend(hasSymbols ? 'symbol' : 'color');
  return [...(key === undefined ? [] : [key]), chart];
}

/** With three digits. */
const rounded = (value: number): string => String(Number(value.toPrecision(3)));

function drawBars({ names, bars }: Bars, width: number): Element[] {
  const groups = [...new Set(bars.map(({ group }) => group))];
  const [barHeight, aboveBars] = [15, 26];
  const step = names.length * barHeight + aboveBars;
  const place = { x: 'value', y: 'name', fy: 'group' } as const;
  const widest = Math.max(...bars.map((bar) => bar.label.length));
  const options = {
    width,
    height: groups.length * step + 60,
    marginLeft: 1,
    marginRight: 8 + widest * 7.6,
    fy: { domain: groups, axis: null, padding: aboveBars / step },
    y: { domain: names, axis: null, padding: 0.08 },
    marks: [
      gridX({ ticks: 5 }),
      axisX({ ...axis, label: '% of the answers', ticks: 5 }),
      barX(bars, {
        ...place,
        className: 'bar',
        fill: 'name',
        title: ({ group, name, label }: Bars['bars'][number]) => `${group}, ${name}: ${label}`,
      }),
      text(bars, { ...place, ...outlined, text: 'label', textAnchor: 'start', dx: 5 }),
      text(groups, {
        fy: (group: string) => group,
        text: (group: string) => group,
        fontWeight: 600,
        frameAnchor: 'top-left',
        lineAnchor: 'bottom',
        dy: -3,
      }),
      ruleX([0], { stroke: 'currentColor' }),
    ],
  } satisfies PlotOptions;
  return drawn(names, options, false);
}

type Step = Curve['points'][number];

/** On log scales a line turns up at a knee. */
function drawCurve({ axes, isLog, names, limit, points, lines }: Curve, width: number): Element[] {
  const limits = limit === null ? [] : [limit];
  const ends = [...new Set(lines.map(({ end }) => end))];
  const measured = points.flatMap(({ y, interval = [] }) => [y, ...interval]);
  const [left, right] = extent(points.map(({ x }) => x));
  const [low, high] = extent(
    [...measured, ...[...limits, ...lines].map(({ y }) => y)].filter((y) => y > 0),
  );
  return drawn(names, {
    width,
    height: 400,
    marginLeft: 56,
    x: isLog ? { type: 'log', domain: [left * 0.9, right * 1.1] } : { inset: 12 },
    y: isLog ? { type: 'log', domain: [low * 0.8, high * 1.25] } : { domain: [0, high * 1.05] },
    opacity: { domain: [0, 1] },
    marks: [
      gridY({ ticks: 5 }),
      axisX({
        ...axis,
        label: axes.x,
        ticks: width > 500 ? 6 : 3,
        tickFormat: (x: number) => x.toLocaleString('en'),
      }),
      axisY({ labelArrow: 'none', label: axes.y, ticks: 5, tickFormat: rounded }),
      ruleY(limits, { y: 'y', stroke: 'currentColor', strokeDasharray: '4 3' }),
      ...ends.flatMap((end) => {
        const own = lines.filter((one) => one.end === end);
        return [
          line(own, {
            x: 'x',
            y: 'y',
            stroke: 'name',
            strokeWidth: 2,
            strokeDasharray: end === ends.at(-1) ? 'none' : '2 3',
          }),
          text(
            names.flatMap((name) => own.findLast((point) => point.name === name) ?? []),
            { ...outlined, x: 'x', y: 'y', text: 'end', textAnchor: 'start', dx: 8, fill: 'name' },
          ),
        ];
      }),
      ruleX(
        points.filter(({ interval }) => interval !== undefined),
        {
          x: 'x',
          y1: ({ interval }: Step) => interval?.[0],
          y2: ({ interval }: Step) => interval?.[1],
          stroke: 'name',
          strokeWidth: 2,
          marker: 'tick',
        },
      ),
      dot(points, {
        ...series,
        x: 'x',
        y: 'y',
        fillOpacity: ({ kept }: Step) => (kept === false ? 0 : 1),
        className: 'step',
        title: 'title',
      }),
      text(limits, { ...outlined, x: left, y: 'y', text: 'text', textAnchor: 'start', dy: -7 }),
    ],
  });
}

type Percentile = Percentiles['points'][number];

function drawPercentiles({ names, points }: Percentiles, width: number): Element[] {
  const strong = points.filter(({ round }) => round === null);
  const thin = points.filter(({ round }) => round !== null);
  const [shortest] = extent(strong.map(({ ms }) => ms).filter((ms) => ms > 0));
  const [, longest] = extent(points.map(({ ms }) => ms));
  const isLog = longest > 20 * shortest;
  const furthest = Math.max(100, extent(points.map(({ at }) => at))[1]);
  // As many as have room for their labels.
  const ticks = (width > 900 ? [2, 10, 100, 1000, 1e4, 1e5, 1e6, 1e7] : [2, 100, 1e4, 1e6]).filter(
    (at) => at <= furthest,
  );
  const lineOf = {
    x: 'at',
    y: 'ms',
    stroke: 'name',
    z: ({ name, round }: Percentile) => `${name} ${round}`,
  } as const;
  return drawn(names, {
    width,
    height: 380,
    marginLeft: 52,
    marginRight: 28,
    x: { type: 'log', domain: [1, furthest] },
    y: isLog
      ? { type: 'log', domain: [shortest * 0.9, longest * 1.1] }
      : { domain: [0, longest * 1.04] },
    marks: [
      gridX(ticks),
      gridY({ ticks: 6 }),
      axisX(ticks, {
        ...axis,
        label: 'percentile, on a log scale of 1 / (1 − p)',
        text: (at: number) => `${Number((100 * (1 - 1 / at)).toFixed(6))} %`,
      }),
      axisY({
        labelArrow: 'none',
        label: `latency, ms${isLog ? ' (log scale)' : ''}`,
        ticks: 6,
        tickFormat: rounded,
      }),
      line(thin, { ...lineOf, strokeWidth: 1, strokeOpacity: 0.35 }),
      line(strong, { ...lineOf, strokeWidth: 2 }),
      dot(strong, {
        ...series,
        x: 'at',
        y: 'ms',
        className: 'percentile',
        title: ({ name, percentile, ms }: Percentile) => `${name}, ${percentile}: ${ms} ms`,
      }),
    ],
  });
}

type Side = Rounds['points'][number];

function drawRounds({ axis: label, names, points }: Rounds, width: number): Element[] {
  const numbers = [...new Set(points.map(({ round }) => round))].sort((a, b) => a - b);
  const [low, high] = extent(points.map(({ value }) => value));
  const room = (high - low) * 0.06 || high * 0.01;
  // As many numbers as have room.
  const every = Math.ceil((numbers.length * 22) / width);
  const ticks = [...numbers.keys()].filter((index) => index % every === 0);
  const valueText = (value: number): string =>
    value.toLocaleString('en-US', { maximumFractionDigits: value < 100 ? 3 : 0 });
  // The sides of a round stand beside each other around its number.
  const x = ({ name, round }: Side): number =>
    numbers.indexOf(round) + 0.56 * (names.indexOf(name) / (names.length - 1) - 0.5);
  return drawn(names, {
    width,
    height: 320,
    marginLeft: 62,
    x: { domain: [-0.5, numbers.length - 0.5] },
    y: { domain: [2 * low > high ? low - room : 0, high + room] },
    marks: [
      gridY({ ticks: 5 }),
      axisX(ticks, {
        ...axis,
        label: 'round',
        text: (index: number) => String(numbers[index]),
        tickSize: 0,
      }),
      axisY({ labelArrow: 'none', label, ticks: 5, tickFormat: valueText }),
      line(points, { x, y: 'value', z: 'round', stroke: 'currentColor', strokeOpacity: 0.3 }),
      dot(points, {
        ...series,
        x,
        y: 'value',
        r: Math.min(4, width / points.length / 1.8),
        className: 'side',
        title: (one: Side) => `${one.name}, round ${one.round}: ${valueText(one.value)}`,
      }),
    ],
  });
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
