// The database as the sink of a run.
import { UserError } from '../../errors.ts';
import { quoteString } from '../../influx/line-protocol.ts';
import { withFindings } from '../../report/finding-words.ts';
import type { Result } from '../../result/result.ts';
import type { KeptRound, Plan, RunBase, ServerSamples, Sink } from '../../runner/plan.ts';
import type { StoreFinding } from './findings.ts';
import { checkRun, type StoredRound } from './integrity.ts';
import { benchRound } from './round-points.ts';
import { benchSentence } from './schema.ts';
import { foundPoints, resultPoints, samplePoints } from './run-points.ts';
import { openStore, type Store, type StoreOptions } from './store.ts';

/**
 * Opens the database of a run. If it does not start, prints that the run begins without it, or throws with `mustStart`.
 * @throws UserError, or the signal's reason
 */
export async function openSink({
  mustStart = false,
  ...options
}: StoreOptions & { mustStart?: boolean }): Promise<Sink> {
  const store = await openStore(options);
  const failure = store.failure();
  if (failure !== null && mustStart) {
    await store.close();
    throw new UserError(failure);
  }
  if (failure !== null && options.signal?.aborted !== true)
    console.error(
      `the run goes on without InfluxDB, and writes its points at the end if it starts then: ${failure}`,
    );
  return new DatabaseSink(store);
}

export class DatabaseSink implements Sink {
  readonly #store: Store;
  /** The newest lines of bakeoff's own points in a run, by identityOf. */
  readonly #written = new Map<string, string>();
  #run = '';

  constructor(store: Store) {
    this.#store = store;
  }

  get versions(): Sink['versions'] {
    const { version } = this.#store;
    // A local influxd that did not start has none.
    return version === '' ? {} : { influxdb: version };
  }

  async k6Output(): ReturnType<Sink['k6Output']> {
    // A database that hangs would stop k6.
    return (await this.#store.revive()) ? this.#store.k6Output() : null;
  }

  async afterLoad(plan: Plan, samples: ServerSamples): Promise<StoreFinding | null> {
    const points = samplePoints(plan, samples);
    return points.length === 0 ? null : this.#write(plan.run, points);
  }

  after(
    run: RunBase,
    result: Result,
    kept: readonly KeptRound[],
    ended: boolean,
  ): Promise<StoreFinding | null> {
    return this.#write(run.plan.run, resultPoints(run, result, kept, ended));
  }

  forget({ run }: Plan, round: number): Promise<StoreFinding | null> {
    return this.#delete(benchRound.measurement, run, round);
  }

  async found(
    run: RunBase,
    result: Result,
    kept: readonly KeptRound[],
  ): Promise<StoreFinding | null> {
    // A verdict that was taken back has other tags.
    const problem = await this.#delete(benchSentence.measurement, result.run);
    const found = foundPoints(result, run.contributionsTo(result));
    const points = [...resultPoints(run, result, kept, true), ...found];
    return (await this.#write(result.run, points)) ?? problem;
  }

  /** Counts the points of the run in the database, of k6's those of the kept rounds, and writes missing ones again. */
  async settle(run: RunBase, result: Result, kept: readonly KeptRound[]): Promise<Result> {
    const { run: name } = run.plan;
    const own = [...this.#written.values()];
    const { integrity, problems } = await checkRun(this.#store, name, storedRounds(kept), own);
    const isWhole = integrity.lost === 0 && integrity.points?.lost === 0;
    // What was not written at once no longer matters.
    const valid = result.findings.filter(({ code }) => !(isWhole && code === 'not-stored'));
    const findings = [...valid, ...problems];
    // The counts are in the run's own point, so its points are written again.
    const counted = withFindings({ ...result, integrity }, findings, run.templates);
    // A sentence that is void must not stay in the database.
    const problem =
      valid.length === result.findings.length
        ? await this.#write(name, resultPoints(run, counted, kept, true))
        : await this.found(run, counted, kept);
    if (problem === null) return counted;
    return withFindings(counted, [...findings, problem], run.templates);
  }

  close(): Promise<void> {
    return this.#store.close();
  }

  #delete(measurement: string, run: string, round?: number): Promise<StoreFinding | null> {
    const [tag, which] =
      round === undefined ? ['', ''] : [`,round=${round},`, ` AND "round" = '${round}'`];
    for (const [identity, point] of this.#written)
      if (point.startsWith(`${measurement},`) && point.includes(tag))
        this.#written.delete(identity);
    const where = `"run" = ${quoteString(run)}${which}`;
    const query = `DELETE FROM "${measurement}" WHERE ${where}`;
    return errorOf('not-deleted', this.#store.query(query));
  }

  async #write(run: string, points: readonly string[]): Promise<StoreFinding | null> {
    // A calibration makes many runs with one sink.
    if (this.#run !== run) this.#written.clear();
    this.#run = run;
    for (const point of points) if (point !== '') this.#written.set(identityOf(point), point);
    return errorOf('not-stored', this.#store.writeOrKeep(points));
  }
}

/** Returns a line's measurement, tags and time: the database replaces a point by a later one that has the same. */
function identityOf(point: string): string {
  const head = point.slice(0, point.search(/(?<!\\) /));
  return head + point.slice(point.lastIndexOf(' '));
}

function storedRounds(kept: readonly KeptRound[]): StoredRound[] {
  return kept.flatMap(({ round, outcomes }) =>
    [...outcomes].map(([variant, { requests, recordFile, unsent }]) => {
      return { variant, round, requests, recordFile, unsent };
    }),
  );
}

/** Returns the database's error as a finding: it must not cost the round. */
async function errorOf(
  code: 'not-stored' | 'not-deleted',
  work: Promise<unknown>,
): Promise<StoreFinding | null> {
  try {
    await work;
    return null;
  } catch (error) {
    if (error instanceof UserError) return { code, reason: error.message };
    throw error;
  }
}
