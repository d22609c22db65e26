// The package `server-bakeoff`: what a scenario file imports, and the types of what comes out.
export * from './scenario/index.ts';
export type { LoadOptions } from './k6/load-plan.ts';
export type {
  Comparison,
  Distribution,
  LatencyDistribution,
  LoadResult,
  Phase,
  Result,
  Round,
  VariantResult,
  Verdict,
} from './result/result.ts';
