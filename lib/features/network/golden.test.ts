import { test } from 'vitest';
import { expectGolden } from '../../../test/fixtures/golden.ts';
import { h2Result } from '../../../test/fixtures/h2-result.ts';
import { networkUse } from '../../../test/fixtures/link.ts';

const overLink = (rps: number) => ({
  rps: [0.996, 1.003, 0.999, 1.002].map((part) => rps * part),
  phases: [{ network: networkUse(10_000) }],
});

test('reports: delayed network', async () => {
  const figures = { untuned: overLink(900), 'tcp-nopush': overLink(990) };
  await expectGolden('delayed network', await h2Result('nginx-tuning-under-delay', figures));
});
