import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { generatedFiles } from '../../../../dashboards/build.ts';
import { dashboardNames } from '../../../../dashboards/names.ts';
import { measurements } from '../schema.ts';
import {
  generatedFolder,
  isRow,
  panelsOf,
  readDashboard,
  selectedColumns,
  targetsOf,
  type Panel,
} from '../../../../test/grafana.ts';

const files = readdirSync(generatedFolder);

it('is committed as generated (npm run -s dashboards)', () => {
  const committed = Object.fromEntries(
    files.map((name) => [name, readFileSync(new URL(name, generatedFolder), 'utf8')]),
  );
  expect(committed).toEqual(generatedFiles());
});

const dashboards = files.map((file) => {
  const dashboard = readDashboard(file);
  const panels = panelsOf(dashboard);
  return { file, dashboard, panels, tables: panels.filter(({ type }) => type === 'table') };
});

describe.each(dashboards)('figures of $file', ({ tables }) => {
  it('has a unit for every figure, and unique titles', () => {
    expect(tables).not.toEqual([]);
    for (const panel of tables) {
      const columns = columnsOf(panel);
      // Overrides match by name, so names and titles must be unique.
      const names = columns.flatMap(({ name, title }) => [...new Set([name, title])]);
      expect(names, panel.title).toEqual([...new Set(names)]);
      for (const { name, written, unit } of columns) {
        const shown = `${panel.title}, ${name}`;
        if (written === 'text') expect(unit, shown).toBeUndefined();
        else expect(unit, shown).toEqual(expect.any(String));
        // 7.41 µs must not appear as 740.90 %.
        if (unit === 'percentunit') expect(written, shown).toBe('ratio');
      }
    }
  });
});

describe.each(dashboards)('$file as a whole', ({ dashboard, panels, tables }) => {
  it('fits a laptop without overlap', () => {
    // A collapsed row takes one line; when opened, it moves the rows below.
    const groups = [dashboard.panels, ...dashboard.panels.filter(isRow).map((row) => row.panels)];
    for (const group of groups) {
      const cells = group.flatMap(({ gridPos: { x, y, w, h } }) => {
        expect(x + w).toBeLessThanOrEqual(24);
        return Array.from(
          { length: w * h },
          (_, cell) => `${x + (cell % w)},${y + Math.floor(cell / w)}`,
        );
      });
      expect(new Set(cells).size).toBe(cells.length);
    }
    for (const panel of tables)
      expect((24 * pixelsOf(columnsOf(panel))) / panel.gridPos.w).toBeLessThanOrEqual(1316);
  });

  it('says which data is missing', () => {
    // The variables list scenarios and runs that have rows in these measurements.
    const neverEmpty = tables.filter((panel) =>
      targetsOf(panel).every(({ query }) => /FROM "bench_(comparison|run)"/.test(query)),
    );
    for (const { title, fieldConfig } of panels.filter((panel) => !neverEmpty.includes(panel)))
      expect(fieldConfig.defaults.noValue, title).toMatch(/^[A-Z].+\.$/);
    // A cell without a text of its own shows the panel's text.
    for (const panel of tables)
      expect(panel.fieldConfig.overrides, panel.title).toContainEqual({
        matcher: { id: 'byRegexp', options: '/.*/' },
        properties: [{ id: 'noValue', value: '–' }],
      });
  });

  it('links to the others', () => {
    const others = Object.values(dashboardNames)
      .filter(({ uid }) => uid !== dashboard.uid)
      .map(({ uid }) => `/d/${uid}`);
    expect(dashboard.links.map(({ url }) => url)).toEqual(others);
    for (const { type, includeVars, placement } of dashboard.links)
      expect([type, includeVars, placement]).toEqual(['link', true, undefined]);
    const names = dashboard.templating.list.map(({ name }) => name);
    expect(names).toEqual(expect.arrayContaining(['scenario', 'run']));
  });

  it('queries the selected data source', () => {
    const provisioned = new URL('../provisioning/datasources/bakeoff.yaml', generatedFolder);
    const { datasources } = parse(readFileSync(provisioned, 'utf8')) as {
      datasources: [{ name: string; uid: string }];
    };
    const [{ name: text, uid: value }] = datasources;
    // A variable comes before the variables that depend on it.
    const [first] = dashboard.templating.list;
    const type = 'datasource';
    expect(first).toMatchObject({ type, name: type, query: 'influxdb', current: { text, value } });
    const asking = [
      ...panels.flatMap((panel) => [panel, ...targetsOf(panel)]),
      ...dashboard.templating.list.filter(({ type }) => type === 'query'),
      ...(dashboard.annotations?.list ?? []),
    ];
    for (const { datasource } of asking)
      expect(datasource).toEqual({ type: 'influxdb', uid: '${datasource}' });
    const clicks = JSON.stringify(panels).match(/"url":"[^"]*/g) ?? [];
    expect(clicks).not.toEqual([]);
    for (const url of clicks) expect(url).toMatch(/"\/d\/[\w-]+\?\$\{datasource:queryparam\}&/);
  });
});

it('opens with at most ten panels, and has at most 200 kB', () => {
  const texts = files.map((file) => readFileSync(new URL(file, generatedFolder), 'utf8'));
  expect(texts.join('').length).toBeLessThan(200_000);
  for (const file of files)
    expect(readDashboard(file).panels.filter((panel) => !isRow(panel)).length).toBeLessThanOrEqual(
      10,
    );
});

/** The columns of a table, with the unit in the catalogue and the unit on the panel. */
function columnsOf(panel: Panel) {
  const titles = Object.assign(
    {},
    ...(panel.transformations ?? []).map(({ options }) => options),
  ) as { renameByName?: Record<string, string> };
  return targetsOf(panel).flatMap(({ query }) => {
    const from = /FROM "(\w+)"/.exec(query)?.[1];
    const fields = measurements.find(({ measurement }) => measurement === from)?.fields;
    return selectedColumns(query).map((name) => {
      const valueOf = (id: string) =>
        panel.fieldConfig.overrides
          .filter(({ matcher: { options } }) =>
            typeof options === 'string' ? options === name : options.names.includes(name),
          )
          .flatMap(({ properties }) => properties)
          .find((property) => property.id === id)?.value;
      return {
        name,
        title: titles.renameByName?.[name] ?? name,
        written: fields?.[name]?.unit ?? 'text',
        unit: valueOf('unit'),
        width: valueOf('custom.width') as number | undefined,
        minWidth: valueOf('custom.minWidth') as number | undefined,
      };
    });
  });
}

/** The minimum width: columns without a width share the rest equally, but none is below its minimum. */
function pixelsOf(columns: ReturnType<typeof columnsOf>) {
  const shares = columns.flatMap(({ width, minWidth = NaN }) =>
    width === undefined ? [minWidth] : [],
  );
  return (
    columns.reduce((sum, { width = 0 }) => sum + width, 0) + shares.length * Math.max(0, ...shares)
  );
}
