// Samples what a network of the run's own counts while there is load, and says what of it was within the measured window.
import { setTimeout as delay } from 'node:timers/promises';
import type { LinkCounts, LinkReport, Network } from '../network/network.ts';
import { machineClock } from '../machine/clock.ts';
import { byName } from '../present.ts';
import type { LinkTraffic, NetworkUse, PacketKind } from '../result/network.ts';
import { valueAt, type UsageWindow } from './server-usage.ts';

const intervalMs = 100;

export interface LinkSampler {
  /** In order of time. */
  samples: readonly LinkCounts[];
  /** Takes a last sample and ends. Returns why it had ended before, if so: not all was counted. Never throws; may be called twice. */
  stop(): Promise<Error | undefined>;
}

/** Asks 10 times a second, until it is stopped or the link ends. Lateness begins anew after the warm-up, which the first packet begins. */
export function sampleLink(
  network: Pick<Network, 'counts' | 'mark'>,
  warmupSeconds: number,
): LinkSampler {
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
  })().then(
    () => undefined,
    (error: Error) => error,
  );
  return {
    samples,
    stop() {
      over.abort();
      return ended;
    },
  };
}

/**
 * What the network did in a phase: all of the report if the window is idle before. Otherwise counts are interpolated at the window's ends,
 * and lateness is that of the last sample in it. @param samples at least one, unless the window is idle before
 */
export function networkUseBetween(
  samples: readonly LinkCounts[],
  report: LinkReport,
  { fromMs, toMs, idleBefore }: UsageWindow,
): NetworkUse {
  const within = (of: (use: NetworkUse) => number): number =>
    idleBefore ? of(report) : valueAt(samples, toMs, of) - valueAt(samples, fromMs, of);
  const counted = <N extends string>(
    names: readonly N[],
    of: (use: NetworkUse) => Record<N, number>,
  ): Record<N, number> => byName(names, (name) => Math.round(within((use) => of(use)[name])));
  const last = idleBefore ? report : (samples.findLast(({ atMs }) => atMs <= toMs) ?? report);
  return {
    ...byName(['toServer', 'toClient'], (direction): LinkTraffic => ({
      ...counted(['packets', 'bytes', 'delivered', 'dropped', 'lost'], (use) => use[direction]),
      kinds: counted(
        Object.keys(report[direction].kinds) as PacketKind[],
        (use) => use[direction].kinds,
      ),
      latenessMs: last[direction].latenessMs,
    })),
    retransmits: counted(['client', 'server'], ({ retransmits }) => retransmits),
    ...counted(['listenOverflows'], (use) => use),
    linkCpuSeconds: byName(['toServer', 'toClient'], (direction) =>
      within(({ linkCpuSeconds }) => linkCpuSeconds[direction]),
    ),
  };
}
