// Tables. A panel takes a measurement of the catalogue and the names of its fields, makes the query
// from them, and sets the units, so that it cannot show anything else than what it selects.
import {
  MappingType,
  SpecialValueMatch,
  type DynamicConfigValue,
  type ValueMapping,
} from '@grafana/grafana-foundation-sdk/dashboard';
import * as table from '@grafana/grafana-foundation-sdk/table';
import {
  framed,
  tableQuery,
  withoutUnpublished,
  withTitles,
  type Frame,
  type Repeat,
} from './frame.ts';
import {
  select,
  selectNewest,
  type FieldName,
  type Measurement,
  type TagName,
  type Where,
} from './influxql.ts';

/** A panel on one measurement. */
interface Panel<M extends Measurement> extends Frame {
  from: M;
  where: Where<M>;
}

/** A column of a table: a field or tag under a short title. Widths are in pixels; without one it takes what is left, and `minWidth` at least. */
export interface Column<M extends Measurement> {
  name: FieldName<M> | TagName<M>;
  /** Default: the name. */
  title?: string;
  width?: number;
  /** Default: 140. */
  minWidth?: number;
  /** Shows a ratio of 0 to 1 as per cent instead of as a factor. */
  percent?: boolean;
  /** Shows the figure as a bar with its text beside it: up to 1 where it is in per cent, else up to the column's greatest. */
  bar?: boolean;
  decimals?: number;
  mappings?: ValueMapping[];
  /** Colours the text as its mapping says. */
  coloured?: boolean;
  /** A long text takes as many lines as it needs. */
  wrapped?: boolean;
  /** Not to be seen: for the links of others. */
  hidden?: boolean;
  /** What a click on the cell opens. */
  link?: { title: string; url: string };
}

/** Units of the catalogue as Grafana's unit ids. Where the cell shows no unit, the column's title has to. */
const grafanaUnits: Readonly<Record<string, { unit: string; decimals?: number }>> = {
  'requests/s': { unit: 'locale', decimals: 0 },
  requests: { unit: 'locale', decimals: 0 },
  responses: { unit: 'locale', decimals: 0 },
  errors: { unit: 'locale', decimals: 0 },
  packets: { unit: 'none', decimals: 2 },
  connections: { unit: 'locale', decimals: 0 },
  number: { unit: 'none', decimals: 2 },
  MHz: { unit: 'suffix:MHz', decimals: 0 },
  rounds: { unit: 'none', decimals: 0 },
  ratio: { unit: 'prefix:×', decimals: 2 },
  'errors/million': { unit: 'locale', decimals: 0 },
  µs: { unit: 'µs', decimals: 1 },
  ms: { unit: 'ms', decimals: 2 },
  // Not Grafana's own seconds, which become minutes.
  s: { unit: 'suffix:s', decimals: 2 },
  bytes: { unit: 'decbytes', decimals: 0 },
  'bytes/s': { unit: 'binBps', decimals: 2 },
  'ms since 1970': { unit: 'dateTimeAsIso' },
  text: { unit: 'string' },
};

/** Wide enough for some 25 characters. */
export const variantColumn = { name: 'variant', minWidth: 200 } as const;

/** A sentence on the row. It takes one line, or it would push the other rows out of sight: Grafana shows all of it under the mouse. */
export const noteColumn = { name: 'note', minWidth: 130 } as const;

/** What a cell without a figure says, where that is not a dash. */
export function nullAs(text: string, color?: string): ValueMapping {
  const result = color === undefined ? { text } : { text, color };
  return { type: MappingType.SpecialValue, options: { match: SpecialValueMatch.Null, result } };
}

/** What a cell says that holds a 0 for nothing. */
export function zeroAs(text: string): ValueMapping {
  return { type: MappingType.ValueToText, options: { 0: { text, index: 0 } } };
}

/** Text values and the colours they are shown in. */
export function colours(colors: Readonly<Record<string, string>>): ValueMapping {
  const options = Object.entries(colors).map(([text, color], index) => [
    text,
    { text, color, index },
  ]);
  return { type: MappingType.ValueToText, options: Object.fromEntries(options) };
}

/** The colour of the texts that a regular expression matches as a whole; `text`, with its groups as $1, is what they are shown as. */
export function matched(pattern: string, result: { color: string; text?: string }): ValueMapping {
  return { type: MappingType.RegexToText, options: { pattern, result } };
}

