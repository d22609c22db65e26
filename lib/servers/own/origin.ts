// A person's own config runs as one text of several files, changed in places: each of its lines says where it comes from.

/** The origin of what is in none of them. */
export const ours = 'this machine';

/** Goes into a comment at the end of a line. */
export function fromLine(file: string, line: number): string {
  return `from ${file}:${line}`;
}

/** FILE:LINE again of what has it for its origin. */
export function placeOf({ origin }: { origin: string }): string {
  return origin.replace(/^from /, '');
}

const pattern = /# from (\/.*:\d+)$/;

/** FILE:LINE of a person's own that this line of the text comes from; of a value of several lines, the one at whose end it stands. */
export function originOfLine(text: string, line: number): string | undefined {
  return text.split('\n').slice(line - 1).map((one) => pattern.exec(one)?.[1]).find((origin) => origin !== undefined);
}

/** FILE:LINE of the first line that has these words. */
export function originOfWords(text: string, words: string): string | undefined {
  return text.split('\n').find((line) => line.includes(words) && pattern.test(line))?.match(pattern)?.[1];
}
