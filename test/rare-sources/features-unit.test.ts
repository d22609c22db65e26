// The core needs no feature. No feature needs another: test/unit/arrows.test.ts.
import { expect, test } from 'vitest';
import { featureNames, node, without } from '../fixtures/without-feature.ts';

/** Tests of the features, and those that hold the documents and the map to the list of features. */
const leftOut = ['lib/**', 'test/unit/docs.test.ts', 'test/unit/arrows.test.ts'];

test("without any feature the types are right, and the core's unit tests pass", async () => {
  const { copy, gone } = without(...featureNames);
  // A test that imports a feature belongs in its folder.
  expect(gone.filter((file) => file.startsWith('test/unit/'))).toEqual([]);
  const types = await node(copy, ['node_modules/typescript/bin/tsc', '--noEmit']);
  expect(types).toEqual({ code: 0, output: '' });
  // On a busy machine a test may time out, which says nothing on the features.
  const options = ['--run', '--project', 'unit', '--reporter=dot', '--maxWorkers=2'];
  const exclude = leftOut.flatMap((files) => ['--exclude', files]);
  const vitest = ['node_modules/vitest/vitest.mjs', 'run', 'test/unit', ...options, ...exclude];
  const { code, output } = await node(copy, vitest);
  expect(output.match(/^.*\bFAIL\b.*$/gm) ?? []).toEqual([]);
  const [, passed] = /Tests +(\d+) passed/.exec(output) ?? [];
  expect(Number(passed)).toBeGreaterThan(1500);
  expect(code).toBe(0);
}, 900_000);
