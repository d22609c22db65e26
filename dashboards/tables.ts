// One function per panel kind. Each takes a measurement of the catalogue and the names of its fields, makes the query
// from them, and sets the units, so that a panel cannot show anything else than what it selects.
import * as barchart from '@grafana/grafana-foundation-sdk/barchart';
import type { Builder, Dataquery } from '@grafana/grafana-foundation-sdk/cog';
import {
  BigValueColorMode, BigValueGraphMode, GraphThresholdsStyleConfigBuilder, GraphThresholdsStyleMode, LegendDisplayMode, LegendPlacement, SortOrder,
  TooltipDisplayMode, VisibilityMode, VizLegendOptionsBuilder, VizOrientation, VizTooltipOptionsBuilder,
  type DataSourceRef,
} from '@grafana/grafana-foundation-sdk/common';
import {
  FieldColorBuilder, FieldColorModeId, MappingType, SpecialValueMatch, ThresholdsConfigBuilder, ThresholdsMode,
  type DynamicConfigValue, type GridPos, type ValueMapping,
} from '@grafana/grafana-foundation-sdk/dashboard';
import * as stat from '@grafana/grafana-foundation-sdk/stat';
import * as table from '@grafana/grafana-foundation-sdk/table';
import * as timeseries from '@grafana/grafana-foundation-sdk/timeseries';
import { select, type FieldName, type Measurement, type TagName, type Where } from './influxql.ts';

/** The data source of dashboards/provisioning/datasources/bakeoff.yaml. */
export const datasource: DataSourceRef = { type: 'influxdb', uid: 'bakeoff-influxdb' };

/** What every panel has. Ids stay as they are: links and the memory of people point to them. */
interface Panel<M extends Measurement> {
  id: number;
  title: string;
  description: string;
  grid: GridPos;
  from: M;
  where: Where<M>;
}

/** A column of a table: a field or tag under a short title. Widths are in pixels; without one it takes what is left. */
export interface Column<M extends Measurement> {
  name: FieldName<M> | TagName<M>;
  title: string;
  width?: number;
  /** Shows a ratio of 0 to 1 as per cent instead of as a factor. */
  percent?: boolean;
  /** Shows a ratio of 0 to 1 as a bar with its per cent beside it. */
  bar?: boolean;
  decimals?: number;
  mappings?: ValueMapping[];
  /** Colours the text as its mapping says. */
  coloured?: boolean;
  /** What a click on the cell opens. */
  link?: { title: string; url: string };
}

/** Units of the catalogue as Grafana's unit ids. Where the cell shows no unit, the column's title has to. */
const grafanaUnits: Readonly<Record<string, { unit: string; decimals?: number }>> = {
  'requests/s': { unit: 'locale', decimals: 0 },
  requests: { unit: 'locale', decimals: 0 },
  responses: { unit: 'locale', decimals: 0 },
  errors: { unit: 'locale', decimals: 0 },
  number: { unit: 'none', decimals: 2 },
  MHz: { unit: 'suffix: MHz', decimals: 0 },
  rounds: { unit: 'none', decimals: 0 },
  ratio: { unit: 'prefix:×', decimals: 2 },
  'errors/million': { unit: 'ppm', decimals: 0 },
  'µs': { unit: 'µs', decimals: 1 },
  ms: { unit: 'ms', decimals: 2 },
  // Not Grafana's own seconds, which become minutes.
  s: { unit: 'suffix: s', decimals: 2 },
  bytes: { unit: 'decbytes', decimals: 0 },
  'bytes/s': { unit: 'binBps', decimals: 2 },
  'ms since 1970': { unit: 'dateTimeAsIso' },
  text: { unit: 'string' },
};

/** What a cell without a figure says. */
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
  const options = Object.entries(colors).map(([text, color], index) => [text, { text, color, index }]);
  return { type: MappingType.ValueToText, options: Object.fromEntries(options) };
}

/**
 * A table whose columns are exactly what its query selects, in that order; rows in the order of time. `noRows` is what it
 * says where it has none, `repeat` makes a panel of each value of a variable.
 */
