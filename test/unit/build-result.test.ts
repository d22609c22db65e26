import { expect, test } from 'vitest';
import type { Result } from '../../lib/result/result.ts';
import { buildResult } from '../../lib/runner/build-result.ts';
import type { KeptRound } from '../../lib/runner/plan.ts';
import { nginx } from '../../lib/scenario/index.ts';
import type { Scenario, ServerSpec, Variant } from '../../lib/scenario/model.ts';
import { workersFor } from '../../lib/servers/index.ts';
import { phase } from '../fixtures/phase.ts';
import { outcomeOf, planOf, scenarioOf } from '../fixtures/plan.ts';
import { openFileCache, result, workers } from '../fixtures/result.ts';

function resultOf(
  scenario: Scenario,
  variants: readonly Variant[],
  serverCores: number,
  kept: readonly KeptRound[],
): Result {
  const serverCpus = Array.from({ length: serverCores }, (_, cpu) => cpu + 1);
  const cores = { serverCpus, generatorCpus: [0] };
  return buildResult(
    { plan: planOf(scenario, {}, { variants, cores }), templates: {} },
    result([workers, openFileCache]).environment,
    { kept, findings: [], unfinished: [], lines: [], answers: new Map() },
    new Date(0),
    'complete',
  );
}

function verdictReason(serverCores: number, first: ServerSpec, second: ServerSpec) {
  const variants = [
    { name: 'a', server: first },
    { name: 'b', server: second },
  ];
  const scenario = scenarioOf(variants, { page: { docroot: 'nginx', path: '/', bodyBytes: 612 } });
  const outcomes = new Map(
    variants.map(({ name, server }) => {
      const outcome = outcomeOf(server, phase({ requests: 1000 }));
      const workers = workersFor(server, serverCores, false);
      return [name, { ...outcome, server: { ...outcome.server, workers } }] as const;
    }),
  );
  const kept = [1, 2, 3, 4].map((round) => ({ round, outcomes }));
  return resultOf(scenario, scenario.variants, serverCores, kept).comparisons[0]?.why;
}

const [oneWorker, twoWorkers, fourWorkers] = [1, 2, 4].map((workers) =>
  nginx(['base'], { workers }),
) as [ServerSpec, ServerSpec, ServerSpec];
const asManyAsCores = nginx(['base'], { workers: 'server-cores' });

test.each([
  [1, asManyAsCores, asManyAsCores, /^the same config and load here$/],
  [1, twoWorkers, twoWorkers, /^the same config and load here$/],
  [4, fourWorkers, asManyAsCores, /^needs 5 server cores$/],
  [2, oneWorker, asManyAsCores, /^the 90 % interval/],
])('on %i cores %j and %j', (cores, a, b, why) => {
  expect(verdictReason(cores, a, b)).toMatch(why);
});

test('before the first round the version of a server is that of its program', () => {
  const variants: Variant[] = [
    { name: 'a', server: asManyAsCores },
    { name: 'b', server: { name: 'command', command: 'node b.js' }, page: { path: '/' } },
  ];
  const scenario = scenarioOf(variants, { page: { docroot: 'nginx', path: '/', bodyBytes: 612 } });
  const { environment } = result([workers]);
  const { variants: made } = buildResult(
    { plan: planOf(scenario, {}, { variants: scenario.variants }), templates: {} },
    { ...environment, versions: { nginx: '1.22.1', node: '20.0.0' } },
    { kept: [], findings: [], unfinished: [], lines: [], answers: new Map() },
    new Date(0),
    'partial',
  );
  expect(made.map(({ server }) => server?.version)).toEqual(['1.22.1', '']);
});
