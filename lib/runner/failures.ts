// Why a round is dropped.
import { UserError } from '../errors.ts';
import type { Stage } from './plan.ts';

/** The message says why in a line. */
export class RoundFailure extends Error {
  /** By variant; loads that came to an end. */
  rps: Readonly<Record<string, number>> = {};
}

/** The cause is outside of the server: a later try may succeed. */
export class Disturbance extends RoundFailure {}

/** A server still got faster: the round is repeated with longer warm-ups. */
export class StillCold extends RoundFailure {
  /** Cold variants warm up so long in later rounds. */
  readonly warmupSeconds: ReadonlyMap<string, number>;
  /** Still running: whoever catches this loads or ends them. */
  readonly open: readonly Stage[];

  constructor(
    message: string,
    warmupSeconds: ReadonlyMap<string, number>,
    open: readonly Stage[] = [],
  ) {
    super(message);
    this.warmupSeconds = warmupSeconds;
    this.open = open;
  }
}

/** One side's turns change another's figures: its group leaves turns, so that one server is alive at a time. */
export class TurnsMeet extends RoundFailure {
  readonly variants: ReadonlySet<string>;
  /** No figures are lost. */
  readonly isBeforeLoad: boolean;

  constructor(message: string, variants: ReadonlySet<string>, isBeforeLoad = false) {
    super(message);
    this.variants = variants;
    this.isBeforeLoad = isBeforeLoad;
  }
}

/** A failed check gets the load's requests/s. */
export function withRps<T>(rps: RoundFailure['rps'], check: () => T): T {
  try {
    return check();
  } catch (error) {
    if (error instanceof RoundFailure) error.rps = rps;
    throw error;
  }
}

/** A UserError at a later start is a failure of the round. */
export function asRoundFailure(error: unknown): never {
  throw error instanceof UserError ? new RoundFailure(error.message.replaceAll('\n', ' ')) : error;
}
