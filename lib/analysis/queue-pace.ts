// Where the limit of a link's queue set the pace, and neither side of it.
import type { NetworkResult } from '../result/network.ts';
import type { VariantResult } from '../result/result.ts';
import { atLimit, limitOf, type Shares } from './limit.ts';
import { directions, dropsMatter, type Direction } from './network.ts';
import { responsesOf } from './phases.ts';
import { median } from './statistics.ts';

/** What a queue let through. */
export interface QueuePace {
  direction: Direction;
  queuePackets: number;
  delayMs: number;
  /** With the queue always full: each of its packets stays for the delay. */
  packetsPerSecond: number;
  /** Of that, what came through; median over the rounds. */
  usedShare: number;
  /** Packets that came through, per request that was answered; median over the rounds. */
  packetsPerRequest: number;
}

/**
 * The queue that set the pace of a variant: it dropped packets, what came through is nearly all that its limit allows, and neither
 * the server nor the generator was at its limit. Then requests/s are what it lets through divided by packets per request. null
 * where it was something else, and on loopback.
 */
export function queuePace(variant: Pick<VariantResult, 'network' | 'rounds'> & Shares): QueuePace | null {
  const { network } = variant;
  if (network === null || limitOf(variant) !== 'neither') return null;
  const [pace] = directions
    .flatMap((direction) => paceIn(direction, network, variant.rounds) ?? [])
    .toSorted((a, b) => b.usedShare - a.usedShare);
  return pace ?? null;
}

function paceIn(direction: Direction, { spec, droppedShare }: NetworkResult, rounds: VariantResult['rounds']): QueuePace | null {
  const { queuePackets, delayMs } = spec[direction];
  if (queuePackets === undefined || delayMs === 0 || droppedShare[direction] < dropsMatter) return null;
  const packetsPerSecond = queuePackets / (delayMs / 1000);
  const seen = rounds.flatMap(({ phases }) => phases.flatMap(({ network, seconds, responses }) => {
    const requests = responsesOf({ responses });
    return network === null || requests === 0 ? [] : [{ delivered: network[direction].delivered, seconds, requests }];
  }));
  if (seen.length === 0) return null;
  const usedShare = median(seen.map(({ delivered, seconds }) => delivered / seconds)) / packetsPerSecond;
  if (!atLimit(usedShare)) return null;
  return { direction, queuePackets, delayMs, packetsPerSecond, usedShare, packetsPerRequest: median(seen.map(({ delivered, requests }) => delivered / requests)) };
}
