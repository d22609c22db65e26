// A verdict that is taken back after the rounds, in a real influxd.
import { expect, it } from 'vitest';
import { noAdditions } from '../fixtures/additions.ts';
import { DatabaseSink } from '../../lib/features/influxdb/sink.ts';
import type { RunBase } from '../../lib/runner/plan.ts';
import { useLocalStore } from '../fixtures/local-store.ts';
import { newFolder } from '../fixtures/new-folder.ts';
import { hereAndThere, planOf, scenarioOf } from '../fixtures/plan.ts';
import { compared, openFileCache, result, workers } from '../fixtures/result.ts';

const local = useLocalStore();

it('the sentence on a verdict goes with the verdict', async () => {
  const store = await local.open(local.newFolder());
  const sink = new DatabaseSink(store);
  const before = result([workers, openFileCache]);
  const plan = { ...planOf(scenarioOf(hereAndThere)), run: before.run };
  const signal = new AbortController().signal;
  const run: RunBase = { plan, folder: newFolder(), sink, signal, ...noAdditions };
  const kinds = async () => {
    const query = `SELECT "text", "kind" FROM bench_sentence WHERE run = '${before.run}'`;
    const [series] = (await store.query(query)) as { values: unknown[][] }[];
    return (series?.values ?? []).map((row) => row[2]);
  };
  expect(await sink.after(run, before, [], true)).toBeNull();
  expect(await kinds()).toContain('faster');

  const after = compared(before, { verdict: 'none', why: 'each side alone gives +5 %' });
  expect(await sink.found(run, after, [])).toBeNull();
  expect(await kinds()).toContain('none');
  expect(await kinds()).not.toContain('faster');
});
