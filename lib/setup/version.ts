/** Compares versions by their numbers: "go1.26.8", "1.22.1" or "2.3.0-DEV" with "1.25.0". What has no number is older than all. */
export function atLeast(version: string, needed: string): boolean {
  const have = numbers(version);
  const firstDifference =
    numbers(needed)
      .map((wanted, index) => (have[index] ?? 0) - wanted)
      .find((difference) => difference !== 0) ?? 0;
  return firstDifference >= 0;
}

function numbers(version: string): number[] {
  return /\d+(\.\d+)*/.exec(version)?.[0].split('.').map(Number) ?? [];
}
