// The core's unit tests pass without a feature.
import { expect, test } from 'vitest';
import { node, without } from '../fixtures/without-feature.ts';

test.each(['hosts', 'network', 'why', 'search', 'traffic'])(
  "without %s the core's unit tests pass",
  async (name) => {
    const { copy } = without(name);
    // These hold the documents and the map to the list of features.
    const ofList = ['docs', 'arrows'].flatMap((file) => ['--exclude', `test/unit/${file}.test.ts`]);
    const unit = [
      'node_modules/vitest/vitest.mjs',
      'run',
      '--project',
      'unit',
      'test/unit',
      ...ofList,
    ];
    // On a busy machine a test may time out, which says nothing on the feature.
    const { code, output } = await node(copy, [...unit, '--reporter=dot', '--retry=2']);
    expect(output.match(/^.*\bFAIL\b.*$/gm) ?? []).toEqual([]);
    expect(output).toMatch(/Tests +\d{4} passed/);
    expect(code).toBe(0);
  },
  900_000,
);
