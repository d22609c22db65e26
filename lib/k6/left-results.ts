// The results that each k6 in a cluster leaves in the database after a phase, because nothing there reads its console.
import { line, quoteIdentifier, quoteString } from '../influx/line-protocol.ts';
import type { PhaseOutcome } from './load-plan.ts';

const measurement = 'bench_instance';

/** InfluxDB's fields are below 64 KiB. */
const mostCharacters = 32_000;

/** The tags of a load's results. */
export interface LoadName {
  run: string;
  variant: string;
  round: string;
}

/** The outcomes of an instance by phase, and how far its clock is ahead of the database's. */
interface Left {
  phases: PhaseOutcome[];
  aheadMs: number;
}

/** The InfluxQL condition for a load. */
export function ofLoad({ run, variant, round }: LoadName): string {
  const tags = Object.entries({ run, variant, round });
  const conditions = tags.map(([tag, value]) => `${quoteIdentifier(tag)} = ${quoteString(value)}`);
  return conditions.join(' AND ');
}

/** The point of a phase. @param phase and `instance` from 1 */
export function leftPoint(
  { run, variant, round }: LoadName,
  instance: number,
  phase: number,
  outcome: PhaseOutcome,
  aheadMs: number,
): string {
  // ASCII only, so that no part ends within a character.
  const json = JSON.stringify(outcome).replaceAll(
    /[^\x20-\x7e]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
  const fields: Record<string, string | number> = { ahead_ms: aheadMs };
  for (let part = 0; part * mostCharacters < json.length; part++)
    fields[`part_${part + 1}`] = json.slice(part * mostCharacters, (part + 1) * mostCharacters);
  const tags = { run, variant, round, instance: String(instance), phase: String(phase) };
  return line(measurement, tags, fields);
}

/** The query for all points of a load. */
export function leftQuery(load: LoadName): string {
  return `SELECT * FROM ${quoteIdentifier(measurement)} WHERE ${ofLoad(load)} GROUP BY "instance", "phase"`;
}

/** The answer to leftQuery, by instance. */
export function leftIn(
  series: readonly {
    tags?: Record<string, string>;
    columns: readonly string[];
    values: readonly (readonly unknown[])[];
  }[],
): Map<number, Left> {
  const byInstance = new Map<number, Left>();
  for (const { tags = {}, columns, values } of series.toSorted(
    (a, b) => Number(a.tags?.['phase']) - Number(b.tags?.['phase']),
  )) {
    // A repeated write leaves two rows.
    const fields = new Map(columns.map((column, index) => [column, values.at(-1)?.[index]]));
    const textOf = (part: number): string => {
      const text = fields.get(`part_${part}`);
      return typeof text === 'string' ? text + textOf(part + 1) : '';
    };
    const instance = Number(tags['instance']);
    const phases = byInstance.get(instance)?.phases ?? [];
    byInstance.set(instance, {
      phases: [...phases, JSON.parse(textOf(1)) as PhaseOutcome],
      aheadMs: Number(fields.get('ahead_ms')),
    });
  }
  return byInstance;
}
