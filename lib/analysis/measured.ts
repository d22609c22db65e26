// What figures are computed of.
import type { FoundRate, Metric, Result, VariantResult } from '../result/result.ts';
import type { NetworkSpec } from '../scenario/model.ts';

/** A variant and what was measured of it. Every variant that was run has the same rounds in the same order. */
export interface MeasuredVariant extends Pick<
  VariantResult,
  'name' | 'server' | 'publishedOnly' | 'load' | 'published' | 'note' | 'series' | 'rounds'
> {
  /** The variant that its ratio is taken against; absent for a baseline. */
  against?: string;
  needsServerCores?: number;
  /** Absent: the machine's loopback. */
  network?: NetworkSpec;
  /** What a search found in each of the rounds, as in FoundRate: with `atLeast` maybe a higher rate. Absent without one. */
  found?: readonly Pick<FoundRate, 'rate' | 'atLeast'>[];
  /** What it comes down to on this machine: the files of its config and its workers, as text. Two that are equal in it cannot differ in speed. */
  setup: string;
  /** The same with one more core for the server; absent: no other. */
  setupOnMoreCores?: string;
}

/** What the figures need to know of the run. */
export interface RunFacts extends Pick<Result, 'quick' | 'sameWithin'> {
  serverCores: number;
  generatorCores: number;
  /** They are the same ones. */
  sharedCores: boolean;
  /** Where the servers are, as the person named it; absent: on this machine. */
  serverHost?: string;
  looks: readonly number[];
  /** What was asked to be judged by; absent: requests/s, and where the load sets them p99 and p50 of the latency. */
  metric?: Metric | undefined;
}
