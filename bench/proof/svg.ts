// Plots as SVG files for pages without scripts: intervals side by side, and lines over time.
import { extent } from '../../lib/analysis/statistics.ts';
import { html, Html } from '../../lib/report/html/page.ts';

/** Meaning of a mark; the n-th mark has the n-th colour and shape. */
export type Series = readonly string[];

/** A value with an interval. */
export interface Bar {
  series: number;
  value: number;
  interval: readonly [low: number, high: number];
}

/** A named group of bars; `reference` is a line at the known true value. */
export interface BarGroup {
  name: string;
  bars: readonly Bar[];
  reference?: number;
}

interface Axis {
  label: string;
  /** Formats a value. */
  text(value: number): string;
}

export interface IntervalPlot {
  title: string;
  series: Series;
  y: Axis;
  groups: readonly BarGroup[];
  /** Label below the axis. */
  x: string;
}

export interface LinePlot {
  title: string;
  series: Series;
  x: Axis;
  y: Axis;
  lines: readonly { series: number; points: readonly (readonly [x: number, y: number])[] }[];
}

const width = 860;
const height = 360;
const [left, right, top, bottom] = [76, 16, 56, 56];
const innerWidth = width - left - right;
const innerHeight = height - top - bottom;

/** Same colours as the report's style sheet (lib/report/html/style.css). */
const style = `
  svg { font: 12px system-ui, sans-serif; --ground: #fff; --text: #1b1f24; --line: #d5dae0; --series-0: #0b63c5; --series-1: #c2410c; --series-2: #067647; --series-3: #a21caf; }
  @media (prefers-color-scheme: dark) { svg { --ground: #14171b; --text: #e6e9ed; --line: #363c44; --series-0: #6cb2ff; --series-1: #ff9d66; --series-2: #4fd18b; --series-3: #e59aef; } }
  .ground { fill: var(--ground); } text { fill: var(--text); } .title { font-weight: 600; font-size: 14px; } .grid { stroke: var(--line); } .axis { stroke: var(--text); }
  .reference { stroke: var(--text); stroke-dasharray: 2 3; } .end { text-anchor: end; } .middle { text-anchor: middle; } .curve { fill: none; stroke-width: 2; }
  .s0 { stroke: var(--series-0); fill: var(--series-0); } .s1 { stroke: var(--series-1); fill: var(--series-1); } .s2 { stroke: var(--series-2); fill: var(--series-2); } .s3 { stroke: var(--series-3); fill: var(--series-3); }
`;

/** Round numbers from `low` to `high`, about `count` of them. */
function ticksBetween(low: number, high: number, count: number): number[] {
  const rough = (high - low) / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = ([1, 2, 5].find((factor) => factor * power >= rough) ?? 10) * power;
  const [first, last] = [Math.ceil(low / step - 1e-9), Math.floor(high / step + 1e-9)];
  return Array.from({ length: last - first + 1 }, (_, index) =>
    Number(((first + index) * step).toPrecision(12)),
  );
}

/** The same for a logarithmic scale: 1, 2 and 5 times each power of ten. */
function logTicksBetween(low: number, high: number): number[] {
  const powers = Array.from(
    { length: Math.ceil(Math.log10(high)) - Math.floor(Math.log10(low)) + 1 },
    (_, index) => 10 ** (Math.floor(Math.log10(low)) + index),
  );
  return powers
    .flatMap((power) => [1, 2, 5].map((factor) => Number((factor * power).toPrecision(6))))
    .filter((tick) => tick >= low && tick <= high);
}

type Scale = (value: number) => number;

/** Returns the SVG of a bar plot, with groups from left to right. */
export function intervalPlot({ title, series, y, groups, x }: IntervalPlot): string {
  const ends = groups.flatMap(({ bars, reference }) => [
    ...bars.flatMap(({ value, interval }) => [value, ...interval]),
    ...(reference === undefined ? [] : [reference]),
  ]);
  const [low, high] = padded(extent(ends));
  const toY: Scale = (value) => top + (innerHeight * (high - value)) / (high - low);
  // The gap between two groups is as wide as a bar.
  const step = innerWidth / groups.reduce((sum, { bars }) => sum + bars.length + 1, 0);
  let at = left;
  const drawn = groups.map(({ name, bars, reference }) => {
    const [from, to] = [at + step / 2, at + step * (bars.length + 0.5)];
    at += step * (bars.length + 1);
    return html`${reference === undefined ? '' : rule('reference', from, to, toY(reference))}${bars.map((bar, index) => barMarks(bar, from + step * (index + 0.5), toY))}
<text class="middle" x="${round((from + to) / 2)}" y="${height - bottom + 18}">${name}</text>`;
  });
  return file(
    title,
    series,
    html`${valueAxis(ticksBetween(low, high, 6), toY, y)}${drawn}
<text class="middle" x="${left + innerWidth / 2}" y="${height - 12}">${x}</text>`,
  );
}

