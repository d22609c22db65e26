// Network figures over several rounds, and their effect on verdicts.
import { expect, test } from 'vitest';
import { onlyLook } from '../../lib/analysis/looks.ts';
import { networkResult } from '../../lib/analysis/phases.ts';
import { summarise } from '../fixtures/summary.ts';
import { delayText } from '../../lib/report/verdict-words.ts';
import type { MeasuredVariant, RunFacts } from '../../lib/analysis/verdict.ts';
import type { LinkTraffic, NetworkResult, NetworkUse } from '../../lib/result/network-use.ts';
import type { Phase } from '../../lib/result/result.ts';
import type { NetworkSpec } from '../../lib/scenario/model.ts';
import { roundsOf } from '../fixtures/comparison.ts';
import { delayed, overLink, phaseOverLink, traffic } from '../fixtures/link.ts';
import { noCauses, readErrors } from '../fixtures/phase.ts';
import { facts } from '../fixtures/result.ts';

const figures = (phases: readonly Phase[], spec: NetworkSpec = delayed, cores = 1): NetworkResult =>
  networkResult(spec, roundsOf(phases), cores) ?? expect.fail('no network');
const late = (toServer: number, toClient = 0.3): Partial<NetworkUse> => ({
  toServer: traffic(600, 0, toServer),
  toClient: traffic(500, 0, toClient),
});
const specOf = (toServer: number, toClient: number): NetworkSpec => ({
  ...delayed,
  toServer: { delayMs: toServer },
  toClient: { delayMs: toClient },
});

test('figures are medians over the rounds', () => {
  const round = (
    requests: number,
    toServer: LinkTraffic,
    toClient: LinkTraffic,
    [client, server]: [number, number],
    listenOverflows: number,
    serverCpuSeconds: number,
  ): Phase => {
    const use = { toServer, toClient, retransmits: { client, server }, listenOverflows };
    return phaseOverLink(requests, use, { serverCpuSeconds });
  };
  expect(
    figures([
      round(100, traffic(700, 70, 0.2), traffic(500, 0, 1), [60, 10], 3, 1),
      round(200, traffic(1600, 480, 0.6), traffic(1200, 12, 0.5), [200, 60], 9, 4),
      round(100, traffic(900, 180, 0.4), traffic(400, 0, 0.4), [90, 0], 4, 2),
    ]),
  ).toEqual({
    spec: delayed,
    packetsPerRequest: { toServer: 8, toClient: 5 },
    droppedShare: { toServer: 0.2, toClient: 0 },
    latenessMs: { p50: 0.125, p99: 0.5 },
    retransmitsPerRequest: 0.9,
    listenOverflows: 4,
    serverIdleShare: 0.8,
    delayHeld: true,
  });
});

test('packets are per request of the window', () => {
  const use = { retransmits: { client: 40, server: 10 } };
  expect(figures([phaseOverLink(100, use, { warmupRequests: 60, inFlight: 40 })])).toMatchObject({
    packetsPerRequest: { toServer: 6, toClient: 5 },
    retransmitsPerRequest: 0.5,
  });
});

test('figures are 0 without a request', () => {
  const nothing = phaseOverLink(0);
  const none = figures([nothing]);
  const zero = { toServer: 0, toClient: 0 };
  expect(none).toMatchObject({ packetsPerRequest: zero, droppedShare: zero });
  expect(JSON.stringify(none)).not.toContain('null');
  const { packetsPerRequest } = figures([nothing, phaseOverLink(100), phaseOverLink(100)]);
  expect(packetsPerRequest.toServer).toBe(6);
});

test("the idle share of the server's cores is a figure", () => {
  const phases = [phaseOverLink(100, {}, { serverCpuSeconds: 5 })];
  expect(figures(phases, delayed, 2).serverIdleShare).toBe(0.75);
});

