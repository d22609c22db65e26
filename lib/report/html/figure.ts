// The plots of a page as data, for its script. No imports: the script is compiled for browsers alone.

/** Shares of the answers in percent, as bars in groups, in the order of `names`. `label` is the share as text. */
export interface Bars {
  kind: 'bars';
  names: string[];
  bars: { group: string; name: string; value: number; label: string }[];
}

/** Latency over 1 / (1 − p): 2 is the median, 100 the 99th percentile. `round`: null for all rounds together. */
export interface Percentiles {
  kind: 'percentiles';
  names: string[];
  points: { name: string; round: number | null; percentile: string; at: number; ms: number }[];
}

/** Each variant in each round. */
export interface Rounds {
  kind: 'rounds';
  axis: string;
  names: string[];
  points: { name: string; round: number; value: number }[];
}

interface RatePoint {
  name: string;
  rate: number;
  p50: number;
  p99: number;
  kept?: boolean;
}

/** Latencies in ms by rate: points measured, and lines through them. `kept`: the step of a search was within the limit. */
export interface Curve {
  kind: 'curve';
  names: string[];
  limit: { ms: number; text: string } | null;
  points: RatePoint[];
  lines: RatePoint[];
}

export type PlotData = Bars | Percentiles | Rounds | Curve;
