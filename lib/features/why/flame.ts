// Flame graphs of a request's CPU time: a side's, or the difference of two.
import { total } from '../../analysis/statistics.ts';
import { short } from '../../format.ts';
import { html, type Html } from '../../report/html/page.ts';

/** The stacks of a side in the folded format: "outermost;…;innermost 12", with the number of samples. */
export interface Stacks {
  variant: string;
  folded: string;
  /** CPU time of a request. */
  us: number;
}

/** A function and its callees, in µs per request. */
interface Node {
  name: string;
  now: number;
  before: number;
  children: Map<string, Node>;
}

const rowHeight = 17;
const chart = { width: 1200, narrowest: 2, mostRows: 60 };
/** Width of a letter in pixels. */
const letter = 6.6;

const newNode = (name: string): Node => ({ name, now: 0, before: 0, children: new Map() });

function addStacks(root: Node, { folded, us }: Stacks, key: 'now' | 'before'): void {
  const stacks = [...folded.matchAll(/^(.+) (\d+)$/gm)].map(([, path = '', count]) => ({
    path: path.split(';', chart.mostRows),
    samples: Number(count),
  }));
  const all = total(stacks, ({ samples }) => samples);
  for (const { path, samples } of stacks) {
    let node = root;
    node[key] += (us * samples) / all;
    for (const name of path) {
      const child = node.children.get(name) ?? newNode(name);
      node.children.set(name, child);
      child[key] += (us * samples) / all;
      node = child;
    }
  }
}

/** Vanished frames keep their width, to stay visible. */
function widthOf({ now, before, children }: Node): number {
  return Math.max(now, before, total([...children.values()], widthOf));
}

interface Look {
  /** CSS of the frame. */
  look: string;
  /** CPU time of a request as text. */
  time: string;
}

/** The kernel's frames have another colour. */
function sideLook({ name, now }: Node): Look {
  const series = name.endsWith('_[k]') ? 0 : 1;
  return { look: `fill:var(--series-${series});fill-opacity:.35`, time: `${short(now)} µs` };
}

/** The greater the difference, the stronger the colour. */
function differenceLook({ now, before }: Node): Look {
  const share = (now - before) / Math.max(now, before);
  const opacity = (0.05 + 0.6 * Math.abs(share)).toFixed(2);
  return {
    look: `fill:var(--${share > 0 ? 'slower' : 'faster'});fill-opacity:${opacity}`,
    time: `${short(before)} → ${short(now)} µs`,
  };
}

/** Draws the stacks, the outermost function on top. With a baseline, red takes more CPU time than the baseline, green less. */
export function flameGraph(stacks: Stacks, baseline?: Stacks): Html {
  const root = newNode('all');
  addStacks(root, stacks, 'now');
  if (baseline !== undefined) addStacks(root, baseline, 'before');
  const scale = chart.width / widthOf(root);
  let rows = 0;
  const draw = (node: Node, x: number, row: number): Html[] => {
    const width = widthOf(node) * scale;
    if (width < chart.narrowest || row >= chart.mostRows) return [];
    rows = Math.max(rows, row + 1);
    const { name } = node;
    const { look, time } = baseline === undefined ? sideLook(node) : differenceLook(node);
    const [y, shown] = [row * rowHeight, name.replace(/_\[k\]$/, '')];
    const letters = Math.floor((width - 4) / letter);
    const fitting = shown.length > letters ? `${shown.slice(0, letters - 1)}…` : shown;
    const text =
      letters < 3 ? '' : html`<text x="${(x + 3).toFixed(1)}" y="${y + 12}">${fitting}</text>`;
    let at = x;
    const inner: Html[] = [];
    for (const child of [...node.children.values()].sort((a, b) => (a.name < b.name ? -1 : 1))) {
      inner.push(...draw(child, at, row + 1));
      at += widthOf(child) * scale;
    }
    return [
      html`<g><title>${shown}: ${time}</title><rect x="${x.toFixed(1)}" y="${y}" width="${width.toFixed(1)}" height="${rowHeight - 1}" style="${look}"/>${text}</g>`,
      ...inner,
    ];
  };
  const all = draw(root, 0, 0);
  return html`<div class="scroll"><svg class="flame" viewBox="0 0 ${chart.width} ${rows * rowHeight}" role="img" aria-label="flame graph of ${stacks.variant}">${all}</svg></div>
`;
}
