import type * as v from 'valibot';
import { count, each, nonNegative, flag, open } from '../form.ts';
import { networkForm } from '../scenario/model.ts';
import { packetKinds } from '../scenario/published.ts';

/** packets = delivered + dropped (by the queue's limit) + lost (by the asked share), but for those under way at the ends. */
const linkTraffic = open({
  ...each(['packets', 'bytes', 'delivered', 'dropped', 'lost'], count),
  kinds: open(each(packetKinds, count)),
  latenessMs: open(each(['p50', 'p99', 'max'], nonNegative)),
});
export type LinkTraffic = v.InferOutput<typeof linkTraffic>;
export type PacketKind = (typeof packetKinds)[number];

const bothWays = open(each(['toServer', 'toClient'], nonNegative));
/** In a phase's window; of a count, until the last packets have arrived. */
export const networkUse = open({
  toServer: linkTraffic,
  toClient: linkTraffic,
  /** RetransSegs, by side. */
  retransmits: open(each(['client', 'server'], count)),
  /** ListenOverflows. */
  listenOverflows: count,
  /** Each direction's thread runs on the receiver's cores. */
  linkCpuSeconds: bothWays,
});
export type NetworkUse = v.InferOutput<typeof networkUse>;

/** Medians over the rounds. */
export const networkFigures = open({
  spec: networkForm(open),
  /** Per response; 0 without any. */
  packetsPerRequest: bothWays,
  /** Drops by the queue's limit per packet. */
  droppedShare: bothWays,
  /** The later direction's. */
  latenessMs: open(each(['p50', 'p99'], nonNegative)),
  ...each(['retransmitsPerRequest', 'listenOverflows', 'serverIdleShare'], nonNegative),
  /** p99 of lateness is at most 2 % of the delay, both ways. */
  delayHeld: flag,
});
export type NetworkResult = v.InferOutput<typeof networkFigures>;
