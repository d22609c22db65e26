// The InfluxQL of panels and variables. Every name comes from the catalogue that the writers write by, and every
// identifier is double-quoted, so that a test can read the names back out of the generated JSON.
// The queries hold to what InfluxDB 1.x and 2.x both answer. None asks for a time range: a run is picked by its name,
// and its panels show it whatever range the dashboard is at.
import { loadgenMeasurements, type measurements } from '../lib/store/schema.ts';

export type Measurement = (typeof measurements)[number];
export type FieldName<M extends Measurement> = keyof M['fields'] & string;
export type TagName<M extends Measurement> = M['tags'][number];

/** Which points: tags that equal a template variable, and a tag that has to be there. */
export interface Where<M extends Measurement> {
  equal: Partial<Record<TagName<M>, 'scenario' | 'run' | 'variant'>>;
  has?: TagName<M>;
}

/** The run that is picked. */
export const pickedRun = { equal: { scenario: 'scenario', run: 'run' } } as const;

interface Select<M extends Measurement> {
  columns: readonly (FieldName<M> | TagName<M>)[];
  from: M;
  where: Where<M>;
  groupBy?: TagName<M>;
  /** Newest first, and no more than this many rows. */
  newest?: number;
}

/** The measurement of one of k6's metrics. Throws when xk6-loadgen/metrics.json has none of that name. */
export function loadgenMeasurement(name: string): Measurement {
  const found = loadgenMeasurements.find((one) => one.measurement === name);
  if (found === undefined) throw new Error(`xk6-loadgen/metrics.json has no metric "${name}"`);
  return found;
}

/** A query whose columns are fields and tags as they were written: nothing is computed on the way to the panel. */
export function select<M extends Measurement>({ columns, from, where, groupBy, newest }: Select<M>): string {
  return [
    `SELECT ${columns.map(quote).join(', ')} FROM ${quote(from.measurement)}${whereClause(where)}`,
    groupBy === undefined ? '' : ` GROUP BY ${quote(groupBy)}`,
    newest === undefined ? '' : ` ORDER BY time DESC LIMIT ${newest}`,
  ].join('');
}

/** The query of a template variable: every value that a tag has. */
export function tagValues<M extends Measurement>(from: M, tag: TagName<M>, where: Where<M> = { equal: {} }): string {
  return `SHOW TAG VALUES FROM ${quote(from.measurement)} WITH KEY = ${quote(tag)}${whereClause(where)}`;
}

// `:raw` because Grafana otherwise escapes some values as for a regular expression, depending on its version.
function whereClause<M extends Measurement>({ equal, has }: Where<M>): string {
  const conditions = Object.entries(equal).map(([tag, variable]) => `${quote(tag)} = '\${${variable as string}:raw}'`);
  if (has !== undefined) conditions.push(`${quote(has)} != ''`);
  return conditions.length === 0 ? '' : ` WHERE ${conditions.join(' AND ')}`;
}

function quote(name: string): string {
  return `"${name}"`;
}
