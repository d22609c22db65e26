// Bars, lines over time, heatmaps and marks by two figures: one function per kind, each with a unit and a label on its axis.
import * as barchart from '@grafana/grafana-foundation-sdk/barchart';
import {
  AxisPlacement,
  GraphDrawStyle,
  GraphThresholdsStyleConfigBuilder,
  GraphThresholdsStyleMode,
  HeatmapCellLayout,
  ScaleDistribution,
  ScaleDistributionConfigBuilder,
  SortOrder,
  TooltipDisplayMode,
  VisibilityMode,
  VizOrientation,
  VizTooltipOptionsBuilder,
} from '@grafana/grafana-foundation-sdk/common';
import type { Builder } from '@grafana/grafana-foundation-sdk/cog';
import {
  FieldColorBuilder,
  FieldColorModeId,
  ThresholdsConfigBuilder,
  ThresholdsMode,
  type DynamicConfigValue,
  type Panel,
} from '@grafana/grafana-foundation-sdk/dashboard';
import * as heatmap from '@grafana/grafana-foundation-sdk/heatmap';
import * as timeseries from '@grafana/grafana-foundation-sdk/timeseries';
import * as xychart from '@grafana/grafana-foundation-sdk/xychart';
import {
  framed,
  legend,
  lineQueries,
  tableQuery,
  withoutTime,
  withoutUnpublished,
  type Frame,
  type Lines,
  type Quotient,
  type Repeat,
} from './frame.ts';
import { pickedRun, select } from './influxql.ts';
import { benchComparison } from '../lib/features/influxdb/comparison-points.ts';

/** Requests/s as multiples of the first row's, published and here as bars side by side, a group per variant. `noBars` is what it says where there are none. */
export function barsPanel({ noBars, ...frame }: Frame & { noBars: string }): barchart.PanelBuilder {
  const columns = ['variant', 'published_to_first', 'measured_to_first'] as const;
  const query = select({ columns, from: benchComparison, where: pickedRun });
  return (
    framed(new barchart.PanelBuilder(), frame, [tableQuery(query)])
      .withTransformation(withoutUnpublished)
      .withTransformation(withoutTime)
      .noValue(noBars)
      .xField('variant')
      .orientation(VizOrientation.Horizontal)
      // The longest bar leaves no place for its figure: it would be cut, and say something else. The table has them.
      .showValue(VisibilityMode.Never)
      .groupWidth(0.6)
      .barWidth(0.9)
      .fillOpacity(80)
      .legend(legend())
      .tooltip(new VizTooltipOptionsBuilder().mode(TooltipDisplayMode.Multi).sort(SortOrder.None))
      .unit('prefix:×')
      .decimals(2)
      .axisLabel("requests/s, of the first row's")
      .axisSoftMin(0)
      .overrideByName('published_to_first', named('published', 'purple'))
      .overrideByName('measured_to_first', named('here', 'orange'))
  );
}

const named = (title: string, color: string): DynamicConfigValue[] => [
  { id: 'displayName', value: title },
  fixedColour(color),
];

/** Takes away what has no fields: filtered by name, none of it is left. */
const withoutEmptyAnswers = { id: 'filterFieldsByName', options: { include: { pattern: '.*' } } };

/** How one of the lines looks, found by its name (its alias). */
interface LineLook {
  name: string;
  /** Its name in the legend, where that is another one. */
  title?: string;
  color?: string;
  /** Points without a line between them. */
  points?: boolean;
  /** Thin, dashed and not in the legend. */
  dashed?: boolean;
  /** The space between this line and the one called so is filled, and neither line is drawn. */
  bandTo?: string;
  /** Drawn as nothing but the edge of a band. */
  edge?: boolean;
}

