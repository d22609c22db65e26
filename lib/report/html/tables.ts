// Tables in HTML: the same cells as in the terminal.
import { textOf, type Cell, type Heading, type Table } from '../table.ts';
import { html, nothing, type Html } from './markup.ts';

/**
 * A table in a box of its own, which scrolls where the page is too narrow. `name` is for those who hear it; `wraps`: its texts
 * may take several lines. Nothing without rows.
 */
export function tableHtml({ columns, rows }: Table, name: string, { wraps = false } = {}): Html {
  if (rows.length === 0) return nothing;
  return html`<div class="scroll" role="region" aria-label="${name}" tabindex="0"><table class="${wraps ? 'wraps' : 'lines'}">
<thead>${groupRow(columns)}<tr>${columns.map(({ title, align }) => html`<th scope="col" class="${align}">${title}</th>`)}</tr></thead>
<tbody>${rows.map((row) => html`<tr>${row.map((cell, index) => cellHtml(cell, columns[index]?.align ?? 'left', index === 0))}</tr>
`)}</tbody></table></div>
`;
}

/** The names of neighbouring columns' groups, where there are any. */
function groupRow(columns: readonly Heading[]): Html {
  if (columns.every(({ group }) => group === '')) return nothing;
  const groups: { group: string; span: number }[] = [];
  for (const { group } of columns) {
    const last = groups.at(-1);
    if (last !== undefined && last.group === group) last.span++;
    else groups.push({ group, span: 1 });
  }
  return html`<tr>${groups.map(({ group, span }) => (
    group === '' ? html`<td colspan="${span}"></td>` : html`<th scope="colgroup" colspan="${span}" class="group">${group}</th>`
  ))}</tr>`;
}

/** Bars and their marks. */
const drawn = /[█-▏│]/;

function cellHtml(cell: Cell, align: Heading['align'], isName: boolean): Html {
  // The parts of a name are aligned, for a terminal.
  if (isName) return html`<th scope="row" class="${align}">${textOf(cell).trim().replaceAll(/ {2,}/g, ' · ')}</th>`;
  const content = contentOf(cell);
  return html`<td class="${align}${drawn.test(textOf(cell)) ? ' drawn' : ''}">${content}</td>`;
}

function contentOf(cell: Cell): Html {
  const text = textOf(cell);
  // Some cells are aligned within themselves, for a terminal; those with bars are here, too.
  const shown = drawn.test(text) ? text : text.trim().replaceAll(/ {2,}/g, ' ');
  if (typeof cell === 'string') return html`${shown}`;
  const at = shown.indexOf(cell.part);
  return html`${shown.slice(0, at)}<span class="verdict ${cell.verdict}">${cell.part}</span>${shown.slice(at + cell.part.length)}`;
}
