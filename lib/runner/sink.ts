// A run's sink, where its figures go besides its folder: a feature plans it by the flags, and opens it before the first round.
import { join } from 'node:path';
import { resultJson, type Result } from '../result/result.ts';
import type { ToolName } from '../setup/tools.ts';
import { writeWhole } from '../writing.ts';
import type { KeptRound, RunBase, Sink } from './plan.ts';

export interface PlannedSink {
  /** That this machine must have. */
  tools: readonly ToolName[];
  /** Throws UserError without space for so many bytes. */
  requireSpace(bytes: number): Promise<void>;
  /**
   * @param tools paths of its programs @param cpus cores for them
   * @param folder for data of its own, instead of all runs'; it must then start at once @throws UserError, or the signal's reason
   */
  open(asked: {
    tools: Partial<Record<ToolName, string>>;
    cpus: readonly number[];
    signal: AbortSignal;
    folder?: string;
  }): Promise<Sink>;
}

/** Lets the sink check what it holds. The result has its counts. */
export async function settleSink(
  run: RunBase,
  { result, kept }: { result: Result; kept: readonly KeptRound[] },
): Promise<Result> {
  const settled = (await run.sink?.settle(run, result, kept)) ?? result;
  if (settled !== result) await writeWhole(join(run.folder, 'result.json'), resultJson(settled));
  return settled;
}
