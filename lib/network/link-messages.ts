// What delaylink (xk6-loadgen/cmd/delaylink) is told and answers, as one JSON document per line: the first line of its input is
// LinkOrder, and is answered by LinkReady; each further line by what is asked for: "counts" by LinkCounts, "mark" by
// the same, after which lateness begins anew, and "report" by a LinkReport. It ends with its input.
import type { KernelSetting, NetworkUse } from '../result/network.ts';
import type { LinkDirection } from '../scenario/model.ts';

export interface LinkOrder {
  toServer: LinkDirection;
  toClient: LinkDirection;
  /** The cores that each direction's packets are carried on; absent: all that the process may use. */
  cpus?: { toServer: readonly number[]; toClient: readonly number[] };
  settings: SettingOrder[];
}

/** A kernel setting of one side's namespace, in sysctl's notation. They are written in order, before anything else runs there. */
export type SettingOrder = Pick<KernelSetting, 'side' | 'name' | 'value'>;

export interface LinkReady {
  server: SideReady;
  client: SideReady;
  /** One per order, in order. */
  settings: Omit<KernelSetting, 'variants'>[];
  /** Of delaylink's threads the one that carries the packets to the server. */
  toServerThread: number;
}

export interface SideReady {
  /** The path of its network namespace, for setns and nsenter; it is there as long as delaylink runs. */
  netns: string;
  /** IPv4. */
  address: string;
}

/** What has happened since the last report, or the start, now: packets may be on their way. */
export interface LinkCounts extends NetworkUse {
  /** Milliseconds of CLOCK_MONOTONIC, as the engine's `monotonicMs`. */
  atMs: number;
}

/**
 * What happened since the last report, or the start; it is given once the link is empty and nothing has come for as long as a
 * packet needs there and back, or after 10 s of waiting for that (then `quiet` is false).
 */
export interface LinkReport extends NetworkUse {
  quiet: boolean;
  /** Packets that the devices themselves dropped, on both sides: 0 unless something is wrong here. */
  deviceDrops: number;
}
