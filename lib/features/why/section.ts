// The causes on the page of a run: bars, tables and flame graphs.
import { short } from '../../format.ts';
import { textIn } from '../../report/html/differences.ts';
import { html, nothing, paragraphs, sideBySide, type Html } from '../../report/html/page.ts';
import type { Result } from '../../result/result.ts';
import { flameGraph, type Stacks } from './flame.ts';
import { cpuBars, cpuOf, pairsOf, stacksFile, whyPart, type CpuBar } from './report.ts';

/** The section on causes, if they were looked at. */
export async function whySections(result: Result, folder: string | undefined): Promise<Html[]> {
  const stacks = folder === undefined ? [] : readStacks(folder, result);
  const { names, bars } = cpuBars(result);
  const most = Math.max(...bars.map(({ us }) => us));
  const colourOf = (name: string) => `background:var(--series-${names.indexOf(name)})`;
  const parts = ({ parts: all }: CpuBar) =>
    all.map(({ name, us }) => {
      const text = `${name}: ${short(us)} µs`;
      return html`<i style="width:${((100 * us) / most).toFixed(2)}%;${colourOf(name)}" title="${text}"></i>`;
    });
  return whyPart(result).map(
    ({ tables, below }) => html`<section><h2>Why</h2>
<p>CPU time of a request, by system call, other work of the kernel, and object in user space.</p>
<div class="stacks">${bars.map((bar) => html`<b>${bar.variant}</b><span class="stack">${parts(bar)}</span><b>${short(bar.us)} µs</b>`)}</div>
<p class="legend">${names.map((name) => html`<span><i style="${colourOf(name)}"></i>${name}</span> `)}</p>
${sideBySide(tables)}${paragraphs(below)}${flamesHtml(result, stacks)}</section>
`,
  );
}

function flamesHtml(result: Result, stacks: readonly Stacks[]): Html {
  if (stacks.length === 0) return nothing;
  const of = (name: string) => stacks.filter(({ variant }) => variant === name);
  const pairs = pairsOf(result).flatMap(({ variant, baseline }) =>
    of(variant.variant).flatMap((now) => of(baseline.variant).map((before) => ({ now, before }))),
  );
  return html`<details><summary>Flame graphs</summary>${pairs.map(({ now, before }) => html`<h3>${now.variant} against ${before.variant}: red takes more CPU time, green less</h3>${flameGraph(now, before)}`)}${stacks.map((side) => html`<h3>${side.variant}</h3>${flameGraph(side)}`)}</details>`;
}

function readStacks(folder: string, { why }: Result): Stacks[] {
  return (why?.sides ?? []).flatMap((side) =>
    textIn(folder, stacksFile(side.variant)).map((folded) => {
      return { variant: side.variant, folded, us: cpuOf(side) };
    }),
  );
}
