// A whole page in one file, which loads nothing.
import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import type { Figure } from '../charts.ts';
import { Html, html, nothing, scriptJson, tableHtml, unbroken } from './markup.ts';

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
  const drawing = html`<svg class="patterns" width="0" height="0" aria-hidden="true"><defs><pattern id="published" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><rect width="6" height="6" class="published-ground"/><rect width="2.5" height="6" class="published-line"/></pattern></defs></svg>
<script type="application/json" id="figures">${scriptJson(figures.map(({ data }) => data))}</script>
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
