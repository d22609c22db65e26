// What a run's own network comes to over its rounds, and what that means for verdicts.
import { describe, expect, test } from 'vitest';
import { delayText, networkResult, toleratedLatenessMs } from '../../lib/analysis/network.ts';
import { summarise, type Summary } from '../../lib/analysis/summarise.ts';
import type { MeasuredVariant, RunFacts } from '../../lib/analysis/verdict.ts';
import { warningText } from '../../lib/analysis/warnings.ts';
import type { NetworkUse, Phase } from '../../lib/result/result.ts';
import type { NetworkSpec } from '../../lib/scenario/model.ts';
import { roundsOf } from '../fixtures/comparison.ts';
import { delayed, overLink, phaseOverLink, traffic } from '../fixtures/link.ts';
import { noCauses, phase } from '../fixtures/phase.ts';
import { facts } from '../fixtures/result.ts';

const figures = (phases: readonly Phase[], spec: NetworkSpec = delayed) => {
  const found = networkResult(spec, roundsOf(phases), 1);
  if (found === null) throw new Error('no network');
  return found;
};
/** Both directions with that p99 of lateness. */
const late = (toServer: number, toClient = 0.3): Partial<NetworkUse> => ({
  toServer: traffic(600, 0, toServer),
  toClient: traffic(500, 0, toClient),
});

