// Nothing is lost: after each round the database is asked whether it holds what k6 made, and what it lacks is written
// again from k6's own record.
import { messageOf } from '../errors.ts';
import { whole } from '../format.ts';
import type { Integrity } from '../result/result.ts';
import type { Store } from './influxd.ts';
import { quoteString } from './line-protocol.ts';
import { readRecord, recordedLine } from './record.ts';

/** What identifies a round's points, and what they have to add up to. */
interface RoundToCheck {
  run: string;
  variant: string;
  round: number;
  /** The file of k6's `--out json` of this round; undefined: it has none, so that what is lost stays so. */
  recordFile: string | undefined;
  /** k6 has sent nothing itself: the record's samples are to be written, and not again. */
  unsent?: boolean;
  /** What the engine counted, in its summary. */
  requests: number;
  /** Of several that made them together, what each made: samples are told apart by their `instance_id`, from 1. */
  instances?: readonly number[];
}

/** `problems`: one line each for the person; empty when all is stored. */
export interface RoundIntegrity extends Integrity { problems: string[] }

const repairsAtMost = 2;
const pointsPerWrite = 5000;

/** Count and sum of a series' values. */
interface SeriesTotal { count: number; sum: number }
type Totals = Map<string, SeriesTotal>;

/**
 * Compares, series by series, the round's loadgen_* samples in the database with k6's record, and the sum of
 * loadgen_requests with the engine's own count. When something is missing, a dead local influxd is started again, the
 * whole record is written again (which replaces what is there) and the database is asked again.
 * Never throws for a database that fails: its requests are then lost, and `problems` says why.
 * @returns requests (as given), stored (of them, by query), backfilled (missing once they had been sent, there now), lost (missing still)
 */
export async function checkRound(store: Store, round: RoundToCheck): Promise<RoundIntegrity> {
  const problems: string[] = [];
  const label = `${round.variant}, round ${round.round}`;
  const { recordFile, requests, instances = [], unsent = false } = round;
  const recorded: Totals = recordFile === undefined ? new Map() : await recordedTotals({ ...round, recordFile }, problems);
  let totals: Totals = new Map();
  let atFirst: number | null = null;
  let failure: string | null = null;
  for (let repairs = 0; ; repairs++) {
    try {
      await store.revive();
      totals = await storedTotals(store, round);
    } catch (error) {
      failure = messageOf(error);
      break;
    }
    if (!unsent || repairs > 0) atFirst ??= requestsOf(totals);
    const isWhole = countMissing(recorded, totals) === 0 && requestsOf(totals) >= requests;
    if (isWhole || repairs === repairsAtMost || failure !== null || recordFile === undefined) break;
    try {
      await writeAgain(store, recordFile);
    } catch (error) {
      // A part may have been taken: ask once more, then give up.
      failure = messageOf(error);
    }
  }
  const [stored, missing] = [requestsOf(totals), countMissing(recorded, totals)];
  const lacking = instances.flatMap((made, index) => {
    const lacks = made - requestsOf(totals, String(index + 1));
    return lacks > 0 ? [{ lacks, text: `${whole(lacks)} of generator ${index + 1}` }] : [];
  });
  // One's loss is not made good by what another has beyond its own.
  const lost = Math.max(0, requests - stored, lacking.reduce((sum, { lacks }) => sum + lacks, 0));
  const because = failure === null ? '' : `: ${failure}`;
  if (stored > requests) {
    problems.push(`InfluxDB holds ${whole(stored)} requests of ${label}, more than the ${whole(requests)} that were made; the figures in result.json are right, those in InfluxDB are not`);
  }
  if (lost > 0) problems.push(`InfluxDB lacks ${whole(lost)} of ${whole(requests)} requests of ${label}${lacking.length === 0 ? '' : ` (${lacking.map(({ text }) => text).join(', ')})`}${because}`);
  else if (missing > 0) problems.push(`InfluxDB lacks points of ${missing} series of ${label}${because}`);
  return { requests, stored, backfilled: Math.max(0, Math.min(stored, requests) - (atFirst ?? stored)), lost, problems };
}

/**
 * Counts once more when a run is over: a database may lose what it held. What it has less of than was made is checked, and
 * written again, as after its round. Never throws for a database that fails.
 * @returns the rounds' integrity as it is now, in their order, and a line each on what was not as it should be
 */
