// Why a round is dropped.
import { UserError } from '../errors.ts';
import { sentenceOf } from '../report/finding-words.ts';
import type { Finding } from '../result/finding.ts';
import type { Stage } from './plan.ts';

/** The round must be repeated; the message says why in a line. */
export class RoundFailure extends Error {
  /** Requests/s by variant, of loads that came to an end. */
  rps: Readonly<Record<string, number>> = {};
  /** Seen before the load, so that no figures are lost. */
  readonly isBeforeLoad: boolean = false;
  readonly #found: Finding | undefined;

  /** @param found a text of k6, a server or a cluster has no code of its own */
  constructor(found: Finding | string) {
    super(typeof found === 'string' ? found : sentenceOf(found));
    this.#found = typeof found === 'string' ? undefined : found;
  }

  get finding(): Finding {
    return this.#found ?? { code: 'round-failed', reason: this.message };
  }
}

/** Something outside of the server disturbed the round, and a later try may succeed: these are tried more often. */
export class Disturbance extends RoundFailure {}

/** A server still got faster after its warm-up. The round is repeated with longer ones. */
export class StillCold extends RoundFailure {
  /** Warm-up of cold variants in later rounds. */
  readonly warmupSeconds: ReadonlyMap<string, number>;
  /** The group's servers, which still run: whoever catches this loads or ends them. */
  readonly open: readonly Stage[];

  constructor(
    found: Finding | string,
    warmupSeconds: ReadonlyMap<string, number>,
    open: readonly Stage[] = [],
  ) {
    super(found);
    this.warmupSeconds = warmupSeconds;
    this.open = open;
  }
}

/** One side's turns change another's figures: its group leaves turns, so that one server is alive at a time. */
export class TurnsMeet extends RoundFailure {
  /** The group's variants. */
  readonly variants: ReadonlySet<string>;
  override readonly isBeforeLoad: boolean;

  constructor(found: Finding, variants: ReadonlySet<string>, isBeforeLoad = false) {
    super(found);
    this.variants = variants;
    this.isBeforeLoad = isBeforeLoad;
  }
}

/** Returns the result of the check of a load; a failed check has the load's requests/s. */
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
