// The part of the contract in result.ts that is about sides that take turns.

/** How a side of a group was loaded in its phase. */
export interface Turns {
  /** 1: the sides were loaded one after the other. */
  count: number;
  /** All that the server made in these turns: a few more than the figures have, since ramps and drains may be left out. */
  responses: number;
  /** The mean length of a turn. */
  sliceMs: number;
  /** How long after a turn's begin its window begins. */
  rampMs: number;
  /** The server waits for something, such as a backend or a timer, so that its answers take long. */
  waits: boolean;
  /** At a rate: the share of turns, 0 to 1, in which the generator stood still. Up to a quarter are left out, and made again. */
  stoodStill?: number;
}

/** What a server's processes used, read between turns. */
export interface ServerCpu {
  /** CPU seconds in the server's own turns of the window, with ramps and drains. */
  seconds: number;
  /** CPU seconds per second while others had their turns. */
  idleShare: number;
}
