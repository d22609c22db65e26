// What the dashboards share: variables, links to each other, rows, and the list of runs.
import {
  CustomVariableBuilder,
  DashboardBuilder,
  DashboardCursorSync,
  DashboardLinkType,
  DatasourceVariableBuilder,
  QueryVariableBuilder,
  RowBuilder,
  VariableHide,
  VariableRefresh,
  VariableSort,
  type DashboardLink,
  type Panel,
} from '@grafana/grafana-foundation-sdk/dashboard';
import type { Builder } from '@grafana/grafana-foundation-sdk/cog';
import { benchComparison } from '../lib/features/influxdb/comparison-points.ts';
import { benchRun } from '../lib/features/influxdb/schema.ts';
import { datasource } from './frame.ts';
import {
  pickedRun,
  select,
  tagValues,
  tagValuesByTime,
  type VariableName,
  type Where,
} from './influxql.ts';
import { dashboardNames, type DashboardName } from './names.ts';
import { colours, tablePanel } from './tables.ts';

/** Where the figures are: that of dashboards/provisioning, or where it is missing the first InfluxDB that Grafana has. */
const source = new DatasourceVariableBuilder('datasource')
  .label('Data source')
  .type('influxdb')
  .current({ text: 'bakeoff', value: 'bakeoff-influxdb' });

/**
 * A dashboard without panels, with links to the others that keep the data source, the scenario and the run. Of the classic schema: that
 * of rows on conditions Grafana 12 shows as a classic one with a warning, and imports not at all, unless its feature toggle is set.
 */
export function board(
  name: DashboardName,
  {
    description,
    from,
    variables,
    keepsTime = true,
  }: {
    description: string;
    variables: readonly (QueryVariableBuilder | CustomVariableBuilder)[];
    /** Its time range as it opens. */
    from: string;
    /** Whether the others open at its time range: not where that is one of weeks. */
    keepsTime?: boolean;
  },
): DashboardBuilder {
  const { uid, title } = dashboardNames[name];
  const builder = new DashboardBuilder(title)
    .uid(uid)
    .description(description)
    .tags(['bakeoff'])
    .editable()
    .timezone('browser')
    .tooltip(DashboardCursorSync.Off)
    .time({ from, to: 'now' })
    .variables([source, ...variables]);
  // Not used there: the links to Articles keep it.
  if (name !== 'articles') builder.withVariable(articleOfScenario);
  for (const [other, { uid: to, title: text }] of Object.entries(dashboardNames)) {
    // History is about weeks, Articles about the newest runs, the others about a run.
    const hasSameTime = keepsTime && other !== 'history' && other !== 'articles';
    if (other !== name) builder.link(link(text, `/d/${to}`, hasSameTime));
  }
  return builder;
}

/** The article whose scenario is picked; empty for others. */
const articleOfScenario = variable({
  name: 'article',
  query: tagValues(benchComparison, 'article', { equal: { scenario: 'scenario' } }),
  follows: true,
});

/** What tables leave out of a run that no article has figures of; empty for others. */
export const unpublished = variable({
  name: 'unpublished',
  query: select({ columns: ['unpublished'], from: benchRun, where: pickedRun }),
});

/** A link that is always in sight: the SDK's builder puts every one into a menu. */
function link(title: string, url: string, keepTime: boolean): Builder<DashboardLink> {
  const options = {
    tooltip: '',
    tags: [],
    asDropdown: false,
    targetBlank: false,
    includeVars: true,
  };
  return {
    build: () => ({
      title,
      type: DashboardLinkType.Link,
      icon: 'dashboard',
      url,
      keepTime,
      ...options,
    }),
  };
}

interface VariableOptions {
  name: VariableName;
  query: string;
  /** Without one it is not to be seen: it is for links, or panels are repeated for its values. */
  label?: string;
  newestFirst?: boolean;
  /** The choices stand as the query of tagValuesByTime answers them. */
  byTime?: boolean;
  /** More than one value may be picked, and all are at first. */
  multi?: boolean;
  /** "All" may be picked, and is at first. */
  all?: boolean;
  /** It changes with another variable only. */
  follows?: boolean;
}

/** Whether scenarios of articles are offered, all others, or both: a pattern of the tag `article`. */
export const kindVariable = new CustomVariableBuilder('kind')
  .label('Show')
  .values('all : .*, articles : .+, own comparisons : ()')
  .current({ text: 'all', value: '.*' })
  .allowCustomValue(false);

