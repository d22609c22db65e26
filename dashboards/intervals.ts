// What was found at one glance: each variant's ratio to its baseline as a dot on its interval, beside what was published.
import type { Builder } from '@grafana/grafana-foundation-sdk/cog';
import {
  ScaleDistribution,
  ScaleDistributionConfigBuilder,
  TooltipDisplayMode,
  VizLegendOptionsBuilder,
  VizTooltipOptionsBuilder,
} from '@grafana/grafana-foundation-sdk/common';
import type { DynamicConfigValue, Panel } from '@grafana/grafana-foundation-sdk/dashboard';
import * as xychart from '@grafana/grafana-foundation-sdk/xychart';
import { benchComparison } from '../lib/features/influxdb/comparison-points.ts';
import { verdictColours } from './certainty.ts';
import { fixedColour, forGrafana12 } from './charts.ts';
import { framed, tableQuery, withoutTime } from './frame.ts';
import { pickedRun, select } from './influxql.ts';

/** The row of a variant: from -1 down, since Grafana's axes begin at the bottom. */
const row = '-1 - "position"';

/** Of what has no verdict: 'text', by which Grafana calls it elsewhere, is next to black on black here. */
const grey = '#8e8e8e';

/** What stands in a row: `ratio` says where, and the field of that name is the row. */
const inRows: readonly {
  name: string;
  title: string;
  ratio: string;
  looks: DynamicConfigValue[];
}[] = [
  // A dotted line, as it were: an XY chart has no lines of its own.
  {
    name: 'one',
    title: 'as fast as its baseline',
    ratio: '"position" * 0 + 1',
    looks: [points(4), fixedColour(grey)],
  },
  // Two points, and the line between them.
  ...['ci_low', 'ci_high'].map((end) => ({
    name: 'interval',
    title: '95 % interval',
    ratio: `"${end}"`,
    looks: [
      { id: 'custom.show', value: xychart.XYShowMode.Lines },
      { id: 'custom.lineWidth', value: 4 },
    ],
  })),
  { name: 'measured', title: 'measured', ratio: '"ratio"', looks: [points(12)] },
  {
    name: 'published',
    title: 'published',
    ratio: '"published_ratio"',
    looks: [
      points(11),
      { id: 'custom.pointShape', value: xychart.PointShape.Square },
      { id: 'custom.fillOpacity', value: 0 },
      { id: 'custom.pointStrokeWidth', value: 2 },
      fixedColour('purple'),
    ],
  },
];

function points(size: number): DynamicConfigValue {
  return { id: 'custom.pointSize.fixed', value: size };
}

/** Between the names of rows the axis says nothing: a date without any part of one. */
const nothing = 'time:[ ]';

/** Where the axis ends: above the first row, and below 0, where Grafana would draw what has no row. */
const aboveRows: DynamicConfigValue = { id: 'max', value: -0.4 };

/** The names of the rows, and what stands in them. */
function rowQueries() {
  const letterOf = (index: number): string => String.fromCharCode('B'.charCodeAt(0) + index);
  const asked = { from: benchComparison, where: pickedRun };
  const names = select({ columns: ['variant'], places: { row }, ...asked });
  const figures = inRows.map(({ name, ratio }, index) => {
    const places = { ratio, [name]: row };
    const query = select({ columns: ['variant', 'verdict'], places, ...asked });
    return tableQuery(query, letterOf(index));
  });
  return [tableQuery(names, 'A'), ...figures];
}

/** In the place of the two bar charts that an interval has no place in. */
export function intervalPanel(): Builder<Panel> {
  const builder = framed(
    new xychart.PanelBuilder(),
    {
      id: 2,
      title: 'Ratio to the baseline: measured ● with its interval, published □',
      description:
        "How many times the baseline's requests/s (at a constant rate its p99, with --metric what that named) each variant reached, here with its 95 % interval and in the article, on a logarithmic scale: the effect of a step where its baseline is " +
        'the row before it. Small dots are ×1. The colour is that of the verdict: green faster, red slower, blue the same, orange inconclusive or with a delay that was not held. An interval narrower than its dot is not in sight.',
      // Ten rows have their names beside them; of more every second has, and a tooltip all.
      grid: { x: 0, y: 19, w: 24, h: 11 },
    },
    rowQueries(),
  )
    .withTransformation(withoutTime)
    // The first query's rows are the names on the axis.
    .withTransformation({
      id: 'configFromData',
      options: {
        configRefId: 'A',
        mappings: [
          { fieldName: 'row', handlerKey: 'mappings.value', reducerId: 'allValues' },
          { fieldName: 'variant', handlerKey: 'mappings.text', reducerId: 'allValues' },
        ],
        applyTo: {
          id: 'byRegexp',
          options: `/^(${[...new Set(inRows.map(({ name }) => name))].join('|')})$/`,
        },
      },
    })
    .withTransformation({ id: 'merge', options: {} })
    // A frame for each row, or a line would go on to the next.
    .withTransformation({
      id: 'partitionByValues',
      options: { fields: ['variant', 'verdict'], keepFields: false, naming: { asLabels: true } },
    })
    .mapping(xychart.SeriesMapping.Auto)
    .noValue('This run has no figures yet.')
    // The title is the legend: one of its own would have all of them for each row.
    .legend(new VizLegendOptionsBuilder().showLegend(false))
    .tooltip(new VizTooltipOptionsBuilder().mode(TooltipDisplayMode.Single))
    .show(xychart.XYShowMode.Points)
    .pointShape(xychart.PointShape.Circle)
    .fillOpacity(100)
    .unit(nothing)
    // The names say all. Without a label Grafana leaves them too little space.
    .axisLabel(' ')
    .overrideByName('ratio', [
      { id: 'unit', value: 'prefix:×' },
      { id: 'custom.axisLabel', value: 'ratio to the baseline' },
      {
        id: 'custom.scaleDistribution',
        value: new ScaleDistributionConfigBuilder().type(ScaleDistribution.Log).log(2).build(),
      },
    ]);
  for (const [verdict, colour] of Object.entries({ ...verdictColours, none: grey }))
    builder.overrideByRegexp(`/^(interval|measured) .*verdict="${verdict}/`, [fixedColour(colour)]);
  builder.overrideByRegexp('/^(interval|measured) .*delay not held/', [
    fixedColour(verdictColours.inconclusive),
  ]);
  for (const [name, { title, looks }] of new Map(inRows.map((mark) => [mark.name, mark])))
    builder.overrideByName(name, [
      { id: 'displayName', value: title },
      aboveRows,
      { id: 'custom.axisGridShow', value: false },
      ...looks,
    ]);
  return forGrafana12(builder);
}
