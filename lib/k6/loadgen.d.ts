// The k6 module of xk6-loadgen as a script sees it.
declare module 'k6/x/loadgen' {
  import type { LoadOptions } from './load-plan.ts';
  import type { LoadResult } from '../runner/result.ts';

  const loadgen: {
    /**
     * Runs one load phase and returns when it is over. Samples of the loadgen_* metrics go out each second meanwhile.
     * @throws Error on options that are unknown, out of range or do not go together
     */
    run(options: LoadOptions): LoadResult;
  };
  export default loadgen;
}
