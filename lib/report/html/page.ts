// HTML as values: a template escapes its pieces unless they are HTML. A page is one file that loads nothing else.
import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { build, stop } from 'esbuild';
import { withoutFound } from '../../../bin/bundle.mjs';
import { printable } from '../../errors.ts';
import type { PlotData } from './figure.ts';
import {
  headingGroups,
  cellText,
  type Cell,
  type Heading,
  type Part,
  type Table,
} from '../table.ts';

export class Html {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }
}

type Piece = Html | string | number | readonly Piece[];

/** html`<p>${text}</p>`: escapes texts and numbers, joins lists. No text has characters that control a terminal or turn its direction. */
export function html(strings: TemplateStringsArray, ...pieces: readonly Piece[]): Html {
  return new Html(strings.map((text, index) => text + textOfPiece(pieces[index] ?? '')).join(''));
}

export const nothing = new Html('');

function textOfPiece(piece: Piece): string {
  if (piece instanceof Html) return piece.text;
  if (typeof piece === 'object') return piece.map(textOfPiece).join('');
  return printable(String(piece))
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;');
}

/** A plot with its words, and the same figures in tables. */
export interface Figure {
  title: string;
  /** What the plot shows and how to read it. */
  text: string;
  data: PlotData;
  tables: readonly Table[];
}

/**
 * Returns a table; nothing without rows. `name` is for screen readers, `wraps` breaks long texts, and `sorts` sorts the rows by a click
 * on a title.
 */
export function tableHtml(
  { columns, rows }: Table,
  name = columns[0]?.title ?? '',
  { wraps = false, sorts = false } = {},
): Html {
  if (rows.length === 0) return nothing;
  const groups = columns.every(({ group }) => group === '') ? [] : headingGroups(columns);
  const names = groups.map(({ length, 0: first }) =>
    first?.group
      ? html`<th scope="colgroup" colspan="${length}" class="group">${first.group}</th>`
      : html`<td colspan="${length}"></td>`,
  );
  const lines = rows.map(
    ([first = '', ...cells]) =>
      html`<tr><th scope="row" class="${columns[0]?.align ?? ''}">${cellText(first).trim().replaceAll(/ {2,}/g, ' · ')}</th>${cells.map((cell, index) => cellHtml(cell, columns[index + 1]?.align ?? 'left'))}</tr>\n`,
  );
  return html`<div class="scroll" role="region" aria-label="${name}" tabindex="0"><table class="${wraps ? 'wraps' : 'lines'}${sorts ? ' sorts' : ''}">
${groups.map(({ length }) => html`<colgroup span="${length}"></colgroup>`)}<thead>${groups.length === 0 ? nothing : html`<tr>${names}</tr>`}<tr>${columns.map(({ title, align }) => html`<th scope="col" class="${align}">${title}</th>`)}</tr></thead>
<tbody>${lines}</tbody></table></div>
`;
}

function cellHtml(cell: Cell, align: Heading['align']): Html {
  // The plots show the bars, and only the terminal needs spaces to align the parts of a cell.
  const text = cellText(cell)
    .replace(/[█-▏]+/, '')
    .trim()
    .replaceAll(/ {2,}/g, ' ')
    // An interval stays in one line.
    .replaceAll(/\[[^\]]*\]/g, (interval) => interval.replaceAll(' ', '\u00a0'));
  if (typeof cell === 'string') return html`<td class="${align}">${text}</td>`;
  const [before = '', ...after] = text.split(cell.part);
  return html`<td class="${align}">${before}<span class="verdict ${cell.verdict}">${cell.part}</span>${after.join(cell.part)}</td>`;
}

export function paragraphs(lines: readonly string[], className = ''): Html {
  const attribute = className === '' ? nothing : html` class="${className}"`;
  return html`${lines.map((line) => html`<p${attribute}>${line}</p>\n`)}`;
}

/** A list; '' without lines. */
export function listHtml(lines: readonly string[], className: string): Html {
  if (lines.length === 0) return nothing;
  return html`<ul class="${className}">${lines.map((line) => html`<li>${line}</li>\n`)}</ul>\n`;
}

/** The tables of a part below its title; without rows they are left out. */
export function partHtml({ title, tables, below }: Part, options = {}): Html {
  const name = title.replace(/:$/, '');
  const shown = tables.map((table) => tableHtml(table, name || 'the table', options));
  return html`${name !== '' && tables.some(({ rows }) => rows.length > 0) ? html`<h3>${name}</h3>\n` : nothing}${shown}${paragraphs(below)}`;
}

// The licence of the bundled library requires it.
const notice =
  '/* Observable Plot, Copyright 2020-2025 Observable, Inc.; D3, Copyright 2010-2023 Mike Bostock; both under the ISC License. */\n';

let bundled: Promise<string> | undefined;

async function bundle(): Promise<string> {
  // Ctrl-C in a terminal ends esbuild's process too, and a build would fail. After this it starts a new one.
  await stop();
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
    ...withoutFound,
    charset: 'utf8',
    legalComments: 'none',
    logLevel: 'silent',
  });
  // esbuild escapes "</script" but not the start of a comment.
  return notice + (script?.text ?? '').replaceAll('<!--', '\\x3C!--');
}

/** Returns a plot's place with its title, text and tables. `index` is its position in page()'s `figures`. */
export function figureHtml({ title, text, tables }: Figure, index: number): Html {
  return html`<figure><figcaption><h3>${title}</h3><p>${text}</p></figcaption>
<div class="plot" id="plot-${index}" role="img" aria-label="${title}. ${text} The same figures are in the table below."></div>
<details class="figures"><summary>The same in figures</summary>${tables.map((table) => tableHtml(table, `${title}, in figures`))}</details></figure>
`;
}

export const sideBySide = (tables: Part['tables']): Html =>
  html`<div class="side-by-side">${tables.map((table) => tableHtml(table))}</div>`;

const printableTexts = (_: string, value: unknown) =>
  typeof value === 'string' ? printable(value) : value;

/** Returns whether a text begins as those of page. */
export function isPage(text: string): boolean {
  return text.startsWith(`${head}default-src 'none'; script-src 'sha256-`);
}

const head = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="`;

export async function page(title: string, body: Html, figures: readonly Figure[]): Promise<string> {
  const [script, style] = await Promise.all([
    figures.length === 0 ? '' : (bundled ??= bundle()),
    readFile(new URL('style.css', import.meta.url), 'utf8'),
  ]);
  const hash = createHash('sha256').update(script).digest('base64');
  // It cannot end the script element or begin a comment.
  const data = JSON.stringify(
    figures.map((figure) => figure.data),
    printableTexts,
  );
  const json = printable(data).replaceAll('<', '\\u003c');
  // Plot adds style elements to its drawings.
  const policy = `default-src 'none'; script-src 'sha256-${hash}'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'`;
  const drawing = html`<script type="application/json" id="figures">${new Html(json)}</script>
<script>${new Html(script)}</script>
`;
  return html`${new Html(head)}${policy}">
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