/** Fields over the real time. */
export function timeSeriesPanel({
  lines,
  looks = [],
  noLines,
  unit,
  decimals,
  axis,
  gapMs,
  lineAt,
  logarithmic,
  everyPoint,
  repeat,
  ...frame
}: Frame & {
  lines: readonly (Lines | Quotient)[];
  looks?: readonly LineLook[];
  /** What it says where there are none. */
  noLines: string;
  unit: string;
  decimals?: number;
  axis: string;
  /** A line breaks where nothing was measured for this long, as between the rounds of a variant. Without it no line breaks. */
  gapMs?: number;
  /** A dashed line across. */
  lineAt?: number;
  /** A scale of powers of ten; without it the axis begins at 0 unless there is a line across. */
  logarithmic?: boolean;
  /** Points are drawn however close they lie; without it only where lines leave space for them. */
  everyPoint?: boolean;
  repeat?: Repeat;
}): timeseries.PanelBuilder {
  const { queries, names } = lineQueries(lines);
  const builder = framed(new timeseries.PanelBuilder(), frame, queries, repeat)
    .noValue(noLines)
    .legend(legend())
    .tooltip(
      new VizTooltipOptionsBuilder().mode(TooltipDisplayMode.Multi).sort(SortOrder.Descending),
    )
    .colorScheme(new FieldColorBuilder().mode(FieldColorModeId.PaletteClassic))
    .lineWidth(2)
    .pointSize(6)
    .showPoints(everyPoint === true ? VisibilityMode.Always : VisibilityMode.Auto)
    .spanNulls(gapMs === undefined)
    .unit(unit)
    .axisLabel(axis);
  if (decimals !== undefined) builder.decimals(decimals);
  if (gapMs !== undefined) builder.insertNulls(gapMs);
  if (lineAt !== undefined) drawLine(builder, lineAt);
  else if (logarithmic !== true) builder.axisSoftMin(0);
  if (logarithmic === true)
    builder.scaleDistribution(
      new ScaleDistributionConfigBuilder().type(ScaleDistribution.Log).log(10),
    );
  // Where nothing was counted there is nothing to divide, of which Grafana warns beside an answer without any field.
  if (Object.keys(names).length > 0) builder.withTransformation(withoutEmptyAnswers);
  for (const [letter, name] of Object.entries(names))
    builder.overrideByQuery(letter, [{ id: 'displayName', value: name }]);
  for (const look of looks) builder.overrideByName(look.name, lineProperties(look));
  return builder;
}

function lineProperties({
  title,
  color,
  points,
  dashed,
  bandTo,
  edge,
}: LineLook): DynamicConfigValue[] {
  const properties: DynamicConfigValue[] = [];
  if (title !== undefined) properties.push({ id: 'displayName', value: title });
  if (color !== undefined) properties.push(fixedColour(color));
  if (points === true)
    properties.push(
      { id: 'custom.drawStyle', value: GraphDrawStyle.Points },
      { id: 'custom.pointSize', value: 8 },
    );
  if (dashed === true)
    properties.push(
      { id: 'custom.lineWidth', value: 1 },
      { id: 'custom.lineStyle', value: { fill: 'dash', dash: [4, 4] } },
      { id: 'custom.hideFrom', value: { legend: true, tooltip: false, viz: false } },
    );
  if (bandTo !== undefined)
    properties.push(
      { id: 'custom.fillBelowTo', value: bandTo },
      { id: 'custom.fillOpacity', value: 20 },
    );
  if (edge === true || bandTo !== undefined)
    properties.push(
      { id: 'custom.lineWidth', value: 0 },
      { id: 'custom.showPoints', value: VisibilityMode.Never },
    );
  return properties;
}

/** Answers per bucket of latency over the real time; series are buckets, called by their upper ends in seconds. */
export function heatmapPanel({
  lines,
  noCells,
  ...frame
}: Frame & { lines: Lines; noCells: string }): heatmap.PanelBuilder {
  return (
    framed(new heatmap.PanelBuilder(), frame, lineQueries([lines]).queries)
      .noValue(noCells)
      // Of an answer without any field Grafana's heatmap says "TypeError".
      .withTransformation(withoutEmptyAnswers)
      .calculate(false)
      .rowsFrame(
        new heatmap.RowsHeatmapOptionsBuilder().layout(HeatmapCellLayout.Le).value('answers'),
      )
      // Opacity of one colour is readable on light and on dark.
      .color(
        new heatmap.HeatmapColorOptionsBuilder()
          .mode(heatmap.HeatmapColorMode.Opacity)
          .fill('orange')
          .scale(heatmap.HeatmapColorScale.Exponential)
          .exponent(0.5)
          .steps(64),
      )
      .yAxis(
        new heatmap.YAxisConfigBuilder()
          .unit('s')
          .axisLabel('up to')
          .axisPlacement(AxisPlacement.Left),
      )
      .cellGap(0)
      .filterValues(new heatmap.FilterValueRangeBuilder().le(1e-9))
      .showLegend()
      .tooltip(
        new heatmap.HeatmapTooltipBuilder()
          .mode(TooltipDisplayMode.Single)
          .yHistogram(false)
          .showColorScale(true),
      )
  );
}

/** An XY chart whose version Grafana knows: without one it takes the options for those of before 11.1, and spoils them. */
export function forGrafana12(builder: xychart.PanelBuilder): Builder<Panel> {
  return { build: () => ({ ...builder.build(), pluginVersion: '12.0.0' }) };
}

export function fixedColour(color: string): DynamicConfigValue {
  return {
    id: 'color',
    value: new FieldColorBuilder().mode(FieldColorModeId.Fixed).fixedColor(color).build(),
  };
}

/** A dashed line across the panel. */
function drawLine(builder: timeseries.PanelBuilder, at: number): void {
  builder
    .thresholds(
      new ThresholdsConfigBuilder().mode(ThresholdsMode.Absolute).steps([
        { value: null, color: 'transparent' },
        { value: at, color: 'text' },
      ]),
    )
    .thresholdsStyle(new GraphThresholdsStyleConfigBuilder().mode(GraphThresholdsStyleMode.Dashed));
}
