import { expect, it } from 'vitest';
import {
  line,
  quoteIdentifier,
  quoteString,
  toNanoseconds,
} from '../../lib/influx/line-protocol.ts';

it.each([
  [
    'sorts tags and leaves empty ones out',
    line('m', { b: '2', a: '1', c: '', d: undefined }, { v: 1.5 }, 7n),
    'm,a=1,b=2 v=1.5 7',
  ],
  [
    'escapes names and tag values',
    line('a b,c', { 'k,e=y 1': 'v a,l=u"e\\x' }, { 'f 1': 1 }, 1n),
    'a\\ b\\,c,k\\,e\\=y\\ 1=v\\ a\\,l\\=u"e\\x f\\ 1=1 1',
  ],
  [
    'keeps a tag from escaping the separator after it',
    line('m', { a: 'x\\', b: 'one\ntwo' }, { v: 1 }, 1n),
    'm,a=x,b=one\\ two v=1 1',
  ],
  [
    'quotes text',
    line('m', {}, { t: 'say "a\\b"\nand more', u: '' }, 1n),
    'm t="say \\"a\\\\b\\"\nand more",u="" 1',
  ],
  [
    'leaves out what InfluxDB cannot hold',
    line('m', {}, { a: NaN, b: Infinity, c: null, d: undefined, e: 0 }, 1n),
    'm e=0 1',
  ],
  ['is empty without fields', line('m', { a: '1' }, { a: NaN }, 1n), ''],
])('a line %s', (_what, written, expected) => {
  expect(written).toBe(expected);
});

it('turns milliseconds and ISO texts into nanoseconds', () => {
  expect(toNanoseconds('2026-01-02T03:04:05.678Z')).toBe(1767323045678000000n);
  expect(toNanoseconds(1767323045678)).toBe(1767323045678000000n);
  expect(toNanoseconds(1000.25)).toBe(1000250000n);
  expect(() => toNanoseconds('yesterday')).toThrow('not an instant: yesterday');
});

it('quotes InfluxQL', () => {
  expect(quoteString("it's a \\ test")).toBe("'it\\'s a \\\\ test'");
  expect(quoteIdentifier('a "b" \\')).toBe('"a \\"b\\" \\\\"');
});