export function tablePanel<M extends Measurement>(
  { columns, newest, noRows, repeat, ...panel }: Panel<M> & {
    columns: readonly Column<M>[]; newest?: number; noRows?: string; repeat?: { variable: string; perRow: number };
  },
): table.PanelBuilder {
  const { from, where } = panel;
  const query = select({ columns: columns.map((column) => column.name), from, where, ...(newest !== undefined && { newest }) });
  const builder = framed(new table.PanelBuilder(), panel, tableQuery(query))
    .noValue(noRows ?? '–')
    .minWidth(60)
    .withTransformation(withoutTime);
  if (noRows !== undefined) builder.mappings([nullAs('–')]);
  if (repeat !== undefined) builder.repeat(repeat.variable).repeatDirection('h').maxPerRow(repeat.perRow);
  for (const column of columns) builder.overrideByName(column.name, columnProperties(from, column));
  return builder;
}

/** Bars side by side, a group per value of the tag `category`, in the order of time; all in one unit. */
export function barsPanel<M extends Measurement>(
  { category, bars, noBars, axis, unit, decimals, lineAt, ...panel }: Panel<M> & {
    category: TagName<M>;
    /** What it says where there are none. */
    noBars: string;
    bars: readonly { name: FieldName<M>; title: string; color: string }[];
    axis: string;
    unit: string;
    decimals: number;
    /** A dashed line across the bars. */
    lineAt?: number;
  },
): barchart.PanelBuilder {
  const { from, where } = panel;
  const query = select({ columns: [category, ...bars.map((bar) => bar.name)], from, where });
  const builder = framed(new barchart.PanelBuilder(), panel, tableQuery(query))
    .withTransformation(withoutTime)
    .noValue(noBars)
    .xField(category)
    .xTickLabelMaxLength(60)
    // The names of a ladder's seven rows do not fit beside each other.
    .xTickLabelRotation(-30)
    .orientation(VizOrientation.Auto)
    .showValue(VisibilityMode.Always)
    .groupWidth(0.6)
    .barWidth(0.9)
    .fillOpacity(80)
    .legend(legend())
    .tooltip(new VizTooltipOptionsBuilder().mode(TooltipDisplayMode.Multi).sort(SortOrder.None))
    .unit(unit)
    .decimals(decimals)
    .axisLabel(axis)
    .axisSoftMin(0);
  if (lineAt !== undefined) {
    builder
      .thresholds(new ThresholdsConfigBuilder().mode(ThresholdsMode.Absolute).steps([{ value: null, color: 'transparent' }, { value: lineAt, color: 'text' }]))
      .thresholdsStyle(new GraphThresholdsStyleConfigBuilder().mode(GraphThresholdsStyleMode.Dashed));
  }
  for (const bar of bars) {
    builder.overrideByName(bar.name, [
      { id: 'displayName', value: bar.title },
      { id: 'color', value: new FieldColorBuilder().mode(FieldColorModeId.Fixed).fixedColor(bar.color).build() },
    ]);
  }
  return builder;
}

/** One figure in large type. */
export function statPanel<M extends Measurement>(
  { field, noFigure, unit, decimals, ...panel }: Panel<M> & {
    field: FieldName<M>;
    /** What it says where there is none. */
    noFigure: string;
    unit: string;
    decimals: number;
  },
): stat.PanelBuilder {
  const query = select({ columns: [field], from: panel.from, where: panel.where });
  return framed(new stat.PanelBuilder(), panel, tableQuery(query))
    .withTransformation(withoutTime)
    .noValue(noFigure)
    .unit(unit)
    .decimals(decimals)
    .colorMode(BigValueColorMode.None)
    .graphMode(BigValueGraphMode.None);
}

/**
 * A field over the real time, a line per value of the tag `series`. A line breaks where nothing was measured for
 * `gapMs`, as between the rounds of a variant.
 */
