// The line "requests:" of h2load and weighttp, for the 100,000 requests of each load that articles made with them.

/** @param succeeded the others failed, none by an error of its connection or in time */
export const outcomesWith = (succeeded: number) => ({
  total: 100_000,
  started: 100_000,
  done: 100_000,
  succeeded,
  failed: 100_000 - succeeded,
  errored: 0,
  timeout: 0,
});

export const allSucceeded = outcomesWith(100_000);
