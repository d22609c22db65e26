// What all plots have in common.
import { dot, plot, type Plot, type PlotOptions } from '@observablehq/plot';

/** Series are told apart by their symbols, too. */
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

/** The style sheet has as many colours. */
const colours = 8;

interface Named {
  name: string;
}

/** How the marks of each series look, by its name, and a key to them. */
export function seriesOf(names: readonly string[]): {
  key: HTMLElement;
  colour: (one: Named) => string;
  symbol: (one: Named) => Entry['symbol'];
} {
  const at = ({ name }: Named): number => names.indexOf(name);
  const colour = (one: Named): string => `var(--series-${at(one) % colours})`;
  // After the last colour the symbols are others for each of them.
  const symbol = (one: Named): Entry['symbol'] =>
    symbols[(at(one) + Math.floor(at(one) / colours) * 3) % symbols.length] ?? 'circle';
  return {
    key: keyOf(names.map((name) => ({ name, fill: colour({ name }), symbol: symbol({ name }) }))),
    colour,
    symbol,
  };
}

/** How wide a text is, bold or not, in pixels of the plots' font; a little more than most fonts take. */
export function textWidth(text: string): number {
  return text.length * 7.6;
}

export function drawn(options: PlotOptions): (SVGSVGElement | HTMLElement) & Plot {
  return plot({
    style: { fontFamily: 'inherit', fontSize: '12px', background: 'none', overflow: 'visible' },
    ...options,
  });
}

interface Margins {
  left: number;
  right: number;
  top: number;
  bottom: number;
}

/** How large a plot is: as wide as its place, its height that part of the width, between the least and the most. All in pixels. */
export function frame(
  width: number,
  { least, most, part }: { least: number; most: number; part: number },
  { left, right, top, bottom }: Margins,
): PlotOptions {
  return {
    width,
    height: Math.round(Math.min(most, Math.max(least, width * part))),
    marginLeft: left,
    marginRight: right,
    marginTop: top,
    marginBottom: bottom,
  };
}

interface Entry extends Named {
  fill: string;
  symbol: (typeof symbols)[number];
}

/** What the marks mean. */
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
