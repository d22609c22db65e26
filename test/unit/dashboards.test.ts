import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { generatedFiles } from '../../dashboards/build.ts';
import { dashboardNames } from '../../dashboards/names.ts';
import { measurements } from '../../lib/store/schema.ts';
import {
  generatedFolder,
  isRow,
  panelsOf,
  queriesOf,
  queryVariablesOf,
  readDashboard,
  selectedColumns,
  targetsOf,
  type Dashboard,
  type Panel,
} from '../grafana.ts';

const files = readdirSync(generatedFolder);

it('commits what dashboards/build.ts makes (else: npm run -s dashboards)', () => {
  const committed = Object.fromEntries(
    files.map((name) => [name, readFileSync(new URL(name, generatedFolder), 'utf8')]),
  );
  expect(committed).toEqual(generatedFiles());
});

it.each([
  [
    'a measurement',
    '"bench_comparison"',
    '"bench_comparisons"',
    'panel 1: measurement bench_comparisons',
  ],
  ['a field', '"measured_rps"', '"measured_req_s"', 'panel 1: measured_req_s'],
  ['a tag', '"scenario" =', '"measured_rps" =', 'panel 1: measured_rps is no tag'],
])('catches a dashboard that asks for %s that is not written', (_what, written, asked, found) => {
  const text = JSON.stringify(readDashboard('comparison.json')).replaceAll(
    JSON.stringify(written).slice(1, -1),
    JSON.stringify(asked).slice(1, -1),
  );
  expect(unknownNames(JSON.parse(text) as Dashboard)).toContain(found);
});

describe.each(files)('%s', (file) => {
  const dashboard = readDashboard(file);
  const panels = panelsOf(dashboard);

  it('asks only for measurements, tags and fields that are written', () => {
    expect(queriesOf(dashboard).length).toBeGreaterThan(panels.length);
    expect(unknownNames(dashboard)).toEqual([]);
  });

  it('has a unit and a title of its own for every column of a table', () => {
    const tables = panels.filter((panel) => panel.type === 'table');
    expect(tables).not.toEqual([]);
    for (const panel of tables) {
      const columns = columnsOf(panel);
      // A name or title used twice would be matched by the other's override.
      const names = columns.flatMap(({ name, title }) => [...new Set([name, title])]);
      expect(names, panel.title).toEqual([...new Set(names)]);
      for (const column of columns)
        expect(column, panel.title).toMatchObject({
          title: expect.any(String),
          unit: expect.any(String),
        });
    }
  });

  it('has a unit and a label on every axis', () => {
    const others = panels.filter((panel) => panel.type !== 'table');
    expect(others).not.toEqual([]);
    for (const {
      title,
      type,
      fieldConfig: { defaults },
      options: { yAxis },
    } of others) {
      const [unit, label] =
        type === 'heatmap'
          ? [yAxis?.unit, yAxis?.axisLabel]
          : [defaults.unit, defaults.custom?.axisLabel];
      expect([title, unit, label]).toEqual([title, expect.any(String), expect.any(String)]);
    }
  });

  it('fits a laptop: 24 grid columns, no overlap, tables of no more than 1316 pixels', () => {
    // A closed row is one line; opened, it moves what is below it.
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
    for (const panel of panels.filter((one) => one.type === 'table')) {
      expect(pixelsOf(columnsOf(panel)), panel.title).toBeLessThanOrEqual(
        (1316 * panel.gridPos.w) / 24,
      );
    }
  });

  it('says why where a panel may have nothing to show, and has a dash for a figure that is not there', () => {
    // Scenarios and runs are offered where they have rows in these.
    const neverEmpty = panels.filter(
      ({ type, targets }) =>
        type === 'table' &&
        targets.every(
          (target) => 'query' in target && /FROM "bench_(comparison|run)"/.test(target.query),
        ),
    );
    for (const panel of panels.filter((one) => !neverEmpty.includes(one))) {
      const {
        title,
        fieldConfig: { defaults },
      } = panel;
      expect(defaults.noValue, title).toMatch(/^[A-Z].+\.$/);
    }
    // A cell without one of its own says what the panel says.
    for (const panel of panels.filter(({ type }) => type === 'table')) {
      for (const { name, noValue } of columnsOf(panel))
        expect([panel.title, name, noValue]).toEqual([panel.title, name, '–']);
    }
  });

  it('has panel ids that differ', () => {
    const ids = [...panels, ...dashboard.panels.filter(isRow)].map((panel) => panel.id);
    expect(new Set(ids).size).toBe(ids.length);
  });

  it('links to the others, with the scenario and the run that are picked', () => {
    const others = Object.values(dashboardNames)
      .filter(({ uid }) => uid !== dashboard.uid)
      .map(({ uid }) => `/d/${uid}`);
    expect(dashboard.links.map(({ url }) => url)).toEqual(others);
    for (const { type, includeVars, placement } of dashboard.links)
      expect({ type, includeVars, placement }).toEqual({
        type: 'link',
        includeVars: true,
        placement: undefined,
      });
    expect(dashboard.templating.list.map(({ name }) => name)).toEqual(
      expect.arrayContaining(['scenario', 'run']),
    );
  });

  it('asks the data source that is picked, of whatever name: first the one that is provisioned', () => {
    const provisioned = readFileSync(
      new URL('../../dashboards/provisioning/datasources/bakeoff.yaml', import.meta.url),
      'utf8',
    );
    const [name, uid] = ['name', 'uid'].map(
      (key) =>
        new RegExp(`^ +(?:- )?${key}: (\\S+)$`, 'm').exec(
          provisioned.slice(provisioned.indexOf('datasources:')),
        )?.[1],
    );
    // What others depend on comes before them.
    expect(dashboard.templating.list[0]).toMatchObject({
      type: 'datasource',
      name: 'datasource',
      query: 'influxdb',
      current: { text: name, value: uid },
    });
    const used = [
      ...panels.flatMap((panel) => [
        panel.datasource,
        ...targetsOf(panel).map((target) => target.datasource),
      ]),
      ...queryVariablesOf(dashboard).map((variable) => variable.datasource),
      ...(dashboard.annotations?.list ?? []).map((annotation) => annotation.datasource),
    ];
    for (const datasource of used)
      expect(datasource).toEqual({ type: 'influxdb', uid: '${datasource}' });
    const clicks = panels.flatMap(({ fieldConfig: { overrides } }) =>
      overrides.flatMap(({ properties }) =>
        properties
          .filter(({ id }) => id === 'links')
          .flatMap(({ value }) => value as { url: string }[]),
      ),
    );
    expect(clicks).not.toEqual([]);
    for (const { url } of clicks) expect(url).toMatch(/^\/d\/[\w-]+\?\$\{datasource:queryparam\}&/);
  });
});

