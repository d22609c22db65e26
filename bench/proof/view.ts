// The output of a part of the proof, for the terminal and the page.
import type { Table } from '../../lib/report/table.ts';

export interface View {
  title: string;
  /** Description of the measurement. */
  about: string;
  /** Results, a sentence each. */
  findings: string[];
  tables: Table[];
  /** `name` is the file name without extension. */
  plots: { name: string; title: string; svg: string }[];
  /** All measured values, if the tables have medians only. */
  details: Table[];
  /** Figures out of bounds, a line each; absent if the part has no bounds. */
  beyond?: string[];
}
