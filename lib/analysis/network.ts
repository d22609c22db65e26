// Figures of an emulated network over the rounds of a variant, and whether its delay held.
import { short } from '../format.ts';
import { byName } from '../present.ts';
import type { LinkTraffic, NetworkResult, NetworkUse, Round } from '../result/result.ts';
import type { NetworkSpec } from '../scenario/model.ts';
import { responsesOf } from './phases.ts';
import { median } from './statistics.ts';

/** A delay holds if the p99 of the packets' lateness is within this share of it. An idle link is within 0.2 %. */
const delayTolerance = 0.02;

const directions = ['toServer', 'toClient'] as const;
type Direction = (typeof directions)[number];

/** The tolerated p99 lateness of a direction, in milliseconds, by its delay or else the other direction's; Infinity without a delay. */
export function toleratedLatenessMs(spec: NetworkSpec, direction: Direction): number {
  const delayMs = spec[direction].delayMs || Math.max(spec.toServer.delayMs, spec.toClient.delayMs);
  return delayMs === 0 ? Infinity : delayTolerance * delayMs;
}

/** null on loopback, and without rounds. @param serverCores usable ones */
export function networkResult(
  spec: NetworkSpec | undefined,
  rounds: readonly Round[],
  serverCores: number,
): NetworkResult | null {
  const seen = rounds.flatMap(({ phases }) =>
    phases.flatMap((phase) => (phase.network === null ? [] : [{ phase, network: phase.network }])),
  );
  if (spec === undefined || seen.length === 0) return null;
  const answered = seen.filter(({ phase }) => responsesOf(phase) > 0);
  const perRequest = (of: (network: NetworkUse) => number): number =>
    answered.length === 0
      ? 0
      : median(answered.map(({ network, phase }) => of(network) / responsesOf(phase)));
  const typical = (direction: Direction, of: (traffic: LinkTraffic) => number): number =>
    median(seen.map(({ network }) => of(network[direction])));
  const later = (of: (traffic: LinkTraffic) => number): number =>
    Math.max(...directions.map((direction) => typical(direction, of)));
  return {
    spec,
    packetsPerRequest: byName(directions, (direction) =>
      perRequest((network) => network[direction].packets),
    ),
    droppedShare: byName(directions, (direction) => typical(direction, droppedShare)),
    latenessMs: byName(['p50', 'p99'], (name) => later(({ latenessMs }) => latenessMs[name])),
    retransmitsPerRequest: perRequest(({ retransmits }) => retransmits.client + retransmits.server),
    listenOverflows: median(seen.map(({ network }) => network.listenOverflows)),
    // CPU time is counted in ticks, so its share may exceed 1.
    serverIdleShare: Math.max(
      0,
      1 -
        median(
          seen.map(({ phase }) => (phase.serverCpuSeconds ?? 0) / (phase.seconds * serverCores)),
        ),
    ),
    delayHeld: directions.every(
      (direction) =>
        typical(direction, ({ latenessMs }) => latenessMs.p99) <=
        toleratedLatenessMs(spec, direction),
    ),
  };
}

function droppedShare({ packets, dropped }: LinkTraffic): number {
  return packets === 0 ? 0 : dropped / packets;
}

/** "held", "not held: p99 +138 ms", or '' without a delay. */
export function delayText({ spec, delayHeld, latenessMs }: NetworkResult): string {
  if (spec.toServer.delayMs === 0 && spec.toClient.delayMs === 0) return '';
  return delayHeld ? 'held' : `not held: p99 +${short(latenessMs.p99)} ms`;
}
