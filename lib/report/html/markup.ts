// HTML as values: what is put into a template is escaped unless it is HTML already.
import { neighbours, textOf, type Cell, type Heading, type Table } from '../table.ts';

/** A piece of a page. */
export class Html {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }
}

type Piece = Html | string | number | readonly Piece[];

/** html`<p>${text}</p>`: texts and numbers are escaped, lists are put one after another. */
export function html(strings: TemplateStringsArray, ...pieces: readonly Piece[]): Html {
  return new Html(
    strings.reduce(
      (whole, text, index) =>
        whole + text + (index < pieces.length ? textOfPiece(pieces[index] as Piece) : ''),
      '',
    ),
  );
}

export const nothing = new Html('');

/** For element content and for attributes in double quotes. */
function escapeHtml(text: string): string {
  return text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;');
}

/** JSON for a script element: nothing in it ends that, or begins a comment. */
export function scriptJson(value: unknown): Html {
  return new Html(JSON.stringify(value).replaceAll('<', '\\u003c'));
}

function textOfPiece(piece: Piece): string {
  if (piece instanceof Html) return piece.text;
  if (typeof piece === 'object') return piece.map(textOfPiece).join('');
  return escapeHtml(String(piece));
}

/**
 * A table in a box of its own, which scrolls where the page is too narrow. `name` is for those who hear it; `wraps`: its texts
 * may take several lines. Nothing without rows.
 */
export function tableHtml({ columns, rows }: Table, name: string, { wraps = false } = {}): Html {
  if (rows.length === 0) return nothing;
  const groups = columns.every(({ group }) => group === '')
    ? []
    : neighbours(columns, (column, before) => column.group === before.group);
  // The columns' groups are there for those who hear the names of them.
  return html`<div class="scroll" role="region" aria-label="${name}" tabindex="0"><table class="${wraps ? 'wraps' : 'lines'}">
${groups.map(({ length }) => html`<colgroup span="${length}"></colgroup>`)}<thead>${groupRow(groups)}<tr>${columns.map(({ title, align }) => html`<th scope="col" class="${align}">${title === '' ? 'bar' : title}</th>`)}</tr></thead>
<tbody>${rows.map(
    (
      row,
    ) => html`<tr>${row.map((cell, index) => cellHtml(cell, columns[index]?.align ?? 'left', index === 0))}</tr>
`,
  )}</tbody></table></div>
`;
}

/** The names of groups over their columns. */
function groupRow(groups: readonly (readonly Heading[])[]): Html {
  return groups.length === 0
    ? nothing
    : html`<tr>${groups.map(({ length, 0: first }) =>
        first?.group
          ? html`<th scope="colgroup" colspan="${length}" class="group">${first.group}</th>`
          : html`<td colspan="${length}"></td>`,
      )}</tr>`;
}

/** Bars and their marks: those who hear the page have their figures. */
const drawn = /[█-▏│][█-▏│ ]*/;

function cellHtml(cell: Cell, align: Heading['align'], isName: boolean): Html {
  // The parts of a name are aligned, for a terminal.
  if (isName)
    return html`<th scope="row" class="${align}">${textOf(cell).trim().replaceAll(/ {2,}/g, ' · ')}</th>`;
  const content = contentOf(cell);
  return html`<td class="${align}${drawn.test(textOf(cell)) ? ' drawn' : ''}">${content}</td>`;
}

function contentOf(cell: Cell): Html {
  const text = textOf(cell);
  const [bar] = drawn.exec(text) ?? [];
  // Some cells are aligned within themselves, for a terminal; those with bars are here, too.
  const shown = bar === undefined ? text.trim().replaceAll(/ {2,}/g, ' ') : text;
  const part = typeof cell === 'string' ? bar : cell.part;
  if (part === undefined) return html`${shown}`;
  const at = shown.indexOf(part);
  const span =
    typeof cell === 'string'
      ? html`<span aria-hidden="true">${part}</span>`
      : html`<span class="verdict ${cell.verdict}">${part}</span>`;
  return html`${shown.slice(0, at)}${span}${shown.slice(at + part.length)}`;
}

/** Paragraphs of plain lines. */
export function paragraphs(lines: readonly string[], className = ''): Html {
  const attribute = className === '' ? nothing : html` class="${className}"`;
  return html`${lines.map((line) => html`<p${attribute}>${unbroken(line)}</p>\n`)}`;
}

/** A list of plain lines; nothing of none. */
export function list(lines: readonly string[], className: string): Html {
  return lines.length === 0
    ? nothing
    : html`<ul class="${className}">${lines.map((line) => html`<li>${unbroken(line)}</li>\n`)}</ul>\n`;
}

/** A figure and its per cent sign stay together. */
export function unbroken(text: string): string {
  return text.replaceAll(' %', '\u00a0%');
}
