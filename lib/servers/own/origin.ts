// A person's own config runs as one text of several files: each of its lines says where it comes from.

/** The origin of bakeoff's own lines. */
export const ours = 'this machine';

/** The comment at the end of a line. */
export function fromLine(file: string, line: number): string {
  return `from ${file}:${line}`;
}

/** FILE:LINE again. */
export function placeOf({ origin }: { origin: string }): string {
  return origin.replace(/^from /, '');
}

const pattern = /# from (\/.*:\d+)$/;

/** FILE:LINE from which this line of the text comes; for a value of several lines, from its last one. */
export function originOfLine(text: string, line: number): string | undefined {
  return text
    .split('\n')
    .slice(line - 1)
    .map((one) => pattern.exec(one)?.[1])
    .find((origin) => origin !== undefined);
}

/** FILE:LINE of the first line that has these words. */
export function originOfWords(text: string, words: string): string | undefined {
  return text
    .split('\n')
    .find((line) => line.includes(words) && pattern.test(line))
    ?.match(pattern)?.[1];
}
