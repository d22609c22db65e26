// The plots of a page as data, for its script. No imports: the script is compiled for browsers alone.

/** One bar; the bars of a group stand together. `label` is the figure as text. */
export interface Bar {
  group: string;
  published: boolean;
  value: number;
  label: string;
}

/** Bars from 0, published beside measured; panels share a scale. `reference` is a line across, e.g. at the ratio 1. */
export interface Bars {
  kind: 'bars';
  axis: string;
  panels: { title: string; bars: Bar[] }[];
  reference?: number;
  percent?: true;
}

/** A latency at 1 / (1 − p): 2 is the median, 100 the 99th percentile. */
export interface Percentile {
  at: number;
  name: string;
  ms: number;
}

/** Latency over percentiles; a line for each variant (`round` null), and for each of its rounds. */
export interface Percentiles {
  kind: 'percentiles';
  names: string[];
  lines: { name: string; round: number | null; points: Percentile[] }[];
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
export interface CurveData {
  kind: 'curve';
  names: string[];
  limit: { ms: number; text: string } | null;
  points: RatePoint[];
  lines: RatePoint[];
}

export type PlotData = Bars | Percentiles | Rounds | CurveData;
