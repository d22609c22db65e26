// A real influxd, asked as Grafana asks it for the panels and variables of a dashboard.
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect } from 'vitest';
import { generatedFile, type DashboardName } from '../dashboards/names.ts';
import type { Result } from '../lib/result/result.ts';
import { projectRoot } from '../lib/setup/paths.ts';
import { type Store, openStore } from '../lib/store/store.ts';
import { database } from '../lib/store/schema.ts';
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
  /** Which scenarios are offered: a pattern of the article. */
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

  /** Runs a scenario into the database, in which nothing stays of dropped rounds. */
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

  /** One query, over GET with epoch=ms, as Grafana asks. */
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

  /** What a panel shows: answers to its queries, and what its expressions make of them, in their order. */
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
    const letters = panel.targets.map((one) => 'expression' in one && one.expression[1]);
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

  async intervals(
    choice: Choice,
  ): Promise<{ names: Record<string, Cell>[]; marks: Record<string, Cell>[] }> {
    const [names = [], ...marks] = (await this.panel('comparison', intervalTitle, choice)).map(
      (answers) => answers.flatMap(({ rows }) => rows.map(({ time: _, ...row }) => row)),
    );
    return { names, marks: marks.flat().filter(({ ratio }) => ratio !== null) };
  }

  /** Titles of the panels that have nothing to show of a run; each says why. */
  async emptyPanels(name: DashboardName, choice: Choice): Promise<string[]> {
    const empty: string[] = [];
    for (const panel of panelsOf(dashboardOf(name))) {
      const { title, repeat } = panel;
      // Without any value of its variable Grafana shows one panel, of none.
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

  /** What Grafana's picker offers, the one it picks first. */
  async choices(name: DashboardName, variableName: string, choice: Choice): Promise<string[]> {
    const { list } = dashboardOf(name).templating;
    const variable = list.find((one) => one.name === variableName) ?? expect.fail(variableName);
    const answers = await this.ask(interpolate(variable.query, pickedOf(choice)));
    // Every column but the time has values; SHOW TAG VALUES has a key, too.
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
 * What Grafana makes of `$A / $B`: a series for each two of which one has all tags of the other, with its times that both have.
 * https://grafana.com/docs/grafana/latest/panels-visualizations/query-transform-data/expression-queries/
 */
function divided(expression: string, answers: ReadonlyMap<string, Answer[]>) {
  const [, of = '', per = ''] = /^\$(\w) \/ \$(\w)$/.exec(expression) ?? [];
  const valueOf = ({ time: _, ...values }: Record<string, Cell>) =>
    Number(Object.values(values)[0]);
  return (answers.get(of) ?? []).flatMap((dividend) =>
    (answers.get(per) ?? []).flatMap((divisor): Answer[] => {
      const tags = { ...dividend.tags };
      // Without tags it is called by its measurement, which no other is.
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
  panelsOf(dashboardOf(name)).find((one) => one.title === title) ??
  expect.fail(`${name} has no "${title}"`);

export function columnsOf(name: DashboardName, title: string): string[] {
  return selectedColumns(targetsOf(panelOf(name, title))[0]?.query ?? '');
}
