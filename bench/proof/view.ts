// What the terminal and the page show of a part of the proof.
import type { Table } from '../../lib/report/table.ts';

export interface View {
  title: string;
  /** What was done. */
  about: string;
  /** What came of it. */
  findings: string[];
  tables: Table[];
  /** `name` is that of the file, without its ending. */
  plots: { name: string; title: string; svg: string }[];
  /** All that was measured, where the tables have medians and the plots show it. */
  details: Table[];
  /** Figures that are not as they must be, a line each; absent where nothing is demanded. */
  beyond?: string[];
}
