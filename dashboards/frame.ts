// What every panel has, whatever its kind.
import type { Builder, Dataquery } from '@grafana/grafana-foundation-sdk/cog';
import {
  LegendDisplayMode,
  LegendPlacement,
  VizLegendOptionsBuilder,
  type DataSourceRef,
} from '@grafana/grafana-foundation-sdk/common';
import type { DataTransformerConfig, GridPos } from '@grafana/grafana-foundation-sdk/dashboard';

/** The data source that is picked: wherever a dashboard is imported there is one, whatever it is called there. */
export const datasource: DataSourceRef = { type: 'influxdb', uid: '${datasource}' };

/** Where Grafana computes with what other queries answer. */
const expressions: DataSourceRef = { type: '__expr__', uid: '__expr__' };

/** Ids stay as they are: links and the memory of people point to them. */
export interface Frame {
  id: number;
  title: string;
  description: string;
  grid: GridPos;
}

/** A panel for each value of a variable, side by side. */
export interface Repeat {
  variable: string;
  perRow: number;
}

interface AnyPanelBuilder<Self> {
  id(id: number): Self;
  title(title: string): Self;
  description(description: string): Self;
  gridPos(grid: GridPos): Self;
  datasource(ref: DataSourceRef): Self;
  targets(targets: Builder<Dataquery>[]): Self;
  repeat(repeat: string): Self;
  repeatDirection(direction: 'h' | 'v'): Self;
  maxPerRow(panels: number): Self;
}

/** Fills in the frame of a panel and its queries. */
export function framed<B extends AnyPanelBuilder<B>>(
  builder: B,
  { id, title, description, grid }: Frame,
  queries: Builder<Dataquery>[],
  repeat?: Repeat,
): B {
  builder
    .id(id)
    .title(title)
    .description(description)
    .gridPos(grid)
    .datasource(datasource)
    .targets(queries);
  if (repeat !== undefined)
    builder.repeat(repeat.variable).repeatDirection('h').maxPerRow(repeat.perRow);
  return builder;
}

export function legend(): VizLegendOptionsBuilder {
  return new VizLegendOptionsBuilder()
    .showLegend(true)
    .displayMode(LegendDisplayMode.List)
    .placement(LegendPlacement.Bottom)
    .calcs([]);
}

/** The query of a table: columns and rows as they are answered. */
export function tableQuery(query: string, letter = 'A'): Builder<Dataquery> {
  return influxQl(letter, query, 'table');
}

/** A line per series of the answer, called as `alias` says: `$tag_NAME` is a tag's value, `$col` the column. */
export interface Lines {
  query: string;
  alias: string;
}

/**
 * A line per series of a quotient, called as `name` says: `${__field.labels.NAME}` is a tag's value. `of` is divided by what
 * `per` answers for the same time and the same tags, or for the same time alone where it has no tags. InfluxQL divides within
 * one measurement only, and k6 writes each metric as one of its own, so Grafana divides, by an expression of its server's.
 */
export interface Quotient {
  of: string;
  per: string;
  name: string;
}

interface LineQueries {
  queries: Builder<Dataquery>[];
  /** What the lines of a quotient are called, by the letter of their query. */
  names: Record<string, string>;
}

/** The queries of lines over time. */
export function lineQueries(lines: readonly (Lines | Quotient)[]): LineQueries {
  const queries: Builder<Dataquery>[] = [];
  const names: LineQueries['names'] = {};
  const nextLetter = (): string => String.fromCharCode('A'.charCodeAt(0) + queries.length);
  const add = (query: string, alias?: string): string => {
    const letter = nextLetter();
    queries.push(influxQl(letter, query, 'time_series', alias));
    return letter;
  };
  for (const line of lines) {
    if ('query' in line) {
      add(line.query, line.alias);
      continue;
    }
    const [of, per] = [add(line.of), add(line.per)];
    const letter = nextLetter();
    queries.push(
      target({
        refId: letter,
        datasource: expressions,
        type: 'math',
        expression: `$${of} / $${per}`,
      }),
    );
    names[letter] = line.name;
  }
  return { queries, names };
}

/** Every InfluxQL answer starts with the time; in a table of figures of a whole run it says nothing. */
export const withoutTime = withTitles(new Map());

/** The same with columns under their titles, by name. */
export function withTitles(titles: ReadonlyMap<string, string>): DataTransformerConfig {
  const renamed = [...titles].filter(([name, title]) => name !== title);
  const renameByName = Object.fromEntries(renamed);
  return {
    id: 'organize',
    options: { excludeByName: { Time: true }, indexByName: {}, renameByName },
  };
}

/** Where no article published anything, what it would have published is not in the tables. */
export const withoutUnpublished = {
  id: 'filterFieldsByName',
  options: { exclude: { pattern: '/^${unpublished}_/' } },
};

/** A raw InfluxQL query. */
function influxQl(
  refId: string,
  query: string,
  resultFormat: 'table' | 'time_series',
  alias?: string,
): Builder<Dataquery> {
  const fields = { refId, datasource, rawQuery: true, resultFormat, query };
  if (resultFormat === 'table') return target(fields);
  // Lines that have no name are not shown: they are for a quotient.
  return target(alias === undefined ? { ...fields, hide: true } : { ...fields, alias });
}

/** What is asked for, as it stands in the file: the SDK has no builders for InfluxDB or for Grafana's own expressions. */
export function target(fields: Record<string, unknown>): Builder<Dataquery> {
  // The method only marks the type; JSON.stringify drops it.
  return { build: () => ({ ...fields, _implementsDataqueryVariant: () => {} }) };
}
