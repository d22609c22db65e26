// The messages of delaylink (xk6-loadgen/cmd/delaylink), one JSON document per line: LinkReady answers LinkOrder, LinkCounts the words
// "counts" and "mark" (after which lateness begins anew), LinkReport the word "report". It ends with its input.
import type { KernelSetting, NetworkUse } from '../result/network.ts';
import type { LinkDirection } from '../scenario/model.ts';

export interface LinkOrder {
  toServer: LinkDirection;
  toClient: LinkDirection;
  /** The cores of each direction's packets; absent: all that the process may use. */
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
  /** The thread of the packets to the server. */
  toServerThread: number;
}

export interface SideReady {
  /** The path of its network namespace, for setns and nsenter; it is there as long as delaylink runs. */
  netns: string;
  /** IPv4. */
  address: string;
}

/** The use since the last report, or the start, while packets may be on their way. */
export interface LinkCounts extends NetworkUse {
  /** Milliseconds of CLOCK_MONOTONIC, as the engine's `monotonicMs`. */
  atMs: number;
}

/**
 * The use since the last report, or the start, once the link is empty and nothing has come for a round trip, or after 10 s without that
 * (then `quiet` is false).
 */
export interface LinkReport extends NetworkUse {
  quiet: boolean;
  /** Packets that the devices themselves dropped, on both sides: 0 unless something is wrong here. */
  deviceDrops: number;
}
