// Emulates Grafana's handling of a dashboard: its queries with variables filled in.
import { readFileSync } from 'node:fs';

interface Asked {
  query: string;
  datasource: { type: string; uid: string };
}

interface Target extends Asked {
  refId: string;
  hide?: boolean;
}

interface Expression {
  refId: string;
  expression: string;
}

export interface Panel {
  id: number;
  type: string;
  title: string;
  gridPos: { x: number; y: number; w: number; h: number };
  datasource: Asked['datasource'];
  targets: (Target | Expression)[];
  fieldConfig: {
    defaults: {
      unit?: string;
      decimals?: number;
      noValue?: string;
      custom?: { axisLabel?: string };
    };
    overrides: {
      matcher: { id: string; options: string | { names: string[] } };
      properties: { id: string; value: unknown }[];
    }[];
  };
  options: { yAxis?: { unit?: string; axisLabel?: string } };
  /** Variable that repeats the panel, once per value. */
  repeat?: string;
  transformations?: { id: string; options: unknown }[];
}

interface Row extends Pick<Panel, 'id' | 'title' | 'gridPos'> {
  type: 'row';
  collapsed: boolean;
  panels: Panel[];
}

interface Variable extends Asked {
  type: 'query' | 'custom' | 'datasource';
  name: string;
  sort: number;
  regex?: string;
}

export interface Dashboard {
  uid: string;
  links: { type: string; url: string; includeVars: boolean; placement?: string }[];
  panels: (Panel | Row)[];
  templating: { list: Variable[] };
  annotations?: { list?: Asked[] };
}

export const generatedFolder = new URL('../dashboards/generated/', import.meta.url);

/** Reads a committed dashboard, e.g. 'comparison.json'. A panel that reuses another panel's data gets a copy of its targets. */
export function readDashboard(file: string): Dashboard {
  const dashboard = JSON.parse(readFileSync(new URL(file, generatedFolder), 'utf8')) as Dashboard;
  const asking = new Map(
    panelsOf(dashboard).map(({ id, targets, datasource }) => [id, { targets, datasource }]),
  );
  for (const panel of panelsOf(dashboard)) {
    const taken = panel.transformations?.find(({ id }) => id === 'filterByRefId')?.options as
      { include: string } | undefined;
    if (taken === undefined) continue;
    const { panelId = panel.id } = panel.targets[0] as { panelId?: number };
    Object.assign(panel, takenOf(asking.get(panelId), new RegExp(taken.include.slice(1, -1))));
  }
  return dashboard;
}

/** Targets of a panel that remain after a filter by letter, with the targets of their expressions. */
function takenOf(
  asking: Pick<Panel, 'targets' | 'datasource'> | undefined,
  filter: RegExp,
): Pick<Panel, 'targets' | 'datasource'> {
  if (asking === undefined) throw new Error('a panel takes its lines from one that is not there');
  const shown = asking.targets.filter(({ refId }) => filter.test(refId));
  const letters = shown.flatMap((target) => [
    target.refId,
    ...('expression' in target
      ? [...target.expression.matchAll(/\$(\w)/g)].map((match) => match[1])
      : []),
  ]);
  return {
    datasource: asking.datasource,
    targets: asking.targets.filter(({ refId }) => letters.includes(refId)),
  };
}

export function isRow(panel: Panel | Row): panel is Row {
  return panel.type === 'row';
}

export function panelsOf(dashboard: Dashboard): Panel[] {
  return dashboard.panels.flatMap((panel) => (isRow(panel) ? panel.panels : [panel]));
}

export function targetsOf(panel: Panel): Target[] {
  return panel.targets.filter((target): target is Target => 'query' in target);
}

export function selectedColumns(query: string): string[] {
  const list = /^SELECT (.*?) FROM /.exec(query)?.[1] ?? '';
  return [...list.matchAll(/"([^"]+)"/g)].map((match) => match[1] as string);
}

/** The selected values in a dashboard, and the time range. '.*' means "All". */
export interface Picked {
  variables: Readonly<Record<string, string>>;
  fromMs: number;
  toMs: number;
}

/**
 * Fills in template variables and the time range like Grafana: `${name:raw}` becomes the value, `${name:regex}` the value escaped
 * for a regular expression, except for "All". Throws if a variable remains.
 */
export function interpolate(query: string, { variables, fromMs, toMs }: Picked): string {
  const filled = query
    .replace(/\$\{(\w+):(raw|regex)\}/g, (text, name: string, format: string) => {
      const value = variables[name];
      return value === undefined || format === 'raw' || value === '.*'
        ? (value ?? text)
        : value.replaceAll(/[\\^$*+?.()|[\]{}/]/g, '\\$&');
    })
    .replaceAll(
      '$timeFilter',
      () => `time >= ${Math.floor(fromMs)}ms and time <= ${Math.ceil(toMs)}ms`,
    );
  if (filled.replaceAll('$/', '').includes('$')) throw new Error(`not filled in: ${filled}`);
  return filled;
}

/** A variable's choices in Grafana's order; the first is the default. */
export function sorted(variable: Variable, values: readonly string[]): string[] {
  if (variable.sort === 0) return [...values];
  const ascending = [...values].sort((a, b) => a.localeCompare(b));
  if (variable.sort === 1) return ascending;
  if (variable.sort === 2) return ascending.reverse();
  throw new Error(`variable ${variable.name}: sort ${variable.sort} is not known here`);
}
