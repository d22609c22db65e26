import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { ifThere, makeFolder } from '../../lib/files.ts';
import { sharedFolder } from '../fixtures/new-folder.ts';

const folder = sharedFolder();

test('makes what is missing, and takes what is there', () => {
  for (const path of [join(folder, 'a/b/c'), join(folder, 'a/b'), folder]) {
    makeFolder(path);
    expect(statSync(path).isDirectory()).toBe(true);
  }
});

test('says why not', () => {
  writeFileSync(join(folder, 'file'), '');
  expect(() => makeFolder(join(folder, 'file'))).toThrow('EEXIST');
  expect(() => makeFolder(join(folder, 'file/below'))).toThrow('ENOTDIR');
  expect(() => makeFolder('/proc/none/below')).toThrow(
    /ENOENT|no folder can be made at \/proc\/none/,
  );
});

test('what the system refuses is not there; a mistake or too many open files is not taken for that', () => {
  expect(ifThere(() => readFileSync('/proc/self/missing'))).toBe(undefined);
  expect(() =>
    ifThere(() => {
      throw Object.assign(new Error('too many open files'), { code: 'EMFILE' });
    }),
  ).toThrow('too many open files');
  expect(() => ifThere(() => JSON.parse('{') as unknown)).toThrow(SyntaxError);
});
