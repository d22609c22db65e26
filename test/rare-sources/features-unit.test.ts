// The core's unit tests pass without features.
import { expect, test } from 'vitest';
import { featureNames, node, without } from '../fixtures/without-feature.ts';

/** Tests of the other features, and those that hold the documents and the map to the list of features. */
const leftOut = ['lib/**', 'test/unit/docs.test.ts', 'test/unit/arrows.test.ts'];

/** Runs unit tests of the core in a copy. @param which vitest's words for them. @param least so many have to pass */
async function expectPassed(copy: string, which: readonly string[], least: number): Promise<void> {
  // On a busy machine a test may time out, which says nothing on the features.
  const options = ['--run', '--project', 'unit', '--reporter=dot', '--retry=2', '--maxWorkers=2'];
  const exclude = leftOut.flatMap((files) => ['--exclude', files]);
  const vitest = ['node_modules/vitest/vitest.mjs', ...which, ...options, ...exclude];
  const { code, output } = await node(copy, vitest);
  expect(output.match(/^.*\bFAIL\b.*$/gm) ?? []).toEqual([]);
  const [, passed] = /Tests +(\d+) passed/.exec(output) ?? [];
  expect(Number(passed)).toBeGreaterThan(least);
  expect(code).toBe(0);
}

test("without any feature the core's unit tests pass", async () => {
  const { copy, gone } = without(...featureNames);
  // Benchmarks use two features. Any other test that imports one belongs in its folder.
  const goneTests = gone.filter((file) => file.startsWith('test/unit/'));
  expect(goneTests).toEqual(['test/unit/bench.test.ts']);
  await expectPassed(copy, ['run', 'test/unit'], 1500);
}, 900_000);

// With the others there, one that is missing changes only what imports the list.
test.each(featureNames)(
  "without %s those of the core's unit tests pass that import the list of features",
  async (name) => {
    const { copy } = without(name);
    await expectPassed(copy, ['related', 'lib/features.ts'], 500);
  },
  300_000,
);
