/**
 * Breaks lines that are too long at their spaces and indents what follows. A longer word (a path) stays whole.
 * @param indent of what follows, in spaces
 */
export function wrapLines(
  lines: readonly string[],
  width: number,
  indent: (line: string) => number = () => 2,
): string[] {
  return lines.flatMap((line) => {
    // A figure and its per cent sign stay together.
    let [current = '', ...words] = line.split(/ (?!%)/);
    const wrapped: string[] = [];
    for (const word of words) {
      const isFull = current.trim() !== '' && current.length + 1 + word.length > width;
      if (isFull) wrapped.push(current);
      current = `${isFull ? ' '.repeat(indent(line)) : `${current} `}${word}`;
    }
    return [...wrapped, current];
  });
}
