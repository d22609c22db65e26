// The plots of a page as data: what the page's script draws, and what stands beside it for those who do not see it.
import type { CurvePoint } from '../../analysis/curve.ts';
import type { Table } from '../table.ts';

/** One bar; bars of a group stand together. `label` is its figure as text. */
export interface Bar {
  group: string;
  published: boolean;
  value: number;
  label: string;
}

/** Bars from 0, published beside measured; panels share their scale. `reference` is a line across, e.g. at the ratio 1. */
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

/** Latency over percentiles; a line for each variant, and for each of its rounds. `round` null: of all of them. */
export interface Percentiles {
  kind: 'percentiles';
  names: string[];
  lines: { name: string; round: number | null; points: Percentile[] }[];
}

/** What each side came to in each round. */
export interface Rounds {
  kind: 'rounds';
  axis: string;
  names: string[];
  points: { name: string; round: number; value: number }[];
}

/** requests/s by concurrent streams per connection, as ratios to those over HTTP/1.1. */
export interface Streams {
  kind: 'streams';
  line: string;
  points: {
    streams: number;
    ratio: number;
    interval: [number, number] | null;
    published: number | null;
    label: string;
  }[];
}

/** Latency by rate: what was measured, and lines through it. `kept` of a search's steps: whether that was within the limit; `limit` null: of a sweep. */
export interface CurveData {
  kind: 'curve';
  names: string[];
  limit: { ms: number; text: string } | null;
  points: (CurvePoint & { name: string })[];
  lines: (CurvePoint & { name: string })[];
}

export type PlotData = Bars | Percentiles | Rounds | Streams | CurveData;

/** A plot with its words. */
export interface Figure {
  title: string;
  /** What is to be seen in it and how to read it, a sentence or two. */
  text: string;
  data: PlotData;
  /** The same figures. */
  tables: readonly Table[];
}
