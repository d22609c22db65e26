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

interface CurvePoint {
  name: string;
  x: number;
  y: number;
}

/** Points measured, with an interval each or none, and lines through them. `axes`: their titles. */
export interface Curve {
  kind: 'curve';
  axes: { x: string; y: string };
  isLog: boolean;
  names: string[];
  limit: { y: number; text: string } | null;
  /** `kept`: the step of a search was within the limit. */
  points: (CurvePoint & {
    title: string;
    interval?: [low: number, high: number];
    kept?: boolean;
  })[];
  /** `end` stands at the line's end. Lines with another one than the last are dashed. */
  lines: (CurvePoint & { end: string })[];
}

export type PlotData = Bars | Percentiles | Rounds | Curve;
