// HTML as values: a template escapes its pieces unless they are HTML already. A whole page in one file, which loads nothing.
import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import type { Figure } from '../charts.ts';
import { groupsOf, textOf, type Cell, type Heading, type Table } from '../table.ts';

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
function scriptJson(value: unknown): Html {
  return new Html(JSON.stringify(value).replaceAll('<', '\\u003c'));
}

/** A table in a box that scrolls; '' without rows. `name` is for screen readers; `wraps` breaks long texts; `sorts` at a click on a title. */
export function tableHtml(
  { columns, rows }: Table,
  name: string,
  { wraps = false, sorts = false } = {},
): Html {
  if (rows.length === 0) return nothing;
  const groups = columns.every(({ group }) => group === '') ? [] : groupsOf(columns);
  const titles = columns.map(
    ({ title, align }) =>
      html`<th scope="col" class="${align}">${title === '' ? 'bar' : title}</th>`,
  );
  const lines = rows.map(
    ([first = '', ...cells]) =>
      html`<tr><th scope="row" class="${columns[0]?.align ?? ''}">${textOf(first).trim().replaceAll(/ {2,}/g, ' · ')}</th>${cells.map((cell, index) => cellHtml(cell, columns[index + 1]?.align ?? 'left'))}</tr>\n`,
  );
  return html`<div class="scroll" role="region" aria-label="${name}" tabindex="0"><table class="${wraps ? 'wraps' : 'lines'}${sorts ? ' sorts' : ''}">
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

/** Required by the licence of the bundled library. */
const notice =
  '/* Observable Plot, Copyright 2020-2025 Observable, Inc.; D3, Copyright 2010-2023 Mike Bostock; both under the ISC License. */\n';

/** The script that draws the plots. */
let bundled: Promise<string> | undefined;

async function bundle(): Promise<string> {
  const {
    outputFiles: [script],
  } = await build({
    entryPoints: [fileURLToPath(new URL('plots/main.ts', import.meta.url))],
    write: false,
    bundle: true,
    minify: true,
    platform: 'browser',
    format: 'iife',
    target: 'es2022',
    // Ignores a tsconfig.json of the folder in which the package is.
    tsconfigRaw: {},
    charset: 'utf8',
    legalComments: 'none',
    logLevel: 'silent',
  });
  // esbuild escapes "</script" but not the start of a comment.
  return notice + (script?.text ?? '').replaceAll('<!--', '\\x3C!--');
}

/** The place of a plot, its words, and its figures in tables. `index` is its place in page()'s `figures`. */
export function figureHtml({ title, text, tables }: Figure, index: number): Html {
  const words = unbroken(text);
  return html`<figure><figcaption><h3>${title}</h3><p>${words}</p></figcaption>
<div class="plot" id="plot-${index}" role="img" aria-label="${title}. ${words} The same figures are in the table below."></div>
<details class="figures"><summary>The same in figures</summary>${tables.map((table) => tableHtml(table, `${title}, in figures`))}</details></figure>
`;
}

export async function page(title: string, body: Html, figures: readonly Figure[]): Promise<string> {
  const [script, style] = await Promise.all([
    figures.length === 0 ? '' : (bundled ??= bundle()),
    readFile(new URL('style.css', import.meta.url), 'utf8'),
  ]);
  const hash = createHash('sha256').update(script).digest('base64');
  // Plot adds style elements to its drawings.
  const policy = `default-src 'none'; script-src 'sha256-${hash}'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'`;
  const drawing = html`<script type="application/json" id="figures">${scriptJson(figures.map(({ data }) => data))}</script>
<script>${new Html(script)}</script>
`;
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<link rel="icon" href="data:,">
<title>${title}</title>
<style>
${new Html(style)}</style>
</head>
<body>
<main>
${body}
</main>
${figures.length === 0 ? nothing : drawing}</body>
</html>
`.text;
}
