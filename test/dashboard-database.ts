// A real influxd with the queries that Grafana would send for the panels and variables of a dashboard.
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect } from 'vitest';
import { generatedFile, type DashboardName } from '../dashboards/names.ts';
import type { Result } from '../lib/result/result.ts';
import { projectRoot } from '../lib/setup/paths.ts';
import { type Store, openStore } from '../lib/features/influxdb/store.ts';
import { database } from '../lib/influx/address.ts';
import type { Cell } from './dashboard-figures.ts';
import { accessUrl, authorization } from './fixtures/influx-access.ts';
import { keptRounds, makeHome, type Home } from './scenario-run.ts';
import {
  interpolate,
  panelsOf,
  readDashboard,
  selectedColumns,
  sorted,
  targetsOf,
  type Dashboard,
  type Picked,
} from './grafana.ts';

export interface Answer {
  tags: Record<string, string> | undefined;
  rows: Record<string, Cell>[];
}

export type Choice = Pick<Result, 'scenario' | 'run' | 'startedAt' | 'endedAt' | 'article'> & {
  variant?: string;
  /** Filter for scenarios in the picker: a pattern for the article. */
  kind?: string;
};

export function pickedOf(choice: Choice): Picked {
  const { scenario, run, variant = '', kind = '.*', article, startedAt, endedAt } = choice;
  return {
    variables: {
      article: article?.id ?? '',
      kind,
      scenario,
      run,
      variant,
      compared: variant,
      variants: '.*',
    },
    fromMs: Date.parse(startedAt),
    toMs: Date.parse(endedAt),
  };
}

const intervalTitle = 'Ratio to the baseline: measured ● with its interval, published □';

export class DashboardDatabase {
  readonly store: Store;
  readonly #home: Home;

  private constructor(store: Store, home: Home) {
    this.store = store;
    this.#home = home;
  }

  static async open(): Promise<DashboardDatabase> {
    const home = await makeHome(['influxd', 'k6', 'nginx', 'h2o']);
    const influxdBinary = home.env['INFLUXD_BIN'] as string;
    const folder = join(home.folder, 'dashboards');
    return new DashboardDatabase(await openStore({ influxdBinary, folder }), home);
  }

  async close(): Promise<void> {
    await this.store.close();
    this.#home.remove();
  }

