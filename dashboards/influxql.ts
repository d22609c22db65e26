// The InfluxQL of panels and variables. Every name comes from the catalogue that the writers write by.
// The queries hold to what InfluxDB 1.x and 2.x both answer. Most ask for no time range: a run is picked by its name, and
// its panels show it whatever range the dashboard is at.
import { loadgenMeasurements, type measurements } from '../lib/features/influxdb/schema.ts';

export type Measurement = (typeof measurements)[number];
export type FieldName<M extends Measurement> = keyof M['fields'] & string;
export type TagName<M extends Measurement> = M['tags'][number];

/** The template variables of the dashboards; `kind` is a pattern of articles, `variants` is what is picked, `variant` and `compared` what panels are repeated for, `unpublished` what tables leave out. */
export type VariableName =
  'article' | 'kind' | 'scenario' | 'run' | 'variant' | 'compared' | 'variants' | 'unpublished';

/** Which points. */
export interface Where<M extends Measurement> {
  /** Tags that equal a template variable. */
  equal?: Partial<Record<TagName<M>, VariableName>>;
  /** Tags that equal one of the values of a template variable that may be "All". */
  among?: Partial<Record<TagName<M>, VariableName>>;
  /** Tags that the pattern in a template variable matches; no tag is ''. */
  like?: Partial<Record<TagName<M>, VariableName>>;
  /** Tags that have one of these values; '' for none. */
  is?: Partial<Record<TagName<M>, readonly string[]>>;
  /** Tags that have none of these values. */
  isNot?: Partial<Record<TagName<M>, readonly string[]>>;
  /** A tag that has to be there. */
  has?: TagName<M>;
  /** Fields of which at least one has to be above 0. */
  above0?: readonly FieldName<M>[];
  /** Only what lies in the dashboard's time range. */
  inTimeRange?: boolean;
}

/** The run that is picked. */
export const pickedRun = { equal: { scenario: 'scenario', run: 'run' } } as const;

interface Select<M extends Measurement> {
  columns: readonly (FieldName<M> | TagName<M>)[];
  /** Where a plot draws them, by names of its own, which have no quotes. */
  places?: Readonly<Record<string, string>>;
  from: M;
  where: Where<M>;
  groupBy?: readonly TagName<M>[];
  /** Newest first, and no more than this many rows. */
  newest?: number;
}

interface SelectEvery<M extends Measurement> {
  /** What is made of the values in one interval. */
  of: 'sum' | 'mean' | 'last';
  field: FieldName<M>;
  /** What it is called in a query around this one. */
  as?: string;
  from: M;
  where: Where<M>;
  groupBy?: readonly TagName<M>[];
  every: '1s' | '1h';
  /** Where an interval has no value: nothing, or the value before. */
  fill: 'none' | 'previous';
}

/** The measurement of one of k6's metrics. Throws when xk6-loadgen/metrics.json has none of that name. */
export function loadgenMeasurement(name: string): Measurement {
  const metric = loadgenMeasurements.find(({ measurement }) => measurement === name);
  if (metric === undefined) throw new Error(`xk6-loadgen/metrics.json has no metric "${name}"`);
  return metric;
}

/** A query whose columns are fields and tags as they were written: nothing but where a mark is drawn is computed on the way to the panel. */
export function select<M extends Measurement>({
  columns,
  places = {},
  from,
  where,
  groupBy = [],
  newest,
}: Select<M>): string {
  return [
    `SELECT ${[...columns.map(quote), ...Object.entries(places).map(([name, place]) => `${place} AS ${name}`)].join(', ')} FROM ${quote(from.measurement)}${whereClause(where)}`,
    groupBy.length === 0 ? '' : ` GROUP BY ${groupBy.map(quote).join(', ')}`,
    newest === undefined ? '' : ` ORDER BY time DESC LIMIT ${newest}`,
  ].join('');
}

/**
 * A query of the newest point for each combination of values of the tags `per`, in the order of these values. The first of the columns
 * is a field that all points have; throws where it is none.
 */
export function selectNewest<M extends Measurement>({
  columns,
  from,
  where,
  per,
}: {
  columns: readonly (FieldName<M> | TagName<M>)[];
  from: M;
  where: Where<M>;
  per: readonly TagName<M>[];
}): string {
  const [first = '', ...others] = columns.map(quote);
  if (!Object.keys(from.fields).map(quote).includes(first))
    throw new Error(`${first} is no field of ${from.measurement}`);
  const newest = [`last(${first}) AS ${first}`, ...others].join(', ');
  return (
    `SELECT ${[first, ...others].join(', ')} FROM (SELECT ${newest} FROM ${quote(from.measurement)}` +
    `${whereClause(where)} GROUP BY ${per.map(quote).join(', ')})`
  );
}

