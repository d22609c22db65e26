// The k6 module of xk6-loadgen. Types are named by import(), because `declare module` allows no relative imports.
declare module 'k6/x/loadgen' {
  const loadgen: {
    /**
     * Runs one load phase and returns when it is over. Samples of loadgen_* and of k6's own metrics go out each second meanwhile.
     * @throws Error on options that are unknown, out of range or do not go together, and after 1.5 s in which all connections have
     * failed, if no request was answered before
     */
    run(
      options: import('./load-plan.ts').LoadOptions & import('./load-plan.ts').CallOptions,
    ): import('../result/load-result.ts').LoadResult;
    /**
     * Loads several servers in turns, and returns when all sides are through: a result for each, in their order.
     * @throws Error as `run`, with the side's place
     */
    alternate(
      options: import('./load-plan.ts').AlternateOptions,
    ): import('../result/load-result.ts').LoadResult[];
  };
  export default loadgen;
}