test.each([
  ['within 2 % of its own direction', specOf(100, 10), [late(1.9, 0.19)], true],
  ['beyond 2 % of its own direction', specOf(100, 10), [late(1.9, 0.21)], false],
  ['within 2 % of the other direction, without its own', specOf(0, 50), [late(1)], true],
  ['beyond 2 % of the other direction, without its own', specOf(0, 50), [late(1.01)], false],
  ['beyond it in one round of three', specOf(100, 0), [late(1), late(138), late(1)], true],
  ['of 0 ms', specOf(0, 0), [late(138)], true],
] as const)('whether a delay is accurate: %s', (_, spec, uses, held) => {
  const phases = uses.map((use) => phaseOverLink(100, use));
  expect(figures(phases, spec).delayHeld).toBe(held);
});

test('a delay is shown with the larger lateness', () => {
  const text = (spec: NetworkSpec) =>
    delayText(figures([phaseOverLink(100, late(20, 138.4))], spec));
  expect([text(delayed), text(specOf(0, 0))]).toEqual(['not held: p99 +138 ms', '']);
});

const offs = [0, 0.004, -0.003, 0.002];

function variant(
  name: string,
  requests: number,
  network: Partial<NetworkUse> = {},
  changes: Partial<MeasuredVariant> & { phase?: Partial<Phase> } = {},
) {
  const { phase, ...others } = changes;
  const phases = offs.map((off) => phaseOverLink(Math.round(requests * (1 + off)), network, phase));
  return overLink(name, phases, others);
}

const summary = (variants: readonly MeasuredVariant[], run: Partial<RunFacts> = {}) =>
  summarise({ ...facts, looks: onlyLook(4), ...run }, variants);

test('comparisons and a warning name the sides with an inaccurate delay', () => {
  const { comparisons, warnings } = summary([
    variant('untuned', 10_000, late(138)),
    variant('nopush', 12_000),
    variant('log-off', 10_000, late(90)),
  ]);
  expect(comparisons).toMatchObject([
    { delayNotHeld: ['untuned'], verdict: 'faster' },
    { delayNotHeld: ['untuned', 'log-off'] },
  ]);
  expect(warnings).toEqual([
    expect.stringMatching(/^untuned and log-off: the link was later than the delay /),
  ]);
});

test('so does a comparison without a verdict', () => {
  const untuned = variant('untuned', 10_000, late(138));
  const short = (variant: MeasuredVariant) => ({ ...variant, rounds: variant.rounds.slice(0, 2) });
  const compared = (...variants: MeasuredVariant[]): unknown => summary(variants).comparisons[0];
  const delayNotHeld = ['untuned'];
  const few = compared(short(untuned), short(variant('nopush', 12_000)));
  expect(few).toMatchObject({ why: 'needs 4 rounds', delayNotHeld });
  const silent = compared(untuned, variant('nopush', 0));
  expect(silent).toMatchObject({ ratio: 0, verdict: 'none', delayNotHeld });
});

// A server with one worker, or a generator with one thread, leaves the second core to the link.
test.each([
  [4, 1, 0.9],
  [12, 2, 0.85],
])('CPU time of the link counts for the side: %d s on %i cores', (seconds, cores, share) => {
  const untuned = (toServer: number, toClient: number, changes: Parameters<typeof variant>[3]) =>
    variant('untuned', 1000, { linkCpuSeconds: { toServer, toClient } }, changes);
  const busy = untuned(seconds, 0, { phase: { serverCpuSeconds: 5 } });
  const [server] = summary([busy], { serverCores: cores }).variants;
  const of = (threads: number) =>
    untuned(0, seconds, {
      phase: { generatorCpuSeconds: 5 },
      load: { protocol: 'http/1.0', threads },
    });
  const run = { generatorCores: cores };
  expect(server?.serverShare).toBe(share);
  expect(summary([of(1)], run).variants[0]?.generatorShare).toBe(share);
  expect(summary([of(cores)], run).variants[0]?.generatorShare).toBe((5 + seconds) / 10 / cores);
});

test('a warning lists the errors of all rounds by cause', () => {
  const errorCauses = { ...noCauses, other: 2, timedOut: 25, addressNotAvailable: 1 };
  const failed = { errors: readErrors(28), errorCauses, errorExample: 'tls: bad record' };
  const { warnings } = summary([variant('untuned', 1_000_000, {}, { phase: failed })]);
  expect(warnings).toEqual([
    expect.stringContaining(
      '112 errors (100 timed out, 8 other, 4 no free port, tls: bad record) among 4,003,000 requests: ',
    ),
  ]);
});