export function timeSeriesPanel<M extends Measurement>(
  { field, series, unit, axis, gapMs, ...panel }: Panel<M> & {
    field: FieldName<M>; series: TagName<M>; unit: string; axis: string; gapMs: number;
  },
): timeseries.PanelBuilder {
  const { from, where } = panel;
  const query = select({ columns: [field], from, where, groupBy: series });
  return framed(new timeseries.PanelBuilder(), panel, new InfluxQLQuery(query, 'time_series', `$tag_${series}`))
    .legend(legend())
    .tooltip(new VizTooltipOptionsBuilder().mode(TooltipDisplayMode.Multi).sort(SortOrder.Descending))
    .colorScheme(new FieldColorBuilder().mode(FieldColorModeId.PaletteClassic))
    .lineWidth(2)
    .showPoints(VisibilityMode.Auto)
    .spanNulls(false)
    .insertNulls(gapMs)
    .unit(unit)
    .axisLabel(axis)
    .axisSoftMin(0);
}

/** Every InfluxQL answer starts with the time; in a table of figures of a whole run it says nothing. */
const withoutTime = { id: 'organize', options: { excludeByName: { Time: true }, indexByName: {}, renameByName: {} } };

function columnProperties<M extends Measurement>(from: M, column: Column<M>): DynamicConfigValue[] {
  const catalogued = grafanaUnits[from.fields[column.name]?.unit ?? 'text'];
  if (catalogued === undefined) throw new Error(`${from.measurement}.${column.name}: no Grafana unit for "${from.fields[column.name]?.unit}"`);
  const { unit, decimals } = column.percent === true || column.bar === true ? { unit: 'percentunit', decimals: 0 } : catalogued;
  const properties: DynamicConfigValue[] = [{ id: 'displayName', value: column.title }, { id: 'unit', value: unit }];
  const shownDecimals = column.decimals ?? decimals;
  if (shownDecimals !== undefined) properties.push({ id: 'decimals', value: shownDecimals });
  if (column.width !== undefined) properties.push({ id: 'custom.width', value: column.width });
  if (column.mappings !== undefined) properties.push({ id: 'mappings', value: column.mappings });
  if (column.coloured === true) properties.push({ id: 'custom.cellOptions', value: { type: 'color-text' } });
  if (column.bar === true) {
    properties.push({ id: 'custom.cellOptions', value: { type: 'gauge', mode: 'basic', valueDisplayMode: 'text' } }, { id: 'min', value: 0 }, { id: 'max', value: 1 });
  }
  if (column.link !== undefined) properties.push({ id: 'links', value: [column.link] });
  return properties;
}

function legend(): VizLegendOptionsBuilder {
  return new VizLegendOptionsBuilder().showLegend(true).displayMode(LegendDisplayMode.List).placement(LegendPlacement.Bottom).calcs([]);
}

interface AnyPanelBuilder<Self> {
  id(id: number): Self;
  title(title: string): Self;
  description(description: string): Self;
  gridPos(grid: GridPos): Self;
  datasource(ref: DataSourceRef): Self;
  withTarget(target: Builder<Dataquery>): Self;
}

function framed<B extends AnyPanelBuilder<B>, M extends Measurement>(builder: B, panel: Panel<M>, query: Builder<Dataquery>): B {
  return builder.id(panel.id).title(panel.title).description(panel.description).gridPos(panel.grid).datasource(datasource).withTarget(query);
}

function tableQuery(query: string): InfluxQLQuery {
  return new InfluxQLQuery(query, 'table');
}

/** A raw InfluxQL query; the SDK has no builder of its own for InfluxDB. */
class InfluxQLQuery implements Builder<Dataquery> {
  private readonly target: Record<string, unknown>;

  constructor(query: string, resultFormat: 'table' | 'time_series', alias?: string) {
    this.target = { refId: 'A', datasource, rawQuery: true, resultFormat, query, ...(alias !== undefined && { alias }) };
  }

  build(): Dataquery {
    // The method only marks the type; as an own property it would be dropped by JSON.stringify all the same.
    return { ...this.target, _implementsDataqueryVariant: () => {} };
  }
}
