// What of a person's own files changes where knobs are laid over them, and the text that it comes to.

/** Of a file's text, from `begin` to `end`. Both are the same where something is put in. */
export interface Edit { file: string; line: number; begin: number; end: number; becomes: string }

/** What knobs have to know of a config. */
export interface Facts {
  /** What serves the page may pass requests on. */
  proxied: boolean;
  /** Requests are logged; `logLine`: by a line of the config's that can be told how, and not by the build's own choice. */
  logs: boolean;
  logLine: boolean;
}

/** What lines have as their origin that are in no file of the person's. */
export const laidOrigin = 'laid over it';

/** The text with the edits, which do not overlap. A line of which nothing is left goes. */
export function edited(text: string, edits: readonly Edit[]): string {
  // From the end, so that the places of the others stay; of several at one place the last one first.
  const backwards = [...edits.keys()].sort((a, b) => (edits[b] as Edit).begin - (edits[a] as Edit).begin || b - a).map((index) => edits[index] as Edit);
  return backwards.reduce((before, { begin, end, becomes }) => {
    const lineBegin = before.lastIndexOf('\n', begin - 1) + 1;
    const lineEnd = endOfLine(before, end);
    const around = before.slice(lineBegin, begin) + before.slice(end, lineEnd);
    if (becomes === '' && around.trim() === '') return before.slice(0, lineBegin) + before.slice(lineEnd + 1);
    return before.slice(0, begin) + becomes + before.slice(end);
  }, text);
}

/** What stands there now, and will: `/etc/nginx/nginx.conf:22: "sendfile on;" becomes "sendfile off;"`. `text` of the edit's file. */
export function editSentence(text: string, { file, line, begin, end, becomes }: Edit): string {
  const was = text.slice(begin, end).trim();
  if (was === '') return `${file}:${line}: put in "${becomes.trim()}"`;
  return becomes.trim() === '' ? `${file}:${line}: take out "${was}"` : `${file}:${line}: "${was}" becomes "${becomes.trim()}"`;
}

/** A line at the end of a file. */
export function atEnd(file: string, text: string, line: string): Edit {
  return { file, line: text.split('\n').length, begin: text.length, end: text.length, becomes: `${text.endsWith('\n') ? '' : '\n'}${line}\n` };
}

/** Where a line, from 1, begins and ends. */
export function spanOfLine(text: string, line: number): { begin: number; end: number } {
  let begin = 0;
  for (let number = 1; number < line; number++) begin = endOfLine(text, begin) + 1;
  return { begin, end: endOfLine(text, begin) };
}

export function endOfLine(text: string, from: number): number {
  const found = text.indexOf('\n', from);
  return found < 0 ? text.length : found;
}
