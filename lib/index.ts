// The package `server-bakeoff`: the functions that a scenario file imports, and the types of results.
export * from './scenario/index.ts';
export { fromLog } from './features/traffic/log.ts';
export type { LoadOptions } from './k6/load-plan.ts';
export type { Distribution, LatencyDistribution, LoadResult } from './result/load-result.ts';
export type { Comparison, Phase, Result, Round, VariantResult, Verdict } from './result/result.ts';
