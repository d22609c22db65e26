// The two clocks of the machine.

/** In milliseconds. Tests have their own. */
export interface Clock {
  /** CLOCK_MONOTONIC, as the engine's `monotonicMs`: no step of the wall clock moves it, and it stands still while the machine is suspended. */
  monotonicMs(): number;
  /** Since 1970: what samples in the database are stamped with. */
  wallMs(): number;
}

export const machineClock: Clock = {
  monotonicMs: () => Number(process.hrtime.bigint()) / 1e6,
  wallMs: () => Date.now(),
};
