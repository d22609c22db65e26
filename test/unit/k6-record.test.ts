import { expect, it } from 'vitest';
import { parseGoTime } from '../../lib/runner/k6-record.ts';

it.each([
  ['2026-01-02T03:04:05.123456789Z', 1767323045123456789n],
  ['2026-01-02T03:04:05Z', 1767323045000000000n],
  ['2026-01-02T03:04:05.000000001+09:00', 1767290645000000001n],
  ['2026-01-02 03:04', null],
  ['2026-13-02T03:04:05Z', null],
])('parses %s with nanosecond precision', (text, expected) => {
  expect(parseGoTime(text)).toBe(expected);
});
