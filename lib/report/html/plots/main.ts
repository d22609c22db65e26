// Draws the plots at the width that the page has. Colours come from the style sheet, so that they follow the colour scheme.
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
  selectLast,
  text,
  type PlotOptions,
} from '@observablehq/plot';
import { extent } from '../../../analysis/statistics.ts';
import type { Bars, Lines, PlotData } from '../figure.ts';

const axis = { labelAnchor: 'left', labelArrow: 'none', labelOffset: 38 } as const;

/** Text that stays readable over lines. */
const outlined = { fill: 'currentColor', stroke: 'var(--ground)', strokeWidth: 4 } as const;

function drawn(names: readonly string[], options: PlotOptions, hasSymbols = true): Element[] {
  const usual: PlotOptions = {
    marginTop: 24,
    marginBottom: 42,
    style: { fontFamily: 'inherit', fontSize: '12px', overflow: 'visible' },
    color: {
      domain: names,
      range: names.map((_, index) => `var(--series-${index % 8})`),
      unknown: 'currentColor',
    },
  };
  if (hasSymbols) usual.symbol = { domain: names };
  const chart = plot({ ...usual, ...options });
  const key = chart.legend(hasSymbols ? 'symbol' : 'color');
  return key === undefined ? [chart] : [key, chart];
}

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

const looks = {
  strong: { strokeWidth: 2 },
  thin: { strokeWidth: 1, strokeOpacity: 0.35 },
  dashed: { strokeWidth: 2, strokeDasharray: '2 3' },
} as const;

/** An axis with ticks of its own, of which `shownTicks` fit, or with numbers. */
function horizontalAxis(
  { title, ticks = [] }: Lines['x'],
  shownTicks: NonNullable<Lines['x']['ticks']>,
  width: number,
) {
  if (ticks.length > 0)
    return axisX(shownTicks, { ...axis, label: title, x: 'at', text: 'text', tickSize: 0 });
  const tickFormat = (at: number) => at.toLocaleString('en');
  return axisX({ ...axis, label: title, ticks: width > 500 ? 6 : 3, tickFormat });
}

/** Draws lines. A curve turns up at its knee only on log scales. */
function drawLines({ x, y, names, limit, marks, lines }: Lines, width: number): Element[] {
  const place = { x: 'x', y: 'y' } as const;
  const limits = limit ? [limit] : [];
  const { ticks = [] } = x;
  const { from: bottom = 0 } = y;
  // Show as many labels as fit.
  const every = Math.ceil(
    (ticks.length * (8 + 7 * Math.max(...ticks.map((tick) => tick.text.length)))) / (width - 90),
  );
  const shownTicks = ticks.filter((_, index) => index % every === 0);
  const [left, right] = extent([...marks, ...lines].map((point) => point.x));
  const intervals = marks.filter(({ interval }) => interval !== undefined);
  const heights = [...limits, ...marks, ...lines].map((point) => point.y);
  const [low, high] = extent(
    [...heights, ...intervals.flatMap(({ interval = [] }) => interval)].filter((at) => at > 0),
  );
  const linearEnd = high + ((high - bottom) * 0.06 || high * 0.01);
  return drawn(names, {
    width,
    height: 380,
    marginLeft: 62,
    marginRight: 28,
    x: x.isLog ? { type: 'log', domain: [left * 0.9, right * 1.1] } : { inset: 12 },
    y: y.isLog
      ? { type: 'log', domain: [low * 0.8, high * 1.25] }
      : { domain: [bottom, linearEnd] },
    opacity: { domain: [0, 1] },
    marks: [
      gridY({ ticks: 5 }),
      gridX(x.isLog ? shownTicks : [], { x: 'at' }),
      horizontalAxis(x, shownTicks, width),
      axisY({
        labelArrow: 'none',
        label: y.title,
        ticks: 5,
        tickFormat: (at: number) => at.toLocaleString('en', { maximumSignificantDigits: 4 }),
      }),
      ruleY(limits, { y: 'y', stroke: 'currentColor', strokeDasharray: '4 3' }),
      ...(['thin', 'dashed', 'strong'] as const).map((look) =>
        line(
          lines.filter((point) => point.look === look),
          { ...place, ...looks[look], z: 'line', stroke: 'name' },
        ),
      ),
      text(
        lines.filter(({ end }) => end !== undefined),
        selectLast({
          ...place,
          ...outlined,
          z: 'line',
          text: 'end',
          textAnchor: 'start',
          dx: 8,
          fill: 'name',
        }),
      ),
      ruleX(intervals, {
        x: 'x',
        y1: ({ interval }: Mark) => interval?.[0],
        y2: ({ interval }: Mark) => interval?.[1],
        stroke: 'name',
        strokeWidth: 2,
        marker: 'tick',
      }),
      dot(marks, {
        ...place,
        stroke: 'name',
        fill: 'name',
        symbol: 'name',
        r: Math.min(4, Math.max(2, width / marks.length / 1.8)),
        fillOpacity: ({ kept }: Mark) => (kept === false ? 0 : 1),
        className: 'mark',
        title: 'title',
      }),
      text(limits, { ...outlined, x: left, y: 'y', text: 'text', textAnchor: 'start', dy: -7 }),
    ],
  });
}

type Mark = Lines['marks'][number];

const all = JSON.parse(document.getElementById('figures')?.textContent ?? '[]') as PlotData[];
for (const [index, data] of all.entries()) {
  const place = document.getElementById(`plot-${index}`);
  if (place === null) continue;
  let shown = 0;
  const redraw = (): void => {
    const width = Math.floor(place.clientWidth);
    if (width === shown || width === 0) return;
    shown = width;
    place.replaceChildren(
      ...(data.kind === 'bars' ? drawBars(data, width) : drawLines(data, width)),
    );
  };
  redraw();
  new ResizeObserver(redraw).observe(place);
}

/** Returns the figure at the beginning of a cell; for an effect ("+41 %", "3 times") its ratio. */
function figureIn(text: string): number {
  const [, sign = '', digits, unit] = /^([+−]?)([\d.,]+)(\s%)?/.exec(text) ?? [];
  if (digits === undefined) return -Infinity;
  const figure = Number(digits.replaceAll(',', '')) * (sign === '−' ? -1 : 1);
  return sign !== '' && unit !== undefined ? 1 + figure / 100 : figure;
}

// A click on a title sorts the rows: names from a to z, the largest figures first. Another click reverses the order.
for (const table of document.querySelectorAll<HTMLTableElement>('table.sorts'))
  for (const [place, title] of [...table.querySelectorAll('thead tr:last-child th')].entries()) {
    const button = document.createElement('button');
    button.textContent = title.textContent;
    title.replaceChildren(button);
    button.addEventListener('click', () => {
      const first = place === 0 ? 'ascending' : 'descending';
      const second = place === 0 ? 'descending' : 'ascending';
      const way = title.getAttribute('aria-sort') === first ? second : first;
      for (const other of table.querySelectorAll('[aria-sort]')) other.removeAttribute('aria-sort');
      title.setAttribute('aria-sort', way);
      const textOf = (row: Element): string => row.children[place]?.textContent ?? '';
      const [body] = table.tBodies;
      const rows = [...(body?.rows ?? [])].sort((row, other) => {
        const [a, b] = [textOf(row), textOf(other)];
        return place === 0 ? a.localeCompare(b) : figureIn(a) - figureIn(b);
      });
      body?.append(...(way === 'ascending' ? rows : rows.reverse()));
    });
  }

// On paper nothing can be unfolded.
addEventListener('beforeprint', () => {
  for (const details of document.querySelectorAll('details')) details.open = true;
});