/** A query of one value per interval, for what is written more often than that, or by several series at once. */
export function selectEvery<M extends Measurement>({
  of,
  field,
  as,
  from,
  where,
  groupBy = [],
  every,
  fill,
}: SelectEvery<M>): string {
  return (
    `SELECT ${of}(${quote(field)})${as === undefined ? '' : ` AS ${as}`} FROM ${quote(from.measurement)}${whereClause(where)} ` +
    `GROUP BY ${[`time(${every})`, ...groupBy.map(quote)].join(', ')} fill(${fill})`
  );
}

/**
 * The same of a figure that each of several generators has of its own: of each of them what `of` makes of an interval's samples,
 * and of all what `over` makes of these.
 */
export function selectOverGenerators<M extends Measurement>({
  over,
  groupBy = [],
  ...each
}: Omit<SelectEvery<M>, 'as'> & { over: 'sum' | 'max' }): string {
  const inner = selectEvery({ ...each, as: 'own', groupBy: [...groupBy, 'instance_id'] });
  return `SELECT ${over}(own) FROM (${inner}) GROUP BY ${[`time(${each.every})`, ...groupBy.map(quote)].join(', ')} fill(${each.fill})`;
}

/**
 * What a counter of k6's came to in each second and how much time under load that second had, to be divided: a sample covers
 * less than a second at a load's end, and wherever two sides take turns. Several generators have the same second each. `groupBy`
 * may have tags of the counter's own.
 */
export function perSecondUnderLoad(
  counter: string,
  { where, groupBy }: { where: Where<Measurement>; groupBy: readonly string[] },
): { of: string; per: string } {
  const [counted, seconds] = [loadgenMeasurement(counter), loadgenMeasurement('loadgen_seconds')];
  const inEachSecond = { of: 'sum', field: 'value', every: '1s', fill: 'none' } as const;
  const { is: _, ...ofAll } = where;
  // A series without tags is called by its measurement in Grafana's expressions, and goes with no series that has some.
  const tags = ['run', ...groupBy];
  return {
    of: selectEvery({ ...inEachSecond, from: counted, where, groupBy: tags }),
    per: selectOverGenerators({
      ...inEachSecond,
      over: 'max',
      from: seconds,
      where: ofAll,
      groupBy: tags.filter((tag) => seconds.tags.includes(tag)),
    }),
  };
}

/** The query of a template variable: every value that a tag has. */
export function tagValues<M extends Measurement>(
  from: M,
  tag: TagName<M>,
  where: Where<M> = {},
): string {
  return `SHOW TAG VALUES FROM ${quote(from.measurement)} WITH KEY = ${quote(tag)}${whereClause(where)}`;
}

/**
 * The query of a template variable: the values of a tag in the order in which they were written, or those of the `newest` points, the
 * newest first. They come again and again, which Grafana passes over, and with figures of `beside`, which the variable has to leave out: InfluxQL
 * answers a tag only beside a field.
 */
export function tagValuesByTime<M extends Measurement>({
  from,
  tag,
  beside,
  where = {},
  newest,
}: {
  from: M;
  tag: TagName<M>;
  beside: FieldName<M>;
  where?: Where<M>;
  newest?: number;
}): string {
  const points = { columns: [tag, beside], from, where };
  return newest === undefined ? select(points) : select({ ...points, newest });
}

function whereClause<M extends Measurement>({
  equal = {},
  among = {},
  like = {},
  is = {},
  isNot = {},
  has,
  above0,
  inTimeRange,
}: Where<M>): string {
  const conditions: string[] = [];
  // `:raw` because Grafana otherwise escapes some values as for a regular expression, depending on its version.
  for (const [tag, variable] of Object.entries<VariableName | undefined>(equal))
    conditions.push(`${quote(tag)} = '\${${variable}:raw}'`);
  for (const [tag, variable] of Object.entries<VariableName | undefined>(among))
    conditions.push(`${quote(tag)} =~ /^\${${variable}:regex}$/`);
  for (const [tag, variable] of Object.entries<VariableName | undefined>(like))
    conditions.push(`${quote(tag)} =~ /^\${${variable}:raw}$/`);
  for (const [tag, values = []] of Object.entries<readonly string[] | undefined>(is))
    conditions.push(anyOf(values.map((value) => `${quote(tag)} = '${value}'`)));
  for (const [tag, values = []] of Object.entries<readonly string[] | undefined>(isNot))
    for (const value of values) conditions.push(`${quote(tag)} != '${value}'`);
  if (has !== undefined) conditions.push(`${quote(has)} != ''`);
  if (above0 !== undefined) conditions.push(anyOf(above0.map((field) => `${quote(field)} > 0`)));
  if (inTimeRange === true) conditions.push('$timeFilter');
  return conditions.length === 0 ? '' : ` WHERE ${conditions.join(' AND ')}`;
}

function anyOf(conditions: readonly string[]): string {
  return `(${conditions.join(' OR ')})`;
}

function quote(name: string): string {
  return `"${name}"`;
}
