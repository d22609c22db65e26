// Samples what a network of the run's own counts while there is load, and says what of it was within the measured window.
import { setTimeout as delay } from 'node:timers/promises';
import type { LinkCounts, LinkReport } from '../network/link-messages.ts';
import type { Network } from '../network/network.ts';
import { machineClock } from '../machine/clock.ts';
import { byName } from '../present.ts';
import type { LinkTraffic, NetworkUse, PacketKind } from '../result/network.ts';
import { valueAt, type UsageWindow } from './server-usage.ts';

const intervalMs = 100;

export interface LinkSampler {
  /** In order of time. */
  samples: readonly LinkCounts[];
  /**
   * Asks once more, so that the last sample lies behind all load, and ends. Returns why it had ended before, if it had: then what was counted is not all.
   * Never throws; may be called twice.
   */
  stop(): Promise<Error | undefined>;
}

/**
 * Asks 10 times a second from now on, until it is told to stop or the link ends. Lateness is to be that of the measured window:
 * it begins anew when the warm-up is over, which begins with the first packet.
 */
export function sampleLink(network: Pick<Network, 'counts' | 'mark'>, warmupSeconds: number): LinkSampler {
  const samples: LinkCounts[] = [];
  const over = new AbortController();
  let firstAtMs = Infinity;
  let marked = warmupSeconds === 0;
  const ended: Promise<Error | undefined> = (async (): Promise<void> => {
    for (;;) {
      const isTime = !marked && machineClock.monotonicMs() >= firstAtMs + warmupSeconds * 1000;
      const sample = await (isTime ? network.mark() : network.counts());
      marked ||= isTime;
      if (sample.toServer.packets > 0) firstAtMs = Math.min(firstAtMs, sample.atMs);
      samples.push(sample);
      if (over.signal.aborted) return;
      await delay(intervalMs, undefined, { signal: over.signal }).catch(() => undefined);
    }
  })().then(() => undefined, (error: Error) => error);
  return {
    samples,
    stop() {
      over.abort();
      return ended;
    },
  };
}

/**
 * What the network did in a phase. Where no warm-up comes before the window it is all of the report, which is exact. Otherwise the
 * counts are those between the window's ends, each on a straight line between the samples around it, and lateness is that of the
 * last sample before the end: the connections that are cut off there leave all at once.
 * @param samples at least one, unless the window is idle before
 */
export function networkUseBetween(samples: readonly LinkCounts[], report: LinkReport, { fromMs, toMs, idleBefore }: UsageWindow): NetworkUse {
  const within = (of: (use: NetworkUse) => number): number => (
    idleBefore ? of(report) : valueAt(samples, toMs, of) - valueAt(samples, fromMs, of)
  );
  const counted = <N extends string>(names: readonly N[], of: (use: NetworkUse) => Record<N, number>): Record<N, number> => (
    byName(names, (name) => Math.round(within((use) => of(use)[name])))
  );
  const last = idleBefore ? report : samples.findLast(({ atMs }) => atMs <= toMs) ?? report;
  return {
    ...byName(['toServer', 'toClient'], (direction): LinkTraffic => ({
      ...counted(['packets', 'bytes', 'delivered', 'dropped', 'lost'], (use) => use[direction]),
      kinds: counted(Object.keys(report[direction].kinds) as PacketKind[], (use) => use[direction].kinds),
      latenessMs: last[direction].latenessMs,
    })),
    retransmits: counted(['client', 'server'], ({ retransmits }) => retransmits),
    ...counted(['listenOverflows'], (use) => use),
    linkCpuSeconds: byName(['toServer', 'toClient'], (direction) => within(({ linkCpuSeconds }) => linkCpuSeconds[direction])),
  };
}
