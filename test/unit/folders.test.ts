import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { ifThere } from '../../lib/files.ts';

test('what the system refuses is not there; a mistake or too many open files is not taken for that', () => {
  expect(ifThere(() => readFileSync('/proc/self/missing'))).toBe(undefined);
  expect(() =>
    ifThere(() => {
      throw Object.assign(new Error('too many open files'), { code: 'EMFILE' });
    }),
  ).toThrow('too many open files');
  expect(() => ifThere(() => JSON.parse('{') as unknown)).toThrow(SyntaxError);
});