describe("a network's figures", () => {
  test('are medians over the rounds', () => {
    expect(
      figures([
        phaseOverLink(100, {
          toServer: traffic(700, 70, 0.2),
          toClient: traffic(500, 0, 1),
          retransmits: { client: 60, server: 10 },
          listenOverflows: 3,
        }),
        phaseOverLink(
          200,
          {
            toServer: traffic(1600, 480, 0.6),
            toClient: traffic(1200, 12, 0.5),
            retransmits: { client: 200, server: 60 },
            listenOverflows: 9,
          },
          { serverCpuSeconds: 4 },
        ),
        phaseOverLink(
          100,
          {
            toServer: traffic(900, 180, 0.4),
            toClient: traffic(400, 0, 0.4),
            retransmits: { client: 90, server: 0 },
            listenOverflows: 4,
          },
          { serverCpuSeconds: 2 },
        ),
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

  test('count packets by the requests of the window, as the packets are counted there', () => {
    const { packetsPerRequest, retransmitsPerRequest } = figures([
      phaseOverLink(
        100,
        {
          toServer: traffic(600, 0),
          toClient: traffic(500, 0),
          retransmits: { client: 40, server: 10 },
        },
        { warmupRequests: 60, inFlight: 40 },
      ),
    ]);
    expect([packetsPerRequest, retransmitsPerRequest]).toEqual([{ toServer: 6, toClient: 5 }, 0.5]);
  });

  test('of rounds without a request, and of a link that nothing came to, are 0 and no NaN', () => {
    const nothing = phaseOverLink(0, {
      toServer: traffic(0, 0, 0),
      toClient: traffic(0, 0, 0),
      linkCpuSeconds: { toServer: 0, toClient: 0 },
    });
    const none = figures([nothing, nothing]);
    expect(none).toMatchObject({
      packetsPerRequest: { toServer: 0, toClient: 0 },
      droppedShare: { toServer: 0, toClient: 0 },
      retransmitsPerRequest: 0,
    });
    // A round that failed as a whole does not make the others' packets fewer.
    expect(figures([nothing, phaseOverLink(100), phaseOverLink(100)]).packetsPerRequest).toEqual({
      toServer: 6,
      toClient: 5,
    });
    expect(JSON.stringify(none)).not.toContain('null');
  });

  test('are none on loopback, without a round, and of rounds that went over loopback', () => {
    expect(networkResult(undefined, roundsOf([phaseOverLink(100)]), 1)).toBeNull();
    expect(networkResult(delayed, [], 1)).toBeNull();
    expect(networkResult(delayed, roundsOf([phase({ requests: 100 })]), 1)).toBeNull();
  });

  test('say how idle the cores are that the server can use, and never less than not at all', () => {
    const idle = (serverCpuSeconds: number, cores: number): number | undefined =>
      networkResult(delayed, roundsOf([phaseOverLink(100, {}, { serverCpuSeconds })]), cores)
        ?.serverIdleShare;
    expect([idle(5, 1), idle(5, 2), idle(10.2, 1)]).toEqual([0.5, 0.75, 0]);
  });
});

describe('a delay', () => {
  const spec = (toServer: number, toClient: number): NetworkSpec => ({
    ...delayed,
    toServer: { delayMs: toServer },
    toClient: { delayMs: toClient },
  });

  test.each([
    [100, 0, 2, 2],
    [0, 50, 1, 1],
    [100, 10, 2, 0.2],
    [0, 0, Infinity, Infinity],
  ])('of %f and %f ms may be late by %f and %f ms', (there, back, toServer, toClient) => {
    expect([
      toleratedLatenessMs(spec(there, back), 'toServer'),
      toleratedLatenessMs(spec(there, back), 'toClient'),
    ]).toEqual([toServer, toClient]);
  });

  test.each([
    ['within 2 %', spec(100, 0), [late(2)], true],
    ['beyond 2 %', spec(100, 0), [late(2.01)], false],
    ['beyond it on the way back, where none was asked for', spec(100, 0), [late(0.1, 138)], false],
    [
      'within its own 2 %, beyond those of the other direction',
      spec(100, 10),
      [late(1.9, 0.19)],
      true,
    ],
    [
      'beyond its own 2 %, within those of the other direction',
      spec(100, 10),
      [late(1.9, 0.21)],
      false,
    ],
    ['beyond it in one round of three', spec(100, 0), [late(1), late(138), late(1)], true],
    ['beyond it in two rounds of three', spec(100, 0), [late(138), late(1), late(3)], false],
    ['never asked for', spec(0, 0), [late(138)], true],
  ] as const)('%s: held or not', (_, asked, uses, held) => {
    expect(
      figures(
        uses.map((use) => phaseOverLink(100, use)),
        asked,
      ).delayHeld,
    ).toBe(held);
  });

  test('is told of in words, with how late the later direction was', () => {
    expect(delayText(figures([phaseOverLink(100)]))).toBe('held');
    expect(delayText(figures([phaseOverLink(100, late(20, 138.4))]))).toBe('not held: p99 +138 ms');
    expect(delayText(figures([phaseOverLink(100, late(138))], spec(0, 0)))).toBe('');
  });
});

const offs = [0, 0.004, -0.003, 0.002];

/** Four rounds over a network. */
function variant(
  name: string,
  requests: number,
  network: Partial<NetworkUse> | undefined = {},
  changes: Partial<MeasuredVariant> & { phase?: Partial<Phase> } = {},
): MeasuredVariant {
  const { phase: phaseChanges, ...others } = changes;
  return overLink(
    name,
    offs.map((off) => phaseOverLink(Math.round(requests * (1 + off)), network, phaseChanges)),
    others,
  );
}

const summary = (variants: readonly MeasuredVariant[], run: Partial<RunFacts> = {}): Summary =>
  summarise({ ...facts, looks: [4], ...run }, variants);
const notHeld = (...variants: MeasuredVariant[]): string[][] =>
  summary(variants).comparisons.map(({ delayNotHeld }) => delayNotHeld);

describe('a comparison', () => {
  test('names those of the two whose delay did not hold, and keeps its verdict', () => {
    const {
      comparisons: [one],
    } = summary([variant('untuned', 10_000), variant('nopush', 12_000, late(138))]);
    expect(one).toMatchObject({ verdict: 'faster', delayNotHeld: ['nopush'] });
    expect(
      notHeld(
        variant('untuned', 10_000, late(138)),
        variant('nopush', 12_000),
        variant('log-off', 10_000, late(90)),
      ),
    ).toEqual([['untuned'], ['untuned', 'log-off']]);
    expect(notHeld(variant('untuned', 10_000), variant('nopush', 12_000))).toEqual([[]]);
  });

  test('names them too where it has no verdict: too few rounds, nothing answered', () => {
    const short = (one: MeasuredVariant): MeasuredVariant => ({
      ...one,
      rounds: one.rounds.slice(0, 2),
    });
    expect(
      summary([short(variant('untuned', 10_000, late(138))), short(variant('nopush', 12_000))])
        .comparisons[0],
    ).toMatchObject({ why: 'needs 4 rounds', delayNotHeld: ['untuned'] });
    expect(
      summary([variant('untuned', 10_000, late(138)), variant('nopush', 0)]).comparisons[0],
    ).toMatchObject({ ratio: 0, verdict: 'none', delayNotHeld: ['untuned'] });
  });

  test('of loopback with a network has the one that can be late; one that is published only has none', () => {
    const { network: _, ...onLoopback } = variant(
      'untuned',
      10_000,
      {},
      { rounds: roundsOf(offs.map((off) => phase({ requests: 10_000 * (1 + off) }))) },
    );
    const mixed = summary([
      onLoopback,
      variant('nopush', 12_000, late(138)),
      variant('gone', 0, {}, { server: null, publishedOnly: 'gone', rounds: [] }),
    ]);
    expect(mixed.variants.map(({ network }) => network?.delayHeld)).toEqual([
      undefined,
      false,
      undefined,
    ]);
    expect(mixed.comparisons.map(({ delayNotHeld }) => delayNotHeld)).toEqual([['nopush'], []]);
  });
});

describe("the link on the sides' cores", () => {
  const generator = { generatorCpuSeconds: 5 };

  test('is part of what the server used of its own', () => {
    const share = (toServer: number, run: Partial<RunFacts>): number | null | undefined =>
      summary(
        [
          variant(
            'untuned',
            1000,
            { linkCpuSeconds: { toServer, toClient: 0 } },
            { phase: { serverCpuSeconds: 5 } },
          ),
        ],
        run,
      ).variants[0]?.serverShare;
    expect(share(0, {})).toBe(0.5);
    expect(share(4, {})).toBe(0.9);
    // A server with one worker on two cores leaves the link one of its own.
    expect([share(4, { serverCores: 2 }), share(12, { serverCores: 2 })]).toEqual([0.5, 0.85]);
  });

  test('is part of what the generator used of its own', () => {
    const share = (
      toClient: number,
      run: Partial<RunFacts>,
      threads = 1,
    ): number | null | undefined =>
      summary(
        [
          variant(
            'untuned',
            1000,
            { linkCpuSeconds: { toServer: 0, toClient } },
            { phase: generator, load: { protocol: 'http/1.0', threads } },
          ),
        ],
        run,
      ).variants[0]?.generatorShare;
    expect(share(4, {})).toBe(0.9);
    // A generator with one thread on two cores leaves the link one of its own.
    expect(share(4, { generatorCores: 2 })).toBe(0.5);
    expect(share(12, { generatorCores: 2 })).toBe(0.85);
    expect(share(4, { generatorCores: 2 }, 2)).toBe(0.45);
  });

  test('makes it the limit, which holds a verdict back as on loopback', () => {
    const full = { linkCpuSeconds: { toServer: 0, toClient: 4.8 } };
    const {
      comparisons: [one],
      warnings,
    } = summary([
      variant('untuned', 10_000, full, { phase: generator }),
      variant('nopush', 9000, full, { phase: generator }),
    ]);
    expect(one).toMatchObject({ verdict: 'none', why: 'the generator was the limit with nopush' });
    expect(warnings.map(warningText)).toContainEqual(
      expect.stringMatching(
        /^untuned: the generator was at its limit \(98 % of its available CPU\), so the server may be able to do more: /,
      ),
    );
  });
});

describe('warnings', () => {
  const texts = (...variants: MeasuredVariant[]): string[] =>
    summary(variants).warnings.map(warningText);

  test('say once what to do where the link was late', () => {
    expect(
      texts(
        variant('untuned', 10_000, late(138)),
        variant('nopush', 12_000),
        variant('log-off', 10_000, late(90)),
      ),
    ).toEqual([
      'untuned and log-off: the link was later than the delay that was asked for, so it may be what is compared: give both sides, on whose cores it runs, more of them (--server-cpus, --generator-cpus), or take fewer connections',
    ]);
    expect(texts(variant('untuned', 10_000), variant('nopush', 12_000))).toEqual([]);
  });

  const failing = (causes: Partial<typeof noCauses>, errorExample?: string): MeasuredVariant => {
    const errorCauses = { ...noCauses, ...causes };
    const total = Object.values(errorCauses).reduce((sum, count) => sum + count, 0);
    const errors = { connect: 0, tls: 0, read: total, write: 0, timeout: 0, protocol: 0, total };
    return variant(
      'untuned',
      1_000_000,
      {},
      { phase: { errors, errorCauses, ...(errorExample === undefined ? {} : { errorExample }) } },
    );
  };

  test.each([
    [
      { reset: 5, timedOut: 25, addressNotAvailable: 1 },
      undefined,
      '124 errors (100 timed out, 20 reset, 4 no free port) among 4,003,000 requests: requests/s alone do not compare',
    ],
    [
      { short: 1, refused: 2 },
      'read: reset',
      '12 errors (8 refused, 4 cut short) among 4,003,000 requests: requests/s alone do not compare',
    ],
    [
      { other: 1, refused: 2 },
      'tls: bad record',
      '12 errors (8 refused, 4 other, tls: bad record) among 4,003,000 requests: requests/s alone do not compare',
    ],
  ])(
    'name errors by their cause over all rounds, the most frequent first: %j',
    (causes, example, text) => {
      expect(texts(failing(causes, example))).toEqual([`untuned: ${text}`]);
    },
  );
});