/** Returns the SVG of lines over time, with both scales logarithmic. */
export function linePlot({ title, series, x, y, lines }: LinePlot): string {
  const all = lines.flatMap(({ points }) => points);
  const [xLow, xHigh] = extent(all.map(([time]) => time));
  const [yLow, yHigh] = extent(all.map(([, value]) => value));
  const room = 1.15;
  const between = (low: number, high: number, value: number): number =>
    Math.log(value / (low / room)) / Math.log((high * room) / (low / room));
  const toX: Scale = (value) => left + innerWidth * between(xLow, xHigh, value);
  const toY: Scale = (value) => top + innerHeight * (1 - between(yLow, yHigh, value));
  const curves = lines.map(
    ({
      series: index,
      points,
    }) => html`<polyline class="curve s${index}" style="fill: none" points="${points.map(([a, b]) => `${round(toX(a))},${round(toY(b))}`).join(' ')}"/>
${points.map(([a, b]) => mark(index, toX(a), toY(b)))}`,
  );
  return file(
    title,
    series,
    html`${valueAxis(logTicksBetween(yLow / room, yHigh * room), toY, y)}
${logTicksBetween(xLow / room, xHigh * room).map((tick) => html`<line class="grid" x1="${round(toX(tick))}" x2="${round(toX(tick))}" y1="${top}" y2="${height - bottom}"/><text class="middle" x="${round(toX(tick))}" y="${height - bottom + 18}">${x.text(tick)}</text>`)}
${curves}<text class="middle" x="${left + innerWidth / 2}" y="${height - 12}">${x.label}</text>`,
  );
}

function file(title: string, series: Series, content: Html): string {
  let at = left;
  const key =
    series.length < 2
      ? []
      : series.map((name, index) => {
          const x = at;
          at += 30 + name.length * 7;
          return html`${mark(index, x + 5, 40)}<text x="${x + 14}" y="44">${name}</text>`;
        });
  return html`<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" role="img" aria-label="${title}">
<style>${new Html(style)}</style>
<rect class="ground" width="${width}" height="${height}"/>
<text class="title" x="${left}" y="22">${title}</text>
${key}
${content}
</svg>
`.text;
}

function valueAxis(ticks: readonly number[], toY: Scale, { label, text }: Axis): Html {
  return html`${ticks.map((tick) => html`${rule('grid', left, width - right, toY(tick))}<text class="end" x="${left - 8}" y="${round(toY(tick) + 4)}">${text(tick)}</text>`)}
<text class="middle" transform="translate(16 ${top + innerHeight / 2}) rotate(-90)">${label}</text>
<line class="axis" x1="${left}" x2="${left}" y1="${top}" y2="${height - bottom}"/>
`;
}

function barMarks({ series, value, interval: [low, high] }: Bar, x: number, toY: Scale): Html {
  return html`<line class="s${series}" stroke-width="1.5" x1="${round(x)}" x2="${round(x)}" y1="${round(toY(low))}" y2="${round(toY(high))}"/>${mark(series, x, toY(value))}
`;
}

/** Shapes differ too, for readers who cannot distinguish the colours. */
function mark(series: number, x: number, y: number): Html {
  const [a, b] = [round(x), round(y)];
  switch (series) {
    case 0:
      return html`<circle class="s0" cx="${a}" cy="${b}" r="3"/>`;
    case 1:
      return html`<rect class="s1" x="${round(x - 3)}" y="${round(y - 3)}" width="6" height="6"/>`;
    case 2:
      return html`<path class="s2" d="M${a} ${round(y - 4)}l4 7h-8z"/>`;
    default:
      return html`<path class="s3" d="M${a} ${round(y - 4)}l4 4-4 4-4-4z"/>`;
  }
}

function rule(className: string, from: number, to: number, y: number): Html {
  return html`<line class="${className}" x1="${round(from)}" x2="${round(to)}" y1="${round(y)}" y2="${round(y)}"/>`;
}

function padded([low, high]: readonly [number, number]): [number, number] {
  const room = (high - low) * 0.05 || 0.01;
  return [low - room, high + room];
}

function round(value: number): number {
  return Math.round(value * 100) / 100;
}
