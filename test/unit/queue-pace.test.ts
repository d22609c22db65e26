// Whether a link's queue set the pace, and what is said of it.
import { describe, expect, test } from 'vitest';
import { queuePace } from '../../lib/analysis/queue-pace.ts';
import type { MeasuredVariant } from '../../lib/analysis/measured.ts';
import { findingLines, queuePaceLines } from '../../lib/report/sentences.ts';
import type { NetworkUse } from '../../lib/result/network.ts';
import type { Phase, Result } from '../../lib/result/result.ts';
import type { NetworkSpec } from '../../lib/scenario/model.ts';
import { delayed, overLink, phaseOverLink, traffic } from '../fixtures/link.ts';
import { result } from '../fixtures/result.ts';

/** Half a percent between the rounds, so that there is an interval. */
const offs = [1, 1.005, 0.995, 1];

/** Four rounds of 10 s, in which so many packets a second came to the queue on the way to the server and so many came through. */
function variant(name: string, requests: number, { came, through }: { came: number; through: number }, changes: Partial<MeasuredVariant> & { use?: Partial<NetworkUse>; phase?: Partial<Phase> } = {}): MeasuredVariant {
  const { use, phase, ...others } = changes;
  return overLink(name, offs.map((off) => phaseOverLink(requests * off, { toServer: traffic(10 * came * off, 10 * (came - through) * off), ...use }, phase)), others);
}

const paced = { came: 12_000, through: 9600 };
const untuned = variant('untuned', 16_000, paced);
const nopush = variant('nopush', 19_200, paced);
const without = (queuePackets: number | undefined, delayMs = 100): NetworkSpec => (
  { ...delayed, toServer: { delayMs, ...(queuePackets === undefined ? {} : { queuePackets }) } }
);
const paceOf = (one: MeasuredVariant): ReturnType<typeof queuePace> => queuePace(result([one]).variants[0] ?? expect.fail());

describe('a queue', () => {
  test('set the pace where nearly all that its limit lets through came through, and it dropped the rest', () => {
    expect(paceOf(untuned)).toEqual({
      direction: 'toServer', queuePackets: 1000, delayMs: 100, packetsPerSecond: 10_000, usedShare: expect.closeTo(0.96, 9) as number, packetsPerRequest: expect.closeTo(6, 9) as number,
    });
    const back: NetworkSpec = { ...delayed, toServer: { delayMs: 0 }, toClient: { delayMs: 50, queuePackets: 500 } };
    expect(paceOf(variant('back', 20_000, { came: 12_000, through: 12_000 }, { network: back, use: { toClient: traffic(110_000, 10_000) } }))).toMatchObject({
      direction: 'toClient', packetsPerSecond: 10_000, usedShare: 1, packetsPerRequest: 5,
    });
  });

  test('of two is the one that let more of its limit through', () => {
    const both: NetworkSpec = { ...delayed, toClient: { delayMs: 100, queuePackets: 1000 } };
    expect(paceOf(variant('both', 16_000, paced, { network: both, use: { toClient: traffic(100_000, 1000) } }))?.direction).toBe('toClient');
    expect(paceOf(variant('both', 16_000, paced, { network: both, use: { toClient: traffic(100_000, 8000) } }))?.direction).toBe('toServer');
  });

  test.each<[string, MeasuredVariant]>([
    ['it has no limit', variant('a', 16_000, paced, { network: without(undefined) })],
    ['it has no delay, so that its limit is no rate', variant('a', 16_000, paced, { network: without(1000, 0) })],
    ['it could have let more through', variant('a', 16_000, { came: 12_000, through: 8900 })],
    ['it dropped next to nothing', variant('a', 16_000, { came: 9600, through: 9550 })],
    ['the server was at its limit', variant('a', 16_000, paced, { phase: { serverCpuSeconds: 9.5 } })],
    ['the generator was at its limit', variant('a', 16_000, paced, { phase: { generatorCpuSeconds: 9.5 } })],
    ['nothing was answered', variant('a', 0, paced)],
    ['nothing was measured', variant('a', 16_000, paced, { rounds: [] })],
    ['all went over loopback', (({ network: _, ...one }) => one)(untuned)],
  ])('did not set the pace where %s', (_, one) => {
    expect(paceOf(one)).toBeNull();
    expect(queuePaceLines(result([one]))).toEqual([]);
  });
});

describe('the findings', () => {
  const both = result([untuned, nopush]);
  const free = variant('free', 40_000, { came: 24_000, through: 24_000 }, { network: without(undefined) });
  const sentenceOn = (of: Result, name: string): string | undefined => findingLines(of).find((line) => line.startsWith(`${name} is `));

  test('say by what requests/s came about, from what was asked for and what was measured', () => {
    expect(findingLines(both)).toContain(
      'The link\'s queue set the pace, and neither server nor generator: 1,000 packets in 100 ms are 10,000 packets/s to the server, of which 96 % came through. '
      + 'Divided by those that came through for each request, that is 1,600 requests/s with untuned (6.00) and 1,920 with nopush (5.00).',
    );
  });

  test('say it once for each queue, with those that it set the pace of', () => {
    const short = variant('short', 8000, { came: 6000, through: 4900 }, { network: without(500) });
    expect(queuePaceLines(result([untuned, nopush, short, free]))).toEqual([
      expect.stringMatching(/: 1,000 packets in 100 ms are 10,000 packets\/s .* with untuned \(6\.00\) and 1,920 with nopush \(5\.00\)\.$/),
      expect.stringMatching(/: 500 packets in 100 ms are 5,000 packets\/s to the server, of which 98 % came through\. .* that is 800\.00 requests\/s with short \(6\.13\)\.$/),
    ]);
  });

  test('say of a comparison whose pace it set', () => {
    expect(sentenceOn(both, 'nopush')).toMatch(/^nopush is faster than untuned here: \+20 % \(.*\); the link's queue, not the server, set the pace of both\.$/);
    expect(sentenceOn(result([untuned, variant('same', 16_000, paced)]), 'same')).toMatch(/^same is as fast as untuned here, within 1 %: .*\); the link's queue, not the server, set the pace of both\.$/);
    expect(sentenceOn(result([untuned, free]), 'free')).toMatch(/\); the link's queue, not the server, set the pace of untuned\.$/);
    const late = variant('late', 19_200, paced, { use: { toClient: traffic(80_000, 0, 138) } });
    expect(findingLines(result([untuned, late]))[0]).toMatch(/^Over a link whose delay did not hold \(p99 \+138 ms with late\), late is faster .*\); the link's queue, not the server, set the pace of both\.$/);
    const unlimited = { network: without(undefined) };
    const other = variant('untuned', 36_000, { came: 21_600, through: 21_600 }, unlimited);
    expect(sentenceOn(result([other, free]), 'free')).toMatch(/^free is faster than untuned here: \+11 % \(.*\)\.$/);
  });
});
