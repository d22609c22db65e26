// Counts the requests in the database after each round, and writes missing ones again from k6's record.
import { createReadStream } from 'node:fs';
import { createInterface } from 'node:readline';
import { messageOf } from '../../errors.ts';
import { whole } from '../../format.ts';
import { parseGoTime } from '../../runner/k6-record.ts';
import type { RoundIntegrity } from '../../runner/plan.ts';
import { InfluxError, linesPerRequest } from '../../influx/client.ts';
import { tagsAsFields } from '../../influx/k6-output.ts';
import { line, quoteString } from '../../influx/line-protocol.ts';
import type { Store } from './store.ts';

interface RoundToCheck {
  variant: string;
  round: number;
  /** The file of k6's `--out json`; undefined if there is none to repair from. */
  recordFile: string | undefined;
  /** k6 has sent nothing itself, so that writing its record is no repair. */
  unsent?: boolean;
  requests: number;
}

/**
 * Compares the sum of loadgen_requests in the database with the engine's count. If some are missing, writes the whole
 * record again, which replaces what is there. A failing database is no error: `problems` says why requests are lost.
 * @returns the counts (backfilled: missing at first, stored now)
 */
export async function checkRound(
  store: Store,
  run: string,
  { variant, round, recordFile, unsent, requests }: RoundToCheck,
): Promise<RoundIntegrity> {
  const where = `"variant" = ${quoteString(variant)} AND "round" = '${round}'`;
  const count = async () =>
    countOf(await countsIn(store, run, requestCount, where), variant, round);
  let before: number | null = null;
  let stored = 0;
  let failure: string | null = null;
  try {
    await store.revive();
    before = stored = await count();
    if (recordFile !== undefined && stored < requests) {
      await writeAgain(store, recordFile);
      stored = await count();
    }
  } catch (error) {
    failure = messageOf(error);
  }
  const lost = Math.max(0, requests - stored);
  const lostAtFirst = Math.max(0, requests - (before ?? 0));
  const label = `${variant}, round ${round}`;
  const problems: string[] = [];
  if (before === null) problems.push(failure as string);
  else if (lost > 0)
    problems.push(
      `InfluxDB lacks ${whole(lost)} of ${whole(requests)} requests of ${label}${failure === null ? '' : `: ${failure}`}`,
    );
  else if (stored > requests)
    problems.push(
      `InfluxDB holds ${whole(stored)} requests of ${label}, more than the ${whole(requests)} that were made; the figures in result.json are right, those in InfluxDB are not`,
    );
  return {
    requests,
    stored,
    backfilled: unsent === true || before === null ? 0 : lostAtFirst - lost,
    lost,
    problems,
  };
}

/** A round as it was stored. */
interface StoredRound extends RoundToCheck {
  integrity: RoundIntegrity;
  /** The samples of its server, in line protocol. */
  serverPoints: readonly string[];
}

/**
 * Counts a run's samples in the database at its end by two queries, because the database may have lost samples or been replaced.
 * Rewrites missing samples of a round. Never throws: `problems` lists the losses with reasons.
 * @returns the rounds' new counts, for those that changed
 */
export async function checkRounds<R extends StoredRound>(
  store: Store,
  run: string,
  rounds: readonly R[],
): Promise<Map<R, RoundIntegrity>> {
  const changed = new Map<R, RoundIntegrity>();
  try {
    await store.reopen();
    const requests = await countsIn(store, run, requestCount);
    const samples = await countsIn(store, run, 'COUNT("value") FROM "server_rss"');
    for (const round of rounds) {
      const { variant, integrity, serverPoints } = round;
      const isWhole =
        countOf(requests, variant, round.round) >= integrity.requests &&
        countOf(samples, variant, round.round) >= rssPointsIn(serverPoints);
      if (isWhole && integrity.lost === 0) continue;
      changed.set(round, joined(integrity, await checkRound(store, run, round)));
      await store.write(serverPoints);
    }
  } catch (error) {
    if (!(error instanceof InfluxError)) throw error;
    for (const round of rounds) {
      const { requests } = round.integrity;
      const unknown = { requests, stored: 0, backfilled: 0, lost: requests };
      if (!changed.has(round)) changed.set(round, { ...unknown, problems: [error.message] });
    }
  }
  return changed;
}

function rssPointsIn(lines: readonly string[]): number {
  return lines.filter((point) => point.startsWith('server_rss,')).length;
}

/** Samples that were stored and are missing count as lost; samples that were lost and are stored count as rewritten. */
function joined(before: RoundIntegrity, now: RoundIntegrity): RoundIntegrity {
  return { ...now, backfilled: Math.min(now.stored, before.backfilled + now.backfilled) };
}

const requestCount = 'SUM("value") FROM "loadgen_requests"';

type RoundCounts = ReadonlyMap<string, number>;

/** What a query for one figure finds in a run, by variant and round. Throws an InfluxError. */
async function countsIn(
  store: Store,
  run: string,
  figure: string,
  where?: string,
): Promise<RoundCounts> {
  const ofRun = `"run" = ${quoteString(run)}`;
  const condition = where === undefined ? ofRun : `${ofRun} AND ${where}`;
  const series = await store.query(
    `SELECT ${figure} WHERE ${condition} GROUP BY "variant", "round"`,
  );
  return new Map(
    series.map(({ tags, values }) => [
      `${tags?.['round']} ${tags?.['variant']}`,
      Number(values[0]?.[1]) || 0,
    ]),
  );
}

const countOf = (counts: RoundCounts, variant: string, round: number): number =>
  counts.get(`${round} ${variant}`) ?? 0;

async function writeAgain(store: Store, recordFile: string): Promise<void> {
  let lines: string[] = [];
  for await (const recorded of recordedLines(recordFile)) {
    lines.push(recorded);
    if (lines.length === linesPerRequest) {
      await store.write(lines);
      lines = [];
    }
  }
  await store.write(lines);
}

/** The samples of k6's `--out json` as lines that replace k6's own points. Throws the file system's error. */
export async function* recordedLines(file: string): AsyncGenerator<string> {
  for await (const text of createInterface({ input: createReadStream(file) })) {
    const recorded = recordedLine(text);
    if (recorded !== '') yield recorded;
  }
}

/** '' for other lines: k6 describes each metric, and a killed k6 leaves half a line. */
function recordedLine(text: string): string {
  let sample: {
    type?: string;
    metric?: string;
    data?: { time?: string; value?: number; tags?: Record<string, string> | null };
  };
  try {
    sample = JSON.parse(text) as typeof sample;
  } catch {
    return '';
  }
  const { type, metric, data: { time = '', value, tags } = {} } = sample;
  const timestampNs = parseGoTime(time);
  if (type !== 'Point' || metric === undefined || value === undefined || timestampNs === null)
    return '';
  const all = Object.entries(tags ?? {});
  const those = (areFields: boolean) =>
    Object.fromEntries(
      all.filter(([tag]) => (tagsAsFields as readonly string[]).includes(tag) === areFields),
    );
  return line(metric, those(false), { ...those(true), value }, timestampNs);
}
