// HTML as values: a template escapes its pieces unless they are HTML already. Tables, paragraphs and lists as HTML.
import { neighbours, textOf, type Cell, type Heading, type Table } from '../table.ts';

export class Html {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }
}

type Piece = Html | string | number | readonly Piece[];

/** html`<p>${text}</p>`: escapes texts and numbers, joins lists. */
export function html(strings: TemplateStringsArray, ...pieces: readonly Piece[]): Html {
  return new Html(strings.map((text, index) => text + textOfPiece(pieces[index] ?? '')).join(''));
}

export const nothing = new Html('');

function textOfPiece(piece: Piece): string {
  if (piece instanceof Html) return piece.text;
  if (typeof piece === 'object') return piece.map(textOfPiece).join('');
  return String(piece)
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;');
}

/** JSON for a script element, which cannot end it or begin a comment. */
export function scriptJson(value: unknown): Html {
  return new Html(JSON.stringify(value).replaceAll('<', '\\u003c'));
}

/** A table in a box that scrolls; '' without rows. `name` is for screen readers; `wraps` breaks long texts. */
export function tableHtml({ columns, rows }: Table, name: string, { wraps = false } = {}): Html {
  if (rows.length === 0) return nothing;
  const all = neighbours(columns, (column, before) => column.group === before.group);
  const groups = columns.every(({ group }) => group === '') ? [] : all;
  const titles = columns.map(
    ({ title, align }) =>
      html`<th scope="col" class="${align}">${title === '' ? 'bar' : title}</th>`,
  );
  const lines = rows.map(
    ([first = '', ...cells]) =>
      html`<tr><th scope="row" class="${columns[0]?.align ?? ''}">${textOf(first).trim().replaceAll(/ {2,}/g, ' · ')}</th>${cells.map((cell, index) => cellHtml(cell, columns[index + 1]?.align ?? 'left'))}</tr>\n`,
  );
  return html`<div class="scroll" role="region" aria-label="${name}" tabindex="0"><table class="${wraps ? 'wraps' : 'lines'}">
${groups.map(({ length }) => html`<colgroup span="${length}"></colgroup>`)}<thead>${groupRow(groups)}<tr>${titles}</tr></thead>
<tbody>${lines}</tbody></table></div>
`;
}

function groupRow(groups: readonly (readonly Heading[])[]): Html {
  if (groups.length === 0) return nothing;
  const cells = groups.map(({ length, 0: first }) =>
    first?.group
      ? html`<th scope="colgroup" colspan="${length}" class="group">${first.group}</th>`
      : html`<td colspan="${length}"></td>`,
  );
  return html`<tr>${cells}</tr>`;
}

/** Bars, hidden from screen readers, which have the figures. */
const bars = /[█-▏]+/;

function cellHtml(cell: Cell, align: Heading['align']): Html {
  const text = textOf(cell);
  const [bar] = bars.exec(text) ?? [];
  // Spaces that align a cell's parts in the terminal go; bars need theirs.
  const shown = bar === undefined ? text.trim().replaceAll(/ {2,}/g, ' ') : text;
  const part = typeof cell === 'string' ? (bar ?? '') : cell.part;
  const at = part === '' ? shown.length : shown.indexOf(part);
  const attributes =
    typeof cell === 'string' ? html`aria-hidden="true"` : html`class="verdict ${cell.verdict}"`;
  const span = part === '' ? nothing : html`<span ${attributes}>${part}</span>`;
  return html`<td class="${align}${bar === undefined ? '' : ' drawn'}">${shown.slice(0, at)}${span}${shown.slice(at + part.length)}</td>`;
}

export function paragraphs(lines: readonly string[], className = ''): Html {
  const attribute = className === '' ? nothing : html` class="${className}"`;
  return html`${lines.map((line) => html`<p${attribute}>${unbroken(line)}</p>\n`)}`;
}

/** A list; '' without lines. */
export function list(lines: readonly string[], className: string): Html {
  return lines.length === 0
    ? nothing
    : html`<ul class="${className}">${lines.map((line) => html`<li>${unbroken(line)}</li>\n`)}</ul>\n`;
}

/** Keeps figures and their per cent signs on one line. */
export function unbroken(text: string): string {
  return text.replaceAll(' %', '\u00a0%');
}