export async function checkAgain(store: Store, rounds: readonly { check: RoundToCheck; integrity: RoundIntegrity }[]): Promise<{ integrity: RoundIntegrity[]; problems: string[] }> {
  const before = rounds.map(({ integrity }) => integrity);
  const [first] = rounds;
  if (first === undefined) return { integrity: before, problems: [] };
  try {
    await store.revive(true);
    const held = await storedByRound(store, first.check.run);
    const integrity: RoundIntegrity[] = [];
    let [missing, written] = [0, 0];
    for (const { check, integrity: known } of rounds) {
      const stored = held.get(roundKey(check.variant, String(check.round))) ?? 0;
      // One that could not be counted after its round is whole only once it has been.
      if (stored >= check.requests && known.lost === 0) {
        integrity.push(known);
        continue;
      }
      const now = await checkRound(store, check);
      const again = Math.max(0, now.stored - stored);
      missing += Math.max(0, check.requests - stored);
      written += again;
      integrity.push({ ...now, backfilled: Math.min(now.stored, check.requests, known.backfilled + again) });
    }
    const problems = missing === 0 ? [] : [
      `InfluxDB lacked ${whole(missing)} of the run's requests when it was over: ${whole(written)} were written again from k6's record`,
    ];
    return { integrity, problems };
  } catch (error) {
    return { integrity: before, problems: [`what InfluxDB holds could not be counted when the run was over: ${messageOf(error)}`] };
  }
}

async function storedByRound(store: Store, run: string): Promise<Map<string, number>> {
  const series = await store.query(`SELECT SUM("value") FROM "loadgen_requests" WHERE "run" = ${quoteString(run)} GROUP BY "variant", "round"`);
  return new Map(series.map(({ tags = {}, columns, values }) => [
    roundKey(tags['variant'] ?? '', tags['round'] ?? ''), Number(values[0]?.[columns.indexOf('sum')] ?? 0),
  ]));
}

function roundKey(variant: string, round: string): string {
  return `${round}\n${variant}`;
}

async function recordedTotals(round: RoundToCheck & { recordFile: string }, problems: string[]): Promise<Totals> {
  const totals: Totals = new Map();
  try {
    for await (const { metric, tags, value } of readRecord(round.recordFile)) {
      const ours = tags['run'] === round.run && tags['variant'] === round.variant && tags['round'] === String(round.round);
      if (!ours || !metric.startsWith('loadgen_')) continue;
      const key = seriesKey(metric, tags);
      const total = totals.get(key) ?? { count: 0, sum: 0 };
      totals.set(key, { count: total.count + 1, sum: total.sum + value });
    }
  } catch (error) {
    problems.push(`k6's record of ${round.variant}, round ${round.round} cannot be read: ${messageOf(error)}`);
  }
  return totals;
}

async function storedTotals(store: Store, { run, variant, round }: RoundToCheck): Promise<Totals> {
  const series = await store.query(
    'SELECT COUNT("value"), SUM("value") FROM /^loadgen_/'
    + ` WHERE "run" = ${quoteString(run)} AND "variant" = ${quoteString(variant)} AND "round" = ${quoteString(String(round))} GROUP BY *`,
  );
  const totals: Totals = new Map();
  for (const { name, tags, columns, values } of series) {
    const row = values[0];
    if (row === undefined) continue;
    totals.set(seriesKey(name, tags ?? {}), { count: Number(row[columns.indexOf('count')]), sum: Number(row[columns.indexOf('sum')]) });
  }
  return totals;
}

async function writeAgain(store: Store, recordFile: string): Promise<void> {
  let lines: string[] = [];
  for await (const point of readRecord(recordFile)) {
    lines.push(recordedLine(point));
    if (lines.length === pointsPerWrite) {
      await store.write(lines);
      lines = [];
    }
  }
  await store.write(lines);
}

/** Series of the record that the database does not hold in full. Sums of floats depend on their order in the last digits. */
function countMissing(recorded: Totals, stored: Totals): number {
  let missing = 0;
  for (const [key, { count, sum }] of recorded) {
    const there = stored.get(key);
    if (there === undefined || there.count < count || Math.abs(there.sum - sum) > 1e-9 * Math.abs(sum)) missing++;
  }
  return missing;
}

/** @param instance whose; undefined: of all */
function requestsOf(totals: Totals, instance?: string): number {
  const ofInstance = instance === undefined ? '' : JSON.stringify(['instance_id', instance]);
  let requests = 0;
  for (const [key, { sum }] of totals) if (key.startsWith('loadgen_requests\n') && key.includes(ofInstance)) requests += sum;
  return requests;
}

/** InfluxDB lists every tag of a measurement, '' where a series has none; a tag without a value is no tag. */
function seriesKey(metric: string, tags: Record<string, string>): string {
  const entries = Object.entries(tags).filter(([, value]) => value !== '').sort(([a], [b]) => (a < b ? -1 : 1));
  return `${metric}\n${JSON.stringify(entries)}`;
}
