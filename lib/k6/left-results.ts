// What each k6 in a cluster leaves in the database when a phase is over: its result, whole, since nobody there hears what its script prints.
import { line, quoteIdentifier, quoteString } from '../store/line-protocol.ts';
import type { PhaseOutcome } from './load-plan.ts';

const measurement = 'bench_instance';

/** InfluxDB takes texts below 64 KiB. */
const mostCharacters = 32_000;

/** The load that results are of; tags in the database. */
export interface LoadName {
  run: string;
  variant: string;
  round: string;
}

/** What an instance has left: its phases' outcomes, and how far its clock is ahead of the database's. */
export interface Left {
  phases: PhaseOutcome[];
  aheadMs: number;
}

/** A condition of InfluxQL on the tags of a load. */
export function ofLoad({ run, variant, round }: LoadName): string {
  return Object.entries({ run, variant, round })
    .map(([tag, value]) => `${quoteIdentifier(tag)} = ${quoteString(value)}`)
    .join(' AND ');
}

/** The point of a phase. @param phase and `instance` from 1 */
export function leftPoint(
  { run, variant, round }: LoadName,
  instance: number,
  phase: number,
  outcome: PhaseOutcome,
  aheadMs: number,
): string {
  // A part must not end within a character.
  const json = JSON.stringify(outcome).replaceAll(
    /[^\x20-\x7e]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
  const parts = Array.from(
    { length: Math.ceil(json.length / mostCharacters) },
    (_, index) =>
      [
        `part_${index + 1}`,
        json.slice(index * mostCharacters, (index + 1) * mostCharacters),
      ] as const,
  );
  return line(
    measurement,
    { run, variant, round, instance: String(instance), phase: String(phase) },
    { ahead_ms: aheadMs, ...Object.fromEntries(parts) },
  );
}

/** The statement that finds all points of a load. */
export function leftQuery(load: LoadName): string {
  return `SELECT * FROM ${quoteIdentifier(measurement)} WHERE ${ofLoad(load)} GROUP BY "instance", "phase"`;
}

/** By instance, what its answer holds. */
export function leftIn(
  series: readonly {
    tags?: Record<string, string>;
    columns: readonly string[];
    values: readonly (readonly unknown[])[];
  }[],
): Map<number, Left> {
  const found = new Map<number, Left>();
  for (const { tags = {}, columns, values } of series.toSorted(
    (a, b) => Number(a.tags?.['phase']) - Number(b.tags?.['phase']),
  )) {
    // One that was written again is there twice.
    const row = values.at(-1);
    if (row === undefined) continue;
    const fields = new Map(columns.map((column, index) => [column, row[index]]));
    const textOf = (part: number): string => {
      const text = fields.get(`part_${part}`);
      return typeof text === 'string' ? text + textOf(part + 1) : '';
    };
    const instance = Number(tags['instance']);
    const phases = found.get(instance)?.phases ?? [];
    found.set(instance, {
      phases: [...phases, JSON.parse(textOf(1)) as PhaseOutcome],
      aheadMs: Number(fields.get('ahead_ms')),
    });
  }
  return found;
}
