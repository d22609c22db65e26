import { axisX, barX, gridX, ruleX, text } from '@observablehq/plot';
import type { Bar, Bars } from '../figure.ts';
import { drawn, keyOf, textWidth } from './common.ts';

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
