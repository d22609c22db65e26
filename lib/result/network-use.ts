// The use of an emulated network: in a phase, and of a variant.
import type * as v from 'valibot';
import { count, each, nonNegative, flag, open } from '../form.ts';
import { networkForm } from '../scenario/model.ts';
import { packetKinds } from '../scenario/published.ts';

/**
 * One direction: packets = delivered + dropped (by the queue's limit) + lost (by the asked share), except for those
 * under way at the window's ends. `latenessMs`: how late delivered packets left the link.
 */
const linkTraffic = open({
  ...each(['packets', 'bytes', 'delivered', 'dropped', 'lost'], count),
  kinds: open(each(packetKinds, count)),
  latenessMs: open(each(['p50', 'p99', 'max'], nonNegative)),
});
export type LinkTraffic = v.InferOutput<typeof linkTraffic>;
export type PacketKind = (typeof packetKinds)[number];

const bothWays = open(each(['toServer', 'toClient'], nonNegative));
/** In a phase's window; for a count of requests, until the last request's packets have arrived. */
export const networkUse = open({
  toServer: linkTraffic,
  toClient: linkTraffic,
  /** TCP segments sent again (RetransSegs), by side. */
  retransmits: open(each(['client', 'server'], count)),
  /** Connections that the server's full accept queue refused (ListenOverflows). */
  listenOverflows: count,
  /** CPU seconds of each direction's thread, which runs on the cores of the receiving side. */
  linkCpuSeconds: bothWays,
});
export type NetworkUse = v.InferOutput<typeof networkUse>;

/** A variant's network: medians over the rounds. */
export const networkFigures = open({
  spec: networkForm(open),
  /** Per response in the window in which packets were counted; 0 without responses. */
  packetsPerRequest: bothWays,
  /** Packets dropped by the queue's limit per packet, 0 to 1. */
  droppedShare: bothWays,
  /** Lateness of the later direction. */
  latenessMs: open(each(['p50', 'p99'], nonNegative)),
  /** `serverIdleShare`: unused part of the server's cores, 0 to 1. */
  ...each(['retransmitsPerRequest', 'listenOverflows', 'serverIdleShare'], nonNegative),
  /** Each direction's p99 of lateness is at most 2 % of its delay. */
  delayHeld: flag,
});
export type NetworkResult = v.InferOutput<typeof networkFigures>;
