import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { generatedFiles } from '../../dashboards/build.ts';
import { dashboardNames, generatedFile, type DashboardName } from '../../dashboards/names.ts';
import { measurements } from '../../lib/store/schema.ts';
import metrics from '../../xk6-loadgen/metrics.json' with { type: 'json' };
import {
  expressionsOf,
  generatedFolder,
  isRow,
  panelsOf,
  queriesOf,
  queryVariablesOf,
  readDashboard,
  selectedColumns,
  takesFrom,
  targetsOf,
  type Dashboard,
  type Panel,
  type Target,
} from '../grafana.ts';

const files = readdirSync(generatedFolder);

it('commits what dashboards/build.ts makes (else: npm run -s dashboards)', () => {
  const committed = Object.fromEntries(
    files.map((name) => [name, readFileSync(new URL(name, generatedFolder), 'utf8')]),
  );
  expect(committed).toEqual(generatedFiles());
});

it('has one file per dashboard', () => {
  const named = Object.entries(dashboardNames).map(([name, { uid, title }]) => ({
    file: generatedFile(name as DashboardName),
    uid,
    title,
  }));
  const read = files
    .map((file) => ({ file, ...readDashboard(file) }))
    .map(({ file, uid, title }) => ({ file, uid, title }));
  expect(read.toSorted((a, b) => a.file.localeCompare(b.file))).toEqual(
    named.toSorted((a, b) => a.file.localeCompare(b.file)),
  );
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

  it('overrides only columns and lines that are there', () => {
    for (const panel of panels) {
      const selected = [
        ...targetsOf(panel).flatMap(({ query, alias }) => [
          ...selectedColumns(query),
          ...placesOf(query),
          ...(alias === undefined ? [] : [alias]),
        ]),
        ...expressionsOf(panel).map(({ refId }) => refId),
      ];
      expect(selected, panel.title).toEqual(
        expect.arrayContaining(
          panel.fieldConfig.overrides
            .filter(({ matcher }) => matcher.id !== 'byRegexp')
            .map((override) => override.matcher.options),
        ),
      );
      if (panel.options.xField !== undefined) expect(selected).toContain(panel.options.xField);
    }
  });

  it('splits marks into frames by what they are called by, with the figure of the x axis first, in its own unit', () => {
    for (const {
      targets,
      transformations,
      pluginVersion,
      fieldConfig: { overrides },
      options,
    } of panels.filter(({ type, targets }) => type === 'xychart' && targets.length === 1)) {
      expect(options).toMatchObject({ mapping: 'auto', series: [] });
      // Older ones were others: Grafana would take these for them.
      expect(Number.parseFloat(pluginVersion ?? '0')).toBeGreaterThan(11.1);
      const [target, ...others] = targets as Target[];
      expect(others).toEqual([]);
      const [each, x, ...figures] = selectedColumns(target?.query ?? '');
      expect(transformations).toEqual([
        { id: 'organize', options: expect.objectContaining({ excludeByName: { Time: true } }) },
        {
          id: 'partitionByValues',
          options: { fields: [each], keepFields: false, naming: { asLabels: true } },
        },
      ]);
      const valueOf = (column: string | undefined, id: string): unknown =>
        overrides
          .find(({ matcher }) => matcher.options === column)
          ?.properties.find((property) => property.id === id)?.value;
      expect([valueOf(x, 'unit'), valueOf(x, 'custom.axisLabel')]).toEqual([
        expect.any(String),
        expect.any(String),
      ]);
      const names = figures.map((figure) => valueOf(figure, 'displayName'));
      for (const name of names)
        expect(name).toMatch(new RegExp(`^\\$\\{__field\\.labels\\.${each}\\}, \\S+$`));
      expect(new Set(names).size).toBe(figures.length);
    }
  });

  it('gives every line a name, and every query of a panel a letter of its own', () => {
    for (const panel of panels) {
      const {
        title,
        type,
        targets,
        fieldConfig: { overrides },
      } = panel;
      const letters = targets.map(({ refId }) => refId);
      expect(letters, title).toEqual([...new Set(letters)]);
      if (type !== 'timeseries' && type !== 'heatmap') continue;
      for (const { alias } of targetsOf(panel).filter(({ hide }) => hide !== true))
        expect(alias, title).toMatch(/\S/);
      for (const { refId } of expressionsOf(panel)) {
        const name = overrides
          .find(({ matcher }) => matcher.id === 'byFrameRefID' && matcher.options === refId)
          ?.properties.find(({ id }) => id === 'displayName')?.value;
        expect(name, title).toMatch(/\$\{__field\.labels\.\w+\}/);
      }
    }
  });

  it('shows counts of a second as what they are per second under load, and nothing else of them', () => {
    const counters = metrics.filter(({ type }) => type === 'counter').map(({ name }) => name);
    for (const panel of panels.filter(({ type }) => type === 'timeseries')) {
      const asked = new Map(
        targetsOf(panel).map(({ refId, query, hide }) => [
          refId,
          { hide, measurement: /FROM "([^"]+)"/.exec(query)?.[1] ?? '' },
        ]),
      );
      const quotients = expressionsOf(panel).map(({ type, datasource, expression }) => {
        expect([type, datasource]).toEqual(['math', { type: '__expr__', uid: '__expr__' }]);
        return /^\$(\w) \/ \$(\w)$/.exec(expression)?.slice(1) ?? [];
      });
      // Else it warns of what it did not divide where nothing was counted.
      if (quotients.length > 0)
        expect(panel.transformations).toContainEqual({
          id: 'filterFieldsByName',
          options: { include: { pattern: '.*' } },
        });
      for (const [, per = ''] of quotients)
        expect(asked.get(per), panel.title).toEqual({ hide: true, measurement: 'loadgen_seconds' });
      const counted = [...asked].filter(([, { measurement }]) => counters.includes(measurement));
      expect([...new Set(quotients.flat())].toSorted(), panel.title).toEqual(
        counted.map(([letter]) => letter).toSorted(),
      );
      expect(
        [...asked].filter(([, { hide }]) => hide === true),
        panel.title,
      ).toEqual(counted);
    }
  });

  it('fills bands between lines that are there', () => {
    for (const {
      title,
      fieldConfig: { overrides },
    } of panels) {
      const properties = overrides.flatMap((override) => override.properties);
      const names = properties.flatMap(({ id, value }) => (id === 'displayName' ? [value] : []));
      const bands = properties.flatMap(({ id, value }) =>
        id === 'custom.fillBelowTo' ? [value] : [],
      );
      expect(names, title).toEqual(expect.arrayContaining(bands));
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

  it('repeats panels for the values of a hidden variable that it has, all of them', () => {
    for (const { repeat } of panels.filter((panel) => panel.repeat !== undefined)) {
      const variable = dashboard.templating.list.find(({ name }) => name === repeat);
      expect(variable).toMatchObject({
        multi: true,
        includeAll: true,
        current: { value: '$__all' },
        hide: 2,
      });
      // A panel for each value, not one for all of them.
      expect(variable).not.toHaveProperty('allValue');
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

  it('opens a run that goes on up to now: a click names columns that are there, and no end that may be missing', () => {
    for (const panel of panels) {
      for (const { url } of panel.fieldConfig.overrides.flatMap(({ properties }) =>
        properties
          .filter(({ id }) => id === 'links')
          .flatMap(({ value }) => value as { url: string }[]),
      )) {
        const named = [...url.matchAll(/\$\{__data\.fields\.(\w+)/g)].map(
          (match) => match[1] as string,
        );
        expect(targetsOf(panel).flatMap(({ query }) => selectedColumns(query))).toEqual(
          expect.arrayContaining(named),
        );
        expect(url).toMatch(/&to=\$\{__data\.fields\.shown_to\}$/);
      }
    }
  });
});

it('asks in one request for all that Live run shows second by second', () => {
  const { panels } = JSON.parse(
    readFileSync(new URL('live.json', generatedFolder), 'utf8'),
  ) as Dashboard;
  expect(panels.map(({ title, ...panel }) => [title, takesFrom(panel as Panel)])).toEqual([
    ['Responses/s', undefined],
    ...[
      'Ratio so far',
      'CPU: 100 % is one core',
      "Latency of each second's answers",
      'Latency percentiles of each second',
      'Failures per second',
      'Connections',
      'Bytes/s',
    ].map((title) => [title, 1]),
    ['Runs', undefined],
  ]);
  const asked = (panels[0] as Panel).targets.map((target) =>
    'query' in target ? target.query : target.expression,
  );
  expect(asked).toEqual([...new Set(asked)]);
  expect(panelsOf(readDashboard('live.json')).map(({ targets }) => targets.length)).toEqual([
    3, 1, 2, 1, 1, 5, 1, 3, 1,
  ]);
});

it('says the answer of a row in its first columns, so that it is in sight on a narrow screen, in more than one line where it is a sentence', () => {
  const panelOf = (id: number): Panel =>
    panelsOf(readDashboard('comparison.json')).find((panel) => panel.id === id) as Panel;
  expect(
    columnsOf(panelOf(1))
      .slice(0, 5)
      .map(({ name }) => name),
  ).toEqual(['variant', 'published_ratio', 'effect', 'verdict', 'why']);
  expect(panelOf(31).gridPos.y).toBe(0);
  // What is beside Grafana's page on a phone's screen of 600 pixels, and on one of 1280.
  expect(pixelsOf(columnsOf(panelOf(1)).slice(0, 4))).toBeLessThanOrEqual(550);
  for (const id of [1, 6, 7]) expect(pixelsOf(columnsOf(panelOf(id)))).toBeLessThanOrEqual(1230);
  expect(
    panelOf(31).fieldConfig.overrides.find(({ matcher }) => matcher.options === 'text')?.properties,
  ).toContainEqual({ id: 'custom.wrapText', value: true });
});

it('draws a row for each variant, called by its name, in the colour of its verdict', () => {
  const {
    targets,
    transformations,
    pluginVersion,
    fieldConfig: { overrides },
  } = panelsOf(readDashboard('comparison.json')).find(({ id }) => id === 2) as Panel;
  expect(Number.parseFloat(pluginVersion ?? '0')).toBeGreaterThan(11.1);
  const [names, ...marks] = (targets as Target[]).map(({ refId, query }) => ({
    refId,
    places: placesOf(query),
  }));
  expect(names).toEqual({ refId: 'A', places: ['row'] });
  // Of all the same columns but the last, whose value is the row: else they would not be merged to one frame.
  expect(marks.map(({ places }) => places)).toEqual(
    ['one', 'interval', 'interval', 'measured', 'published'].map((name) => ['ratio', name]),
  );
  expect(transformations?.map(({ id }) => id)).toEqual([
    'organize',
    'configFromData',
    'merge',
    'partitionByValues',
  ]);
  const { applyTo, ...named } = transformations?.[1]?.options as {
    applyTo: { options: string };
    configRefId: string;
  };
  expect(named.configRefId).toBe('A');
  const pattern = (options: string): RegExp => new RegExp(options.slice(1, -1));
  for (const name of ['one', 'interval', 'measured', 'published'])
    expect(pattern(applyTo.options).test(name)).toBe(true);
  expect(pattern(applyTo.options).test('ratio')).toBe(false);
  // As Grafana calls a field of a frame that was split.
  const colourOf = (field: string, verdict: string): unknown =>
    overrides
      .filter(
        ({ matcher }) =>
          matcher.id === 'byRegexp' &&
          pattern(matcher.options).test(`${field} {variant="slower-log", verdict="${verdict}"}`),
      )
      .flatMap(({ properties }) =>
        properties.map(({ value }) => (value as { fixedColor: string }).fixedColor),
      )
      .at(-1);
  expect(
    [
      'faster',
      'slower',
      'same',
      'inconclusive',
      'none',
      'faster, delay not held',
      'faster, not final',
    ].map((verdict) => colourOf('interval', verdict)),
  ).toEqual(['green', 'red', 'blue', 'orange', '#8e8e8e', 'orange', 'green']);
  expect(colourOf('published', 'faster')).toBeUndefined();
});

it('has no gauge of a share that an article may not have printed, and leaves the space before a unit to Grafana', () => {
  const properties = files.flatMap((file) =>
    panelsOf(readDashboard(file)).flatMap(({ fieldConfig: { overrides, defaults } }) => [
      { column: '', id: 'unit', value: defaults.unit as unknown },
      ...overrides.flatMap(({ matcher, properties: own }) =>
        own.map((one) => ({ column: matcher.options, ...one })),
      ),
    ]),
  );
  const gauges = properties
    .filter(
      ({ id, value }) =>
        id === 'custom.cellOptions' && (value as { type: string }).type === 'gauge',
    )
    .map(({ column }) => column);
  expect(gauges).toEqual(['published_share', 'share']);
  for (const { id, value } of properties.filter((one) => one.id === 'unit'))
    expect([id, value]).not.toEqual([id, expect.stringMatching(/^\w+: /)]);
});

it('repeats effects per variant in Comparison, and histograms per variant in HTTP/2', () => {
  expect(
    files.flatMap((file) =>
      panelsOf(readDashboard(file)).flatMap(({ repeat }) =>
        repeat === undefined ? [] : [`${file} ${repeat}`],
      ),
    ),
  ).toEqual(['comparison.json compared', 'http2.json variant']);
});

it('refreshes the live dashboard every two seconds, and asks for no more than its time range then', () => {
  const { refresh, timepicker, ...live } = readDashboard('live.json');
  expect([refresh, timepicker?.refresh_intervals[0]]).toEqual(['2s', '2s']);
  for (const { from, query } of queriesOf(live))
    expect([from, query.includes('$timeFilter')]).toEqual([
      from,
      !from.startsWith('variable') && !query.includes(' LIMIT '),
    ]);
});

it('picks one run in every dashboard: whoever goes on to another finds it there', () => {
  for (const file of files) {
    for (const { name, multi, includeAll } of queryVariablesOf(readDashboard(file)).filter(
      ({ name }) => name === 'scenario' || name === 'run',
    )) {
      expect([file, name, multi, includeAll]).toEqual([file, name, false, false]);
    }
  }
  // The newest: its name starts with its time.
  expect(queryVariablesOf(readDashboard('live.json'))[0]).toMatchObject({
    name: 'run',
    sort: 2,
    query: 'SHOW TAG VALUES FROM "loadgen_requests" WITH KEY = "run"',
  });
});

it("has the query of the live dashboard's marks where Grafana 12 looks for it, and where those before it did", () => {
  const marks = readDashboard('live.json').annotations?.list ?? [];
  expect(marks).toHaveLength(1);
  for (const { query, target, filter } of marks) {
    expect(target).toMatchObject({ query, fromAnnotations: true, textColumn: 'label' });
    expect(
      filter?.ids.map(
        (id) => panelsOf(readDashboard('live.json')).find((panel) => panel.id === id)?.title,
      ),
    ).toEqual(['Responses/s']);
  }
});

function columnsOf(panel: Panel): {
  name: string;
  title: unknown;
  unit: unknown;
  noValue: unknown;
  width: number | undefined;
  minWidth: number | undefined;
}[] {
  return targetsOf(panel)
    .flatMap((target) => selectedColumns(target.query))
    .map((name) => {
      const properties =
        panel.fieldConfig.overrides.find((override) => override.matcher.options === name)
          ?.properties ?? [];
      const valueOf = (id: string): unknown =>
        properties.find((property) => property.id === id)?.value;
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
function pixelsOf(columns: ReturnType<typeof columnsOf>): number {
  const shares = columns.flatMap(({ width, minWidth = NaN }) =>
    width === undefined ? [minWidth] : [],
  );
  return (
    columns.reduce((sum, { width = 0 }) => sum + width, 0) + shares.length * Math.max(0, ...shares)
  );
}

/** The names by which a query places marks. */
function placesOf(query: string): string[] {
  return [...query.matchAll(/ AS (\w+)/g)].map((match) => match[1] as string);
}

/** What a dashboard's queries name that lib/store/schema.ts does not. */
function unknownNames(dashboard: Dashboard): string[] {
  return queriesOf(dashboard).flatMap(({ from, query, alias }): string[] => {
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