function columnsOf(panel: Panel) {
  return targetsOf(panel)
    .flatMap((target) => selectedColumns(target.query))
    .map((name) => {
      const properties =
        panel.fieldConfig.overrides.find((override) => override.matcher.options === name)
          ?.properties ?? [];
      const valueOf = (id: string) => properties.find((property) => property.id === id)?.value;
      return {
        name,
        title: valueOf('displayName'),
        unit: valueOf('unit'),
        noValue: valueOf('noValue'),
        width: valueOf('custom.width') as number | undefined,
        minWidth: valueOf('custom.minWidth') as number | undefined,
      };
    });
}

/** How wide a table is at least: Grafana gives columns without a width equal shares of what is left, and none less than its minimum. */
function pixelsOf(columns: ReturnType<typeof columnsOf>) {
  const shares = columns.flatMap(({ width, minWidth = NaN }) =>
    width === undefined ? [minWidth] : [],
  );
  return (
    columns.reduce((sum, { width = 0 }) => sum + width, 0) + shares.length * Math.max(0, ...shares)
  );
}

/** What a dashboard's queries name that lib/store/schema.ts does not. */
function unknownNames(dashboard: Dashboard) {
  return queriesOf(dashboard).flatMap(({ from, query, alias }) => {
    const asked = /FROM "([^"]+)"/.exec(query)?.[1];
    const written = measurements.find((one) => one.measurement === asked);
    if (written === undefined) return [`${from}: measurement ${asked}`];
    const names = [...query.matchAll(/"([^"]+)"/g)]
      .map((match) => match[1] as string)
      .filter((name) => name !== asked);
    const tags = [
      ...[...query.matchAll(/"([^"]+)" (?:!?= '|=~)/g)].map((match) => match[1] as string),
      ...[...query.matchAll(/WITH KEY = "([^"]+)"/g)].map((match) => match[1] as string),
      ...[...(/ GROUP BY (.*)/.exec(query)?.[1] ?? '').matchAll(/"([^"]+)"/g)].map(
        (match) => match[1] as string,
      ),
      ...[...(alias ?? '').matchAll(/\$tag_(\w+)/g)].map((match) => match[1] as string),
    ];
    return [
      ...names
        .filter((name) => !written.tags.includes(name) && !(name in written.fields))
        .map((name) => `${from}: ${name}`),
      ...tags
        .filter((name) => !written.tags.includes(name))
        .map((name) => `${from}: ${name} is no tag`),
    ];
  });
}