/**
 * A table whose columns are exactly what its query selects, in that order; rows in the order of time. `newest` rows, or the newest for
 * each combination of values of the tags `newestPer` (selectNewest). `noRows` is what it says where it has none, `repeat` makes a panel of each value
 * of a variable.
 */
export function tablePanel<M extends Measurement>({
  columns,
  newest,
  newestPer,
  noRows,
  repeat,
  ...panel
}: Panel<M> & {
  columns: readonly Column<M>[];
  newest?: number;
  newestPer?: readonly TagName<M>[];
  noRows?: string;
  repeat?: Repeat;
}): table.PanelBuilder {
  const { from, where } = panel;
  const names = columns.map(({ name }) => name);
  const asked = { columns: names, from, where };
  let query = newest === undefined ? select(asked) : select({ ...asked, newest });
  if (newestPer !== undefined) query = selectNewest({ ...asked, per: newestPer });
  const builder = framed(new table.PanelBuilder(), panel, [tableQuery(query)], repeat)
    .noValue(noRows ?? '–')
    // A cell without a text would say what the panel says.
    .overrideByRegexp('/.*/', [{ id: 'noValue', value: '–' }]);
  if (names.some((name) => name.startsWith('published_')))
    builder.withTransformation(withoutUnpublished);
  builder.withTransformation(
    withTitles(new Map(columns.map(({ name, title = name }) => [name, title]))),
  );
  for (const override of overridesOf(from, columns)) builder.withOverride(override);
  return builder;
}

/** Each property once, for all columns that have it; properties of the same columns stand together. */
function overridesOf<M extends Measurement>(from: M, columns: readonly Column<M>[]) {
  const namesOf = new Map<string, string[]>();
  for (const column of columns)
    for (const property of columnProperties(from, column)) {
      const text = JSON.stringify(property);
      namesOf.set(text, [...(namesOf.get(text) ?? []), column.name]);
    }
  const propertiesOf = new Map<string, DynamicConfigValue[]>();
  for (const [property, names] of namesOf) {
    const key = names.join();
    propertiesOf.set(key, [...(propertiesOf.get(key) ?? []), JSON.parse(property)]);
  }
  return [...propertiesOf].map(([names, properties]) => ({
    matcher: { id: 'byNames', options: { mode: 'include', names: names.split(',') } },
    properties,
  }));
}

function columnProperties<M extends Measurement>(from: M, column: Column<M>): DynamicConfigValue[] {
  const { name, title = name } = column;
  const written = from.fields[name]?.unit ?? 'text';
  const catalogued = grafanaUnits[written];
  if (catalogued === undefined)
    throw new Error(`${from.measurement}.${name}: no Grafana unit for "${written}"`);
  const { unit, decimals } =
    column.percent === true ? { unit: 'percentunit', decimals: 0 } : catalogued;
  const properties: DynamicConfigValue[] = [];
  // A text has none.
  if (unit !== 'string') properties.push({ id: 'unit', value: unit });
  const shownDecimals = column.decimals ?? decimals;
  if (shownDecimals !== undefined) properties.push({ id: 'decimals', value: shownDecimals });
  // Beside Grafana's menu a laptop's screen leaves too little for a table: it scrolls then, and no name gets too short to be told from others.
  properties.push(
    column.width === undefined
      ? { id: 'custom.minWidth', value: column.minWidth ?? 140 }
      : { id: 'custom.width', value: column.width },
  );
  if (column.mappings !== undefined) properties.push({ id: 'mappings', value: column.mappings });
  if (column.coloured === true)
    properties.push({ id: 'custom.cellOptions', value: { type: 'color-text' } });
  if (column.bar === true) {
    const cell = { type: 'gauge', mode: 'basic', valueDisplayMode: 'text' };
    properties.push(
      { id: 'custom.cellOptions', value: cell },
      { id: 'min', value: 0 },
      column.percent === true ? { id: 'max', value: 1 } : { id: 'fieldMinMax', value: true },
    );
  }
  // A figure is narrower than both words.
  if (/^(?:published|measured) /.test(title))
    properties.push({ id: 'custom.wrapHeaderText', value: true });
  if (column.wrapped === true) properties.push({ id: 'custom.wrapText', value: true });
  // Older Grafanas know the first one, newer ones the second.
  if (column.hidden === true)
    properties.push(
      { id: 'custom.hidden', value: true },
      { id: 'custom.hideFrom', value: { viz: true } },
    );
  if (column.link !== undefined) properties.push({ id: 'links', value: [column.link] });
  return properties;
}
