// The package `server-bakeoff`: the functions that a scenario file imports, and the types of results.
export * from './lib/scenario/index.ts';
export { fromLog } from './lib/features/traffic/log.ts';
export type { LoadOptions } from './lib/k6/load-plan.ts';
export type { AnyFinding, Finding } from './lib/result/finding.ts';
export type { Distribution, LatencyDistribution, LoadResult } from './lib/result/load-result.ts';
export type {
  Comparison,
  Phase,
  Result,
  Round,
  VariantResult,
  Verdict,
} from './lib/result/result.ts';
