// What all plots share: sizes, axes, the look of series, the key.
import {
  axisX,
  axisY,
  dot,
  plot,
  type AxisXOptions,
  type AxisYOptions,
  type Plot,
  type PlotOptions,
} from '@observablehq/plot';

const symbols = [
  'circle',
  'square',
  'triangle',
  'diamond',
  'star',
  'wye',
  'plus',
  'times',
] as const;

/** The number of colours in the style sheet. */
const colours = 8;

interface Named {
  name: string;
}

interface Entry extends Named {
  fill: string;
  symbol: (typeof symbols)[number];
}

/** The key of some series, and the colour and symbol of each by its name. After the last colour the symbols change. */
export function seriesOf(names: readonly string[]): {
  key: HTMLElement;
  colour: (one: Named) => string;
  symbol: (one: Named) => Entry['symbol'];
} {
  const at = ({ name }: Named): number => names.indexOf(name);
  const colour = (one: Named): string => `var(--series-${at(one) % colours})`;
  const symbol = (one: Named): Entry['symbol'] =>
    symbols[(at(one) + Math.floor(at(one) / colours) * 3) % symbols.length] ?? 'circle';
  return {
    key: keyOf(names.map((name) => ({ name, fill: colour({ name }), symbol: symbol({ name }) }))),
    colour,
    symbol,
  };
}

/** The width of a text in pixels, for bold type too: a little more than most fonts need. */
export function textWidth(text: string): number {
  return text.length * 7.6;
}

export function drawn(options: PlotOptions): (SVGSVGElement | HTMLElement) & Plot {
  return plot({
    style: { fontFamily: 'inherit', fontSize: '12px', background: 'none', overflow: 'visible' },
    ...options,
  });
}

/** Size and margins in pixels: the height is a `part` of the width, within bounds. */
export function sizeOf(
  width: number,
  { least, most, part }: { least: number; most: number; part: number },
  { left, right }: { left: number; right: number },
): PlotOptions {
  return {
    width,
    height: Math.round(Math.min(most, Math.max(least, width * part))),
    marginLeft: left,
    marginRight: right,
    marginTop: 24,
    marginBottom: 42,
  };
}

/** The horizontal axis, at `ticks` if given. */
export function bottomAxis(label: string, options: AxisXOptions, ticks?: readonly number[]) {
  const all: AxisXOptions = {
    label,
    labelAnchor: 'left',
    labelArrow: 'none',
    labelOffset: 38,
    ...options,
  };
  return ticks === undefined ? axisX(all) : axisX(ticks, all);
}

export function leftAxis(label: string, options: AxisYOptions) {
  return axisY({ label, labelArrow: 'none', ...options });
}

/** Text that stays readable over lines. */
export const outlined = {
  fill: 'currentColor',
  stroke: 'var(--ground)',
  strokeWidth: 4,
} as const;

export function keyOf(entries: readonly Entry[]): HTMLElement {
  const key = document.createElement('div');
  key.className = 'key';
  for (const { name, fill, symbol } of entries) {
    const entry = document.createElement('span');
    const mark = dot([name], { frameAnchor: 'middle', r: 5, symbol, fill, stroke: fill });
    entry.append(drawn({ width: 14, height: 14, margin: 0, marks: [mark] }), name);
    key.append(entry);
  }
  return key;
}
