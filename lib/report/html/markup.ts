// HTML as values: what is put into a template is escaped unless it is HTML already.

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
