// Times in k6's record of its samples.

const rfc3339 = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d)$/;

/** Exact nanoseconds since 1970 of a Go time in JSON (RFC 3339 with up to nine digits); null for other text. */
export function parseGoTime(text: string): bigint | null {
  const match = rfc3339.exec(text);
  if (match === null) return null;
  const seconds = Date.parse(`${match[1]}${match[3]}`);
  if (Number.isNaN(seconds)) return null;
  return BigInt(seconds) * 1_000_000n + BigInt((match[2] ?? '').padEnd(9, '0'));
}
