// The plots of a page as data for its script. It has no imports, because the script is compiled for browsers alone.

/** Shares of the answers in percent, in groups. `label` is the share as text. */
export interface Bars {
  kind: 'bars';
  names: string[];
  bars: { group: string; name: string; value: number; label: string }[];
}

interface Axis {
  title: string;
  isLog?: boolean;
  /** Start of a linear vertical axis. Default: 0. */
  from?: number;
  /** Ticks of a horizontal axis. */
  ticks?: { at: number; text: string }[];
}

interface Point {
  name: string;
  x: number;
  y: number;
}

/** Marks and lines. Each of `names` has a colour; marks and lines with another name are grey. */
export interface Lines {
  kind: 'lines';
  x: Axis;
  y: Axis;
  names: string[];
  limit?: { y: number; text: string } | null;
  /** `kept`: whether the step of a search kept its limit. */
  marks: (Point & { title: string; interval?: [low: number, high: number]; kept?: boolean })[];
  /** Points of the same `line` are joined; `end` stands at its end. */
  lines: (Point & { line: string; look: 'strong' | 'thin' | 'dashed'; end?: string })[];
}

export type PlotData = Bars | Lines;
