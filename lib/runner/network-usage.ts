// Samples what a network of the run's own counts while there is load, and says what of it was within the measured window.
import { setTimeout as delay } from 'node:timers/promises';
import type { LinkCounts, LinkReport } from '../network/link-messages.ts';
import type { Network } from '../network/network.ts';
import { machineClock } from '../machine/clock.ts';
import type { LinkTraffic, NetworkUse } from '../result/network.ts';
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
  const count = (of: (use: NetworkUse) => number): number => Math.round(within(of));
  const last = idleBefore ? report : samples.findLast(({ atMs }) => atMs <= toMs) ?? report;
  const traffic = (direction: 'toServer' | 'toClient'): LinkTraffic => {
    const counted = (of: (traffic: LinkTraffic) => number): number => count((counts) => of(counts[direction]));
    const { kinds } = report[direction];
    const names = Object.keys(kinds) as (keyof typeof kinds)[];
    return {
      packets: counted(({ packets }) => packets),
      kinds: Object.fromEntries(names.map((name) => [name, counted((counts) => counts.kinds[name])])) as typeof kinds,
      bytes: counted(({ bytes }) => bytes),
      delivered: counted(({ delivered }) => delivered),
      dropped: counted(({ dropped }) => dropped),
      lost: counted(({ lost }) => lost),
      latenessMs: last[direction].latenessMs,
    };
  };
  return {
    toServer: traffic('toServer'),
    toClient: traffic('toClient'),
    retransmits: { client: count(({ retransmits }) => retransmits.client), server: count(({ retransmits }) => retransmits.server) },
    listenOverflows: count(({ listenOverflows }) => listenOverflows),
    linkCpuSeconds: { toServer: within(({ linkCpuSeconds }) => linkCpuSeconds.toServer), toClient: within(({ linkCpuSeconds }) => linkCpuSeconds.toClient) },
  };
}
