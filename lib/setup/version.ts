/** Compares versions by their numbers: "go1.26.8", "1.22.1" or "2.3.0-DEV" with "1.25.0". What has no number is older than all. */
export function atLeast(version: string, needed: string): boolean {
  const have = numbers(version);
  const want = numbers(needed);
  for (const [index, wanted] of want.entries()) {
    const part = have[index] ?? 0;
    if (part !== wanted) return part > wanted;
  }
  return true;
}

function numbers(version: string): number[] {
  return /\d+(\.\d+)*/.exec(version)?.[0].split('.').map(Number) ?? [];
}
