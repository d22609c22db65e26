import { describe, expect, test } from 'vitest';
import type { LinkCounts, LinkReport } from '../../lib/network/network.ts';
import { machineClock } from '../../lib/machine/clock.ts';
import { networkUseBetween, sampleLink } from '../../lib/runner/samples.ts';
import type { LinkTraffic } from '../../lib/result/result.ts';

const latenessMs = { p50: 0.1, p99: 0.4, max: 3 };

/** A tenth of the packets is dropped, the others are SYNs and ACKs alike. */
function traffic(packets: number, late = latenessMs): LinkTraffic {
  const kinds = {
    syn: packets / 2,
    synAck: 0,
    ack: packets / 2,
    data: 0,
    dataFin: 0,
    fin: 0,
    reset: 0,
    other: 0,
  };
  return {
    packets,
    kinds,
    bytes: packets * 60,
    delivered: packets * 0.9,
    dropped: packets * 0.1,
    lost: 0,
    latenessMs: late,
  };
}

/** From the second 10 on 1,000 packets/s to the server and 500 back, a retransmit and two overflows for each 100. */
function countsAt(atMs: number): LinkCounts {
  const packets = Math.max(0, atMs - 10_000);
  return {
    atMs,
    toServer: traffic(packets),
    toClient: traffic(packets / 2),
    retransmits: { client: packets / 100, server: 0 },
    listenOverflows: packets / 50,
    linkCpuSeconds: { toServer: packets / 10_000, toClient: packets / 20_000 },
  };
}

const { atMs: _, ...all } = countsAt(30_000);
/** When the connections are cut off. */
const atEnd = { p50: 0.1, p99: 8, max: 20 };
const report: LinkReport = {
  ...all,
  quiet: true,
  deviceDrops: 0,
  toServer: { ...all.toServer, latenessMs: atEnd },
  toClient: { ...all.toClient, latenessMs: atEnd },
};
const samples = Array.from({ length: 160 }, (_, index) => countsAt(9_900 + 100 * index));

describe('what a network did in a phase', () => {
  test("is between the window's ends where a warm-up comes before them", () => {
    // Both ends lie between two samples.
    const use = networkUseBetween(samples, report, {
      fromMs: 13_050,
      toMs: 18_050,
      idleBefore: false,
    });
    expect(use).toEqual({
      toServer: traffic(5000),
      toClient: traffic(2500),
      retransmits: { client: 50, server: 0 },
      listenOverflows: 100,
      linkCpuSeconds: {
        toServer: expect.closeTo(0.5, 9) as number,
        toClient: expect.closeTo(0.25, 9) as number,
      },
    });
  });

  test('is all of the report where the load is the window, until its last packet', () => {
    const { quiet: _, deviceDrops: __, ...told } = report;
    expect(
      networkUseBetween(samples, report, { fromMs: 10_000, toMs: 29_000, idleBefore: true }),
    ).toEqual(told);
  });
});

describe('the sampler', () => {
  /** A link whose first packet comes at the third question; it says how each one was asked. */
  function link(): {
    asked: string[];
    answered(count: number): Promise<void>;
    counts(): Promise<LinkCounts>;
    mark(): Promise<LinkCounts>;
  } {
    const asked: string[] = [];
    const waiting: { count: number; resolve: () => void }[] = [];
    let open = 0;
    const answer = async (word: string): Promise<LinkCounts> => {
      expect(++open).toBe(1);
      await new Promise(setImmediate);
      open--;
      asked.push(word);
      for (const { count, resolve } of waiting) if (asked.length >= count) resolve();
      return { ...countsAt(asked.length < 3 ? 10_000 : 10_001), atMs: machineClock.monotonicMs() };
    };
    return {
      asked,
      answered: (count) =>
        new Promise((resolve) => {
          waiting.push({ count, resolve });
        }),
      counts: () => answer('counts'),
      mark: () => answer('mark'),
    };
  }

  test('asks again and again until it is stopped, and never two questions at a time', async () => {
    const network = link();
    const sampler = sampleLink(network, 0);
    await network.answered(4);
    expect([await sampler.stop(), await sampler.stop()]).toEqual([undefined, undefined]);
    const { length } = sampler.samples;
    expect([length >= 4, network.asked]).toEqual([true, Array(length).fill('counts')]);
  });

  test('asks once more when it is stopped, so that the last sample lies behind the load', async () => {
    const network = link();
    const sampler = sampleLink(network, 0);
    await network.answered(2);
    await new Promise(setImmediate);
    const before = sampler.samples.length;
    await sampler.stop();
    expect(sampler.samples.length).toBe(before + 1);
  });

  test('has lateness begin anew once, when the warm-up that the first packet began is over', async () => {
    const network = link();
    const sampler = sampleLink(network, 0.25);
    await network.answered(8);
    await sampler.stop();
    const marked = network.asked.indexOf('mark');
    const [first, mark] = [sampler.samples[2]?.atMs ?? NaN, sampler.samples[marked]?.atMs ?? NaN];
    expect(network.asked.lastIndexOf('mark')).toBe(marked);
    expect(marked).toBeGreaterThan(2);
    expect(mark - first).toBeGreaterThanOrEqual(250);
  });

  test('ends with the link, and says so when it is stopped, however often', async () => {
    const ended = (): Promise<never> => Promise.reject(new Error('the link ended'));
    const sampler = sampleLink({ counts: ended, mark: ended }, 0);
    expect([(await sampler.stop())?.message, (await sampler.stop())?.message]).toEqual([
      'the link ended',
      'the link ended',
    ]);
    expect(sampler.samples).toEqual([]);
  });
});
