import { axisX, dot, gridX, rect, ruleX, ruleY, text, tickX } from '@observablehq/plot';
import { extent } from '../../../analysis/statistics.ts';
import type { Effect, Effects } from '../figure.ts';
import { drawn, textWidth } from './common.ts';

type RoundOf = Effect['rounds'][number] & { name: string };

/** From this quotient of the ends on the scale is a log one. */
const wide = 4;
const doublings = Array.from({ length: 41 }, (_, index) => 2 ** (index - 20));
const lineHeight = 14;

export function drawEffects({ effects, same, noise }: Effects, width: number): Element[] {
  const rounds = effects.flatMap(({ name, rounds: all }): RoundOf[] => all.map((one) => ({ ...one, name })));
  const bounded = effects.filter(({ interval }) => interval !== null);
  const ends = [
    1 / (1 + same), 1 + same, ...effects.map(({ ratio }) => ratio), ...rounds.map(({ ratio }) => ratio), ...bounded.flatMap(({ interval }) => interval ?? []),
    ...(noise === null ? [] : [1 / (1 + noise), 1 + noise]),
  ];
  const [low, high] = extent(ends);
  const room = (high / low) ** 0.04;
  const isLog = high / low > wide;
  const ticks = isLog ? doublings.filter((ratio) => ratio >= low / room && ratio <= high * room) : Math.max(2, Math.floor(width / 110));
  const names = effects.map(({ name }) => name);
  // A label that does not fit beside its name goes below it, and a name that does not fit takes two lines.
  const below = effects.some(({ name, label }) => textWidth(name) + textWidth(label) + 24 > width);
  const isSplit = effects.some(({ name }) => textWidth(name) + 20 > width);
  const nameLines = isSplit ? 2 : 1;
  const head = 6 + lineHeight * (nameLines + (below ? 1 : 0));
  const step = head + 38;
  const height = 6 + names.length * step + 40;
  const at = { y: 'name' } as const;
  return [drawn({
    width,
    height,
    marginLeft: 10,
    marginRight: 10,
    marginTop: 6,
    marginBottom: 40,
    x: { type: isLog ? 'log' : 'linear', domain: [low / room, high * room] },
    y: { type: 'band', domain: names, axis: null, padding: 0 },
    marks: [
      ...(typeof ticks === 'number' ? [gridX({ ticks }), axisX({ ...axis, ticks, tickFormat: ratioText })] : [gridX(ticks), axisX(ticks, { ...axis, text: ratioText })]),
      rect([0], { x1: 1 / (1 + same), x2: 1 + same, fill: 'var(--band)', className: 'same-band' }),
      ruleX([1], { stroke: 'currentColor' }),
      ...(noise === null ? [] : [ruleX([1 / (1 + noise), 1 + noise], { stroke: 'currentColor', strokeDasharray: '1,4', className: 'noise' })]),
      text(effects, { ...at, text: ({ name }: Effect) => (isSplit ? name.replace(' against ', '\nagainst ') : name), frameAnchor: 'left', lineAnchor: 'top', lineHeight: lineHeight / 12, dy: 4 - step / 2, fontWeight: 600, fill: 'currentColor', className: 'name', ...halo }),
      text(effects, { ...at, text: 'label', lineAnchor: 'top', ...(below ? { frameAnchor: 'left', dy: 4 - step / 2 + lineHeight * nameLines } : { frameAnchor: 'right', dy: 4 - step / 2 }), fill: colour, ...halo }),
      ruleY(bounded, { ...at, x1: ({ interval }: Effect) => interval?.[0], x2: ({ interval }: Effect) => interval?.[1], dy: head / 2 - 4, stroke: colour, strokeWidth: 2.5, className: 'interval', title }),
      ...[0, 1].map((end) => tickX(bounded, { ...at, x: ({ interval }: Effect) => interval?.[end], dy: head / 2 - 4, insetTop: step / 2 - 5, insetBottom: step / 2 - 5, stroke: colour, strokeWidth: 2 })),
      dot(effects, { ...at, x: 'ratio', dy: head / 2 - 4, symbol: 'diamond', r: 6, fill: colour, stroke: 'var(--ground)', className: 'effect', title }),
      dot(rounds.filter(({ apart }) => !apart), { ...at, x: 'ratio', dy: head / 2 + 11, r: 3, fill: 'currentColor', fillOpacity: 0.55, className: 'round', title: roundTitle }),
      dot(rounds.filter(({ apart }) => apart), { ...at, x: 'ratio', dy: head / 2 + 11, r: 4, symbol: 'times', stroke: 'currentColor', strokeWidth: 2, className: 'round apart', title: roundTitle }),
    ],
  })];
}

const axis = { label: 'ratio to the baseline', labelAnchor: 'left', labelArrow: 'none', labelOffset: 36 } as const;

function ratioText(ratio: number): string {
  return `×${Number(ratio.toPrecision(4))}`;
}

/** So that lines behind a text do not cross it out. */
const halo = { stroke: 'var(--ground)', strokeWidth: 4 };

function colour({ verdict }: Effect): string {
  return `var(--${verdict})`;
}

function title({ name, label }: Effect): string {
  return `${name}: ${label}`;
}

function roundTitle({ name, round, ratio, apart }: RoundOf): string {
  return `${name}, round ${round}: ×${ratio.toFixed(3)}${apart ? ', lies apart' : ''}`;
}
