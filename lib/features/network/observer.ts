// The use of an emulated network in a load.
import { setTimeout as delay } from 'node:timers/promises';
import { whole } from '../../format.ts';
import { machineClock } from '../../machine/usage.ts';
import { isNetwork } from './enclosure.ts';
import type { LinkCounts, LinkReport, Network } from './network.ts';
import { byName, keysOf } from '../../present.ts';
import type { Templates } from '../../report/finding-words.ts';
import type { LinkTraffic, NetworkUse } from '../../result/network-use.ts';
import type { EnclosedLoad } from '../../runner/enclosure.ts';
import { asRoundFailure, RoundFailure } from '../../runner/failures.ts';
import { valueAt, type UsageWindow } from '../../runner/samples.ts';
import type { Observer } from '../../runner/observers/observer.ts';
import type { Load } from '../../scenario/load.ts';

export const link: Observer = {
  name: 'the use of the network',
  begin({ stages, attempt: { round } }) {
    // A variant with a network is alone in its group.
    const [stage] = stages;
    const enclosure = stage?.enclosure;
    if (stage === undefined || enclosure === undefined || !isNetwork(enclosure))
      return { end: () => [] };
    const { network } = enclosure;
    const { variant, load } = stage.planned;
    const sampler = sampleLink(network, load.warmupSeconds);
    return {
      async end(outcomes) {
        const failure = await sampler.stop();
        if (outcomes === undefined) return [];
        if (failure !== undefined) asRoundFailure(failure);
        const report = await reportOf(network);
        return [{ enclosed: seenBy(sampler.samples, report, variant.name, round, load) }];
      },
    };
  },
};

/** Packets were still on their way after a load without a warm-up. */
interface LinkFinding {
  code: 'packets-left';
  variant: string;
  round: number;
}

export const linkTemplates: Templates<LinkFinding> = {
  'packets-left': ({ variant, round }) =>
    `${variant}: packets were still on their way 10 s after the load of round ${round}, and are not counted`,
};

/**
 * After a warm-up, packets are counted between the window's ends, and later ones do not matter. Without a warm-up all packets are
 * counted, by the report alone.
 */
function seenBy(
  samples: readonly LinkCounts[],
  report: LinkReport,
  variant: string,
  round: number,
  { warmupSeconds }: Load,
): EnclosedLoad {
  const within = (window: UsageWindow) => networkUseBetween(samples, report, window);
  if (warmupSeconds > 0) return { samples, within, findings: [] };
  const onTheirWay: LinkFinding = { code: 'packets-left', variant, round };
  return { within, findings: report.quiet ? [] : [onTheirWay] };
}

/** @throws RoundFailure without a report, or if the network's own devices dropped packets */
async function reportOf(network: Network): Promise<LinkReport> {
  const report = await network.report().catch(asRoundFailure);
  if (report.deviceDrops > 0)
    throw new RoundFailure(
      `the network's own devices dropped packets (${whole(report.deviceDrops)}) that the link did not come to read: give both sides, on whose cores it runs, more of them (--server-cpus, --generator-cpus)`,
    );
  return report;
}

const linkIntervalMs = 100;

/** Samples a link until `stop`. Lateness is reset after the warm-up, which begins with the first packet. */
export function sampleLink(network: Pick<Network, 'counts' | 'mark'>, warmupSeconds: number) {
  const samples: LinkCounts[] = [];
  const over = new AbortController();
  const sample = async () => {
    let firstAtMs = Infinity;
    let marked = warmupSeconds === 0;
    for (;;) {
      const isTime = !marked && machineClock.monotonicMs() >= firstAtMs + warmupSeconds * 1000;
      const counts = await (isTime ? network.mark() : network.counts());
      marked ||= isTime;
      if (counts.toServer.packets > 0) firstAtMs = Math.min(firstAtMs, counts.atMs);
      samples.push(counts);
      if (over.signal.aborted) return;
      await delay(linkIntervalMs, undefined, { signal: over.signal }).catch(() => undefined);
    }
  };
  const ended = sample().then(
    () => undefined,
    (error: Error) => error,
  );
  return {
    /** Samples in order of time. */
    samples,
    /** Takes a last sample. Returns the error that ended the sampling before. May be called twice. */
    stop() {
      over.abort();
      return ended;
    },
  };
}

/**
 * Returns the network's use in a phase. Without a warm-up it is the whole report; else the counts are interpolated at the window's ends,
 * and the lateness is that of the last sample.
 * @param samples empty only if the window is idle before
 */
export function networkUseBetween(
  samples: readonly LinkCounts[],
  report: LinkReport,
  { fromMs, toMs, idleBefore }: UsageWindow,
): NetworkUse {
  const within = (of: (use: NetworkUse) => number) =>
    idleBefore ? of(report) : valueAt(samples, toMs, of) - valueAt(samples, fromMs, of);
  const counted = <N extends string>(
    names: readonly N[],
    of: (use: NetworkUse) => Record<N, number>,
  ) => byName(names, (name) => Math.round(within((use) => of(use)[name])));
  const last = idleBefore ? report : (samples.findLast(({ atMs }) => atMs <= toMs) ?? report);
  return {
    ...byName(['toServer', 'toClient'], (direction): LinkTraffic => ({
      ...counted(['packets', 'bytes', 'delivered', 'dropped', 'lost'], (use) => use[direction]),
      kinds: counted(keysOf(report[direction].kinds), (use) => use[direction].kinds),
      latenessMs: last[direction].latenessMs,
    })),
    retransmits: counted(['client', 'server'], ({ retransmits }) => retransmits),
    ...counted(['listenOverflows'], (use) => use),
    linkCpuSeconds: byName(['toServer', 'toClient'], (direction) =>
      within(({ linkCpuSeconds }) => linkCpuSeconds[direction]),
    ),
  };
}
