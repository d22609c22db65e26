import { describe, expect, test } from 'vitest';
import type { LinkCounts, LinkReport, TrafficCounts } from '../../lib/network/link-messages.ts';
import { networkUseBetween, sampleLink } from '../../lib/runner/network-usage.ts';

/** A tenth of the packets is dropped, the others are SYNs and ACKs alike. */
function traffic(packets: number): TrafficCounts {
  const kinds = { syn: packets / 2, synAck: 0, ack: packets / 2, data: 0, dataFin: 0, fin: 0, reset: 0, other: 0 };
  return { packets, kinds, bytes: packets * 60, delivered: packets * 0.9, dropped: packets * 0.1, lost: 0 };
}

/** From the second 10 on 1,000 packets/s to the server and 500 back, a retransmit and two overflows for each 100. */
function countsAt(atMs: number): LinkCounts {
  const packets = Math.max(0, atMs - 10_000);
  return {
    atMs, toServer: traffic(packets), toClient: traffic(packets / 2), retransmits: { client: packets / 100, server: 0 }, listenOverflows: packets / 50,
    linkCpuSeconds: packets / 10_000,
  };
}

const { atMs: _, ...all } = countsAt(30_000);
const latenessMs = { p50: 0.1, p99: 0.4, max: 3 };
const report: LinkReport = {
  ...all, quiet: true, deviceDrops: 0, toServer: { ...all.toServer, latenessMs }, toClient: { ...all.toClient, latenessMs },
};
const samples = Array.from({ length: 160 }, (_, index) => countsAt(9_900 + 100 * index));

describe('what a network did in a phase', () => {
  test('is between the window\'s ends where a warm-up comes before them', () => {
    // Both ends lie between two samples.
    const use = networkUseBetween(samples, report, { fromMs: 13_050, toMs: 18_050, idleBefore: false });
    expect(use).toEqual({
      toServer: { ...traffic(5000), latenessMs }, toClient: { ...traffic(2500), latenessMs }, retransmits: { client: 50, server: 0 }, listenOverflows: 100,
      linkCpuSeconds: expect.closeTo(0.5, 9) as number,
    });
  });

  test('is all of the report where the load is the window, until its last packet', () => {
    const { quiet: _, deviceDrops: __, ...told } = report;
    expect(networkUseBetween(samples, report, { fromMs: 10_000, toMs: 29_000, idleBefore: true })).toEqual(told);
  });
});

describe('the sampler', () => {
  test('asks again and again until it is stopped, and never two questions at a time', async () => {
    let asked = 0;
    let open = 0;
    let enough = (): void => undefined;
    const thrice = new Promise<void>((resolve) => { enough = resolve; });
    const sampler = sampleLink({
      async counts() {
        open++;
        expect(open).toBe(1);
        await new Promise(setImmediate);
        open--;
        if (++asked === 3) enough();
        return countsAt(asked);
      },
    });
    await thrice;
    await sampler.stop();
    await sampler.stop();
    const { length } = sampler.samples;
    expect(sampler.samples.map(({ atMs }) => atMs)).toEqual(Array.from({ length }, (_, index) => index + 1));
    expect([length >= 3, open]).toEqual([true, 0]);
  });

  test('ends with the link, and leaves it to others to say so', async () => {
    const sampler = sampleLink({ counts: () => Promise.reject(new Error('the link ended')) });
    await sampler.stop();
    expect(sampler.samples).toEqual([]);
  });
});