/** Of more runs Grafana would get lists that take longer than a panel. */
const mostRuns = 500;

/** Picks a scenario of the newest runs with a whole round. The newest run's comes first, and is picked if an address names none. */
export function scenarioVariable(where: Where<typeof benchRun>): QueryVariableBuilder {
  const query = tagValuesByTime({
    from: benchRun,
    tag: 'scenario',
    beside: 'rounds',
    where: { ...where, above0: ['rounds'] },
    newest: mostRuns,
  });
  return variable({ name: 'scenario', label: 'Scenario', query, byTime: true });
}

/** A variable whose choices are in the database. It is asked anew with each change of the time range, and each refresh, unless it follows from another alone. */
export function variable({
  name,
  query,
  label,
  newestFirst,
  byTime,
  multi,
  all,
  follows,
}: VariableOptions): QueryVariableBuilder {
  const builder = new QueryVariableBuilder(name)
    .datasource(datasource)
    .query(query)
    .refresh(
      follows === true ? VariableRefresh.OnDashboardLoad : VariableRefresh.OnTimeRangeChanged,
    )
    .allowCustomValue(false);
  // Whatever is more than digits: the figures beside the values are not, and every name is (givenName).
  if (byTime === true) builder.sort(VariableSort.Disabled).regex('/\\D/');
  // A run's name starts with its time.
  else
    builder.sort(
      newestFirst === true ? VariableSort.AlphabeticalDesc : VariableSort.AlphabeticalAsc,
    );
  if (label === undefined) builder.hide(VariableHide.HideVariable);
  else builder.label(label);
  if (multi === true) builder.multi(true);
  if (multi === true || all === true)
    builder.includeAll(true).current({ text: 'All', value: '$__all' });
  // Not the list of all values, which grows with the history. Panels that are repeated need the list.
  if (all === true) builder.allValue('.*');
  return builder;
}

/** A row that is closed until somebody wants it; its panels ask nothing before. */
export function closedRow(
  id: number,
  title: string,
  y: number,
  panels: readonly Builder<Panel>[],
): RowBuilder {
  const row = openRow(id, title, y).collapsed(true);
  for (const panel of panels) row.withPanel(panel);
  return row;
}

/** A heading over the panels that follow. */
export function openRow(id: number, title: string, y: number): RowBuilder {
  return new RowBuilder(title).id(id).gridPos({ x: 0, y, w: 24, h: 1 });
}

/** The newest runs; a click on one shows it in a dashboard, at its time. */
export function runsPanel({
  id,
  y,
  opens,
  where,
  title,
}: {
  id: number;
  y: number;
  opens: DashboardName;
  where: Where<typeof benchRun>;
  title: string;
}): ReturnType<typeof tablePanel<typeof benchRun>> {
  const kept = opens === 'articles' ? '&${article:queryparam}' : '';
  const url =
    `/d/${dashboardNames[opens].uid}?\${datasource:queryparam}${kept}&var-scenario=\${__data.fields.scenario}&var-run=\${__data.fields.run}` +
    '&from=${__data.fields.started.numeric}&to=${__data.fields.shown_to}';
  return tablePanel({
    id,
    title,
    description:
      'The newest 100 runs, newest first. A click on a run shows it, at its time. "lost" are requests that k6 counted ' +
      'and the database does not hold; "report" is where its page was written. A run that was ended before its first whole round has no table to show.',
    grid: { x: 0, y, w: 24, h: 7 },
    from: benchRun,
    where,
    newest: 100,
    columns: [
      {
        name: 'run',
        width: 330,
        link: { title: `Show this run in ${dashboardNames[opens].title}`, url },
      },
      {
        name: 'state',
        width: 80,
        coloured: true,
        mappings: [colours({ complete: 'green', partial: 'orange', running: 'blue' })],
      },
      // Whole beside Grafana's menu too, on more than one line.
      { name: 'title', title: 'what it compares', minWidth: 290, wrapped: true },
      { name: 'started', width: 160 },
      { name: 'rounds', width: 68 },
      { name: 'requests', width: 85 },
      { name: 'lost', width: 55 },
      { name: 'report', width: 190 },
      // A run is called by its scenario too. While it goes on it has no end that a link could name.
      { name: 'scenario', width: 0, hidden: true },
      { name: 'shown_to', width: 0, hidden: true },
    ],
  });
}
