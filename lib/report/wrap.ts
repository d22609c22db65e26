/**
 * Breaks lines that are too long at their spaces and indents what follows. A longer word (a path) stays whole.
 * @param indent of what follows, in spaces
 */
export function wrapLines(lines: readonly string[], width: number, indent: (line: string) => number = () => 2): string[] {
  return lines.flatMap((line) => {
    const wrapped: string[] = [];
    let current: string | undefined;
    // A figure and its per cent sign stay together.
    for (const word of line.split(/ (?!%)/)) {
      if (current !== undefined && current.trim() !== '' && current.length + 1 + word.length > width) {
        wrapped.push(current);
        current = ' '.repeat(indent(line)) + word;
      } else {
        current = current === undefined ? word : `${current} ${word}`;
      }
    }
    return [...wrapped, current ?? ''];
  });
}
