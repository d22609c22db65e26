// A place apart from the machine's loopback for one variant's server and load: made by a feature, or a loopback of its own (own-loopback.ts).
import type { LoadOptions } from '../k6/load-plan.ts';
import type { Cores } from '../machine/cores.ts';
import type { Before } from '../process.ts';
import type { KernelSetting, Phase } from '../result/result.ts';
import type { Load } from '../scenario/load.ts';
import type { Page } from '../scenario/model.ts';
import type { ServerSide } from '../servers/server.ts';
import type { UsageWindow } from './samples.ts';

export interface PlannedEnclosure {
  /** In messages: "networks of its own". */
  name: string;
  /** @param k6 path of the binary @throws UserError if this machine cannot make it, or the signal's reason */
  requirePossible(k6: string, scenario: string, signal: AbortSignal): Promise<void>;
  /** That its begin and end take in a round. */
  seconds: number;
  /** The least time per request: half of a request's own if two are under way at once. */
  secondsPerRequest(load: Load, page: Pick<Page, 'bodyBytes'>): number;
  /** @throws UserError, or the signal's reason */
  open(where: { k6: string; round: number; cores: Cores; signal: AbortSignal }): Promise<Enclosure>;
}

export interface Enclosure {
  server: ServerSide;
  /** `enter` goes before the generator's command, `options` into its load. */
  client: { enter: readonly Before[]; options: LoadOptions };
  settings: Omit<KernelSetting, 'variants'>[];
  /** Reads the CPU seconds of its own programs so far, by the side whose cores they use. */
  watchCpu(): () => { server: number; generator: number };
  /** A line, if it ends before stop(). */
  died: Promise<string>;
  /** Never throws; may be called twice. */
  stop(): Promise<void>;
}

export interface EnclosedLoad {
  /** In order of time; absent if a window's figures need none. */
  samples?: readonly { atMs: number }[];
  within(window: UsageWindow): Phase['network'];
  /** Warnings about the round. */
  notes: readonly string[];
}
