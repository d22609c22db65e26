// The heading of a run that is over, from its result alone.
import { wholeRounds } from '../analysis/phases.ts';
import { present } from '../present.ts';
import type { Environment, Result } from '../result/result.ts';
import { networksText } from './network.ts';
import { loadText, type Heading } from './sentences.ts';

/** What stands above the table, with the rounds and the time that it came to. */
export function resultHeading(result: Result): Heading {
  const { environment, variants, startedAt, endedAt } = result;
  const run = variants.filter(({ server }) => server !== null);
  const named = (atAddress: boolean): string[] => [...new Set(run.filter(({ server }) => (server?.atAddress === true) === atAddress).map(({ server }) => `${server?.name ?? ''} ${server?.version ?? ''}`.trim()))];
  return {
    scenario: result.scenario,
    load: listed(run.map(({ load }) => loadText(load.asWritten ?? load, { command: '', ...load }))),
    bodyBytes: [...new Set(run.flatMap(({ load: { bodyBytes } }) => (typeof bodyBytes === 'number' ? [bodyBytes] : [])))],
    pages: run.map(({ load }) => load.pages ?? 1),
    protocol: listed(run.map(({ load }) => load.protocol)),
    network: networksText(run.filter(({ rounds }) => rounds.length > 0).map(({ network }) => network?.spec)),
    rounds: wholeRounds(variants),
    seconds: (Date.parse(endedAt) - Date.parse(startedAt)) / 1000,
    estimated: false,
    server: named(false).join(', '),
    addresses: named(true),
    ...whereRun(environment),
  };
}

/** What the load is made by, and where both sides are. */
export function whereRun(environment: Environment): Pick<Heading, 'k6' | 'serverCpus' | 'generatorCpus' | 'kernel' | 'cpuModel'> {
  const { versions, serverCpus, serverHost, generatorHosts, cluster, generatorCpus, kernel, cpuModel } = environment;
  return { k6: `k6 ${versions['k6'] ?? ''}`.trim(), serverCpus, generatorCpus, kernel, cpuModel, ...present({ serverHost, generatorHosts, cluster }) };
}

/** Each text once; more than two are too many for a heading. */
export function listed(texts: readonly string[]): string {
  const [first, second, ...more] = new Set(texts);
  if (second === undefined) return first ?? '';
  return more.length === 0 ? `${first} and ${second}` : `${first} and ${more.length + 1} others`;
}
