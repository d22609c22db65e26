// A place apart from the machine's loopback for one variant's server and load: made by a feature, or a loopback of its own (own-loopback.ts).
import type { LoadOptions } from '../k6/load-plan.ts';
import type { Cores } from '../machine/cores.ts';
import type { Before } from '../process.ts';
import type { AnyFinding } from '../result/finding.ts';
import type { KernelSetting, Phase } from '../result/result.ts';
import type { Load } from '../scenario/load.ts';
import type { Page } from '../scenario/model.ts';
import type { ServerSide } from '../servers/server.ts';
import type { UsageWindow } from './samples.ts';

/** An enclosure as a feature plans it, to be opened in each round. */
export interface PlannedEnclosure {
  /** Its name in messages: "networks of its own". */
  name: string;
  /**
   * @param k6 path of the binary
   * @param scenario its name
   * @throws UserError if it cannot be made on this machine, or the signal's reason
   */
  requirePossible(k6: string, scenario: string, signal: AbortSignal): Promise<void>;
  /** The time that its begin and end take in a round. */
  seconds: number;
  /** Returns the least time per request of a load, in seconds: half of a request's own time if two are under way at once. */
  secondsPerRequest(load: Load, page: Pick<Page, 'bodyBytes'>): number;
  /** @throws UserError if it does not open, or the signal's reason */
  open(where: { k6: string; round: number; cores: Cores; signal: AbortSignal }): Promise<Enclosure>;
}

export interface Enclosure {
  server: ServerSide;
  /** `enter` goes before the generator's command, `options` into its load. */
  client: { enter: readonly Before[]; options: LoadOptions };
  settings: Omit<KernelSetting, 'variants'>[];
  /** Returns a function that reads the CPU seconds of the enclosure's own programs so far, by the side whose cores they use. */
  watchCpu(): () => { server: number; generator: number };
  /** Settles if it ends before stop() is called, with a line that says how. */
  died: Promise<string>;
  /** Never throws; may be called twice. */
  stop(): Promise<void>;
}

/** A load as its enclosure saw it. */
export interface EnclosedLoad {
  /** In order of time; absent if a window's figures need none. */
  samples?: readonly { atMs: number }[];
  /** Returns the figures of a phase. */
  within(window: UsageWindow): Phase['network'];
  /** The findings on the round. */
  findings: readonly AnyFinding[];
}