  /** Runs a scenario with this database, and deletes the series of dropped rounds. */
  async run(args: readonly string[]): Promise<Result> {
    const to = ['--json', '--influx', accessUrl(this.store.influx)];
    const results = join(this.#home.folder, 'results');
    const { stdout } = await promisify(execFile)(
      process.execPath,
      ['bin/bakeoff.mjs', 'scenario', ...args, ...to, '--out', results],
      {
        cwd: projectRoot,
        maxBuffer: 2 ** 26,
        timeout: 120_000,
        env: { ...process.env, ...this.#home.env },
      },
    );
    const result = JSON.parse(stdout) as Result;
    const kept = keptRounds(result);
    for (let round = 1; round < Math.max(...kept); round++)
      if (!kept.includes(round))
        await this.store.query(
          `DROP SERIES WHERE "run" = '${result.run}' AND "round" = '${round}'`,
        );
    return result;
  }

  /** Sends one query like Grafana: GET with epoch=ms. */
  async ask(query: string): Promise<Answer[]> {
    const parameters = new URLSearchParams({ db: database, epoch: 'ms', q: query });
    const response = await fetch(`${this.store.influx.url}/query?${parameters}`, {
      headers: { Authorization: authorization(this.store.influx) },
    });
    interface Series {
      tags?: Record<string, string>;
      columns: string[];
      values: Cell[][];
    }
    const answer = (await response.json()) as {
      error?: string;
      results?: [{ error?: string; series?: Series[] }];
    };
    const { error = answer.error, series = [] } = answer.results?.[0] ?? {};
    if (error !== undefined) throw new Error(`${query}: ${error}`);
    return series.map(({ tags, columns, values }) => ({
      tags,
      rows: values.map((value) =>
        Object.fromEntries(columns.map((column, index) => [column, value[index] ?? null])),
      ),
    }));
  }

  /** Returns the data of a panel: results of queries and expressions, in order. */
  async panel(name: DashboardName, title: string, choice: Choice): Promise<Answer[][]> {
    const panel = panelOf(name, title);
    const answers = new Map<string, Answer[]>();
    for (const { refId, query } of targetsOf(panel))
      answers.set(refId, await this.ask(interpolate(query, pickedOf(choice))));
    return panel.targets.flatMap((target) => {
      if ('expression' in target) return [divided(target.expression, answers)];
      return target.hide === true ? [] : [answers.get(target.refId) ?? []];
    });
  }

  async dividends(name: DashboardName, title: string, choice: Choice): Promise<Answer[][]> {
    const panel = panelOf(name, title);
    const letters = panel.targets.map((target) => 'expression' in target && target.expression[1]);
    const dividends = targetsOf(panel).filter(({ refId }) => letters.includes(refId));
    return Promise.all(
      dividends.map(({ query }) => this.ask(interpolate(query, pickedOf(choice)))),
    );
  }

  async rows(name: DashboardName, title: string, choice: Choice): Promise<Record<string, Cell>[]> {
    const answers = await this.panel(name, title, choice);
    expect(answers, `queries and series of ${title}`).toEqual([[expect.anything()]]);
    const columns = columnsOf(name, title);
    return (answers[0]?.[0]?.rows ?? []).map(({ time: _time, ...row }) => {
      expect(Object.keys(row), title).toEqual(columns);
      return row;
    });
  }

  /** What the database has of a run in a measurement, in order. */
  async stored(
    measurement: string,
    columns: readonly string[],
    { run }: Pick<Result, 'run'>,
  ): Promise<Record<string, Cell>[]> {
    const names = columns.map((column) => `"${column}"`).join(', ');
    const answers = await this.ask(`SELECT ${names} FROM "${measurement}" WHERE "run" = '${run}'`);
    return answers.flatMap(({ rows }) => rows.map(({ time: _time, ...row }) => row));
  }

  async intervals(
    choice: Choice,
  ): Promise<{ names: Record<string, Cell>[]; marks: Record<string, Cell>[] }> {
    const [names = [], ...marks] = (await this.panel('comparison', intervalTitle, choice)).map(
      (answers) => answers.flatMap(({ rows }) => rows.map(({ time: _, ...row }) => row)),
    );
    return { names, marks: marks.flat().filter(({ ratio }) => ratio !== null) };
  }

  /** Titles of panels without data for a run; each must have a text that says why. */
  async emptyPanels(name: DashboardName, choice: Choice): Promise<string[]> {
    const empty: string[] = [];
    for (const panel of panelsOf(dashboardOf(name))) {
      const { title, repeat } = panel;
      // If a variable has no values, Grafana shows a single panel with an empty value.
      const values = repeat === undefined ? [] : await this.choices(name, repeat, choice);
      const answers = await Promise.all(
        (values.length === 0 ? [''] : values).map((variant) =>
          this.panel(name, title, { ...choice, variant }),
        ),
      );
      if (answers.flat(2).some(({ rows }) => rows.length > 0)) continue;
      expect(panel.fieldConfig.defaults.noValue, title).toMatch(/\.$/);
      empty.push(title);
    }
    return empty;
  }

  /** The choices in Grafana's picker; the first one is the default. */
  async choices(name: DashboardName, variableName: string, choice: Choice): Promise<string[]> {
    const { list } = dashboardOf(name).templating;
    const variable =
      list.find((candidate) => candidate.name === variableName) ?? expect.fail(variableName);
    const answers = await this.ask(interpolate(variable.query, pickedOf(choice)));
    // Every column except the time has values; SHOW TAG VALUES also has a key column.
    const values = answers.flatMap(({ rows }) =>
      rows.flatMap(({ time: _, key: __, ...columns }) => Object.values(columns).map(String)),
    );
    const kept = new RegExp(variable.regex?.slice(1, -1) ?? '');
    return sorted(
      variable,
      [...new Set(values)].filter((value) => kept.test(value)),
    );
  }
}

/**
 * Computes `$A / $B` like Grafana: joins two series if one has all tags of the other, at common times.
 * https://grafana.com/docs/grafana/latest/panels-visualizations/query-transform-data/expression-queries/
 */
function divided(expression: string, answers: ReadonlyMap<string, Answer[]>) {
  const [, of = '', per = ''] = /^\$(\w) \/ \$(\w)$/.exec(expression) ?? [];
  const valueOf = ({ time: _, ...values }: Record<string, Cell>) =>
    Number(Object.values(values)[0]);
  return (answers.get(of) ?? []).flatMap((dividend) =>
    (answers.get(per) ?? []).flatMap((divisor): Answer[] => {
      const tags = { ...dividend.tags };
      // Grafana names a series without tags by measurement, so it matches no other series.
      if (
        divisor.tags === undefined ||
        Object.entries(divisor.tags).some(([tag, value]) => tags[tag] !== value)
      )
        return [];
      const divisors = new Map(divisor.rows.map((row) => [row['time'], valueOf(row)]));
      const rows = dividend.rows.flatMap((row): Answer['rows'] => {
        const by = divisors.get(row['time'] ?? null);
        return by === undefined ? [] : [{ time: row['time'] ?? null, value: valueOf(row) / by }];
      });
      return [{ tags, rows }];
    }),
  );
}

const read = new Map<DashboardName, Dashboard>();

export function dashboardOf(name: DashboardName): Dashboard {
  const dashboard = read.get(name) ?? readDashboard(generatedFile(name));
  read.set(name, dashboard);
  return dashboard;
}

const panelOf = (name: DashboardName, title: string) =>
  panelsOf(dashboardOf(name)).find((candidate) => candidate.title === title) ??
  expect.fail(`${name} has no "${title}"`);

export function columnsOf(name: DashboardName, title: string): string[] {
  return selectedColumns(targetsOf(panelOf(name, title))[0]?.query ?? '');
}
