// What a real Grafana shows of a dashboard, against what its database holds.
import type { Page } from 'playwright-core';
import type { DashboardName } from '../dashboards/names.ts';
import type { Result } from '../lib/result/result.ts';
import {
  dashboardOf,
  pickedOf,
  type Answer,
  type DashboardDatabase,
} from './dashboard-database.ts';
import type { Cell } from './dashboard-figures.ts';
import { isRow, panelsOf, selectedColumns, targetsOf, type Panel } from './grafana.ts';

/** A panel as it has to be. */
interface ExpectedPanel {
  panel: Panel;
  /** Its title, with values in the place of its variables; a panel that is repeated for no value has any. */
  title: string | RegExp;
  answers: Answer[][];
  /** Columns of its table that are left out have names that begin so. */
  leftOut: string[];
}

/** A panel as it is. */
interface SeenPanel {
  title: string;
  text: string;
  /** What it says instead of data. */
  message: string | null;
  headings: string[];
  /** All that are drawn, row by row. */
  cells: string[];
  drawn: boolean;
}

/** The panels that a dashboard has of a run, and what the database answers to their queries. */
export async function expectedPanels(
  database: DashboardDatabase,
  name: DashboardName,
  result: Result,
): Promise<ExpectedPanel[]> {
  const leavesOut = dashboardOf(name).templating.list.some(
    (variable) => variable.name === 'unpublished',
  );
  const leftOut = leavesOut ? await database.choices(name, 'unpublished', result) : [];
  const all = panelsOf(dashboardOf(name)).map(async (panel): Promise<ExpectedPanel[]> => {
    const values =
      panel.repeat === undefined ? [''] : await database.choices(name, panel.repeat, result);
    if (values.length === 0) return [{ panel, title: anyValue(panel.title), answers: [], leftOut }];
    return Promise.all(
      values.map(async (variant) => ({
        panel,
        title: withValues(panel.title, pickedOf({ ...result, variant }).variables),
        answers: await database.panel(name, panel.id, { ...result, variant }),
        leftOut,
      })),
    );
  });
  return (await Promise.all(all)).flat();
}

function withValues(title: string, variables: Readonly<Record<string, string>>): string {
  return title.replaceAll(/\$\{(\w+)(?::csv)?\}/g, (text, name: string) => variables[name] ?? text);
}

function anyValue(title: string): RegExp {
  const escaped = title
    .split(/\$\{\w+(?::csv)?\}/)
    .map((part) => part.replaceAll(/[\\^$*+?.()|[\]{}]/g, '\\$&'));
  return new RegExp(`^${escaped.join('.*')}$`);
}

/** In pixels: high enough that no panel is left out for not being in sight. A line of Grafana's grid takes 38 pixels. */
export function heightOf(name: DashboardName, expected: readonly ExpectedPanel[]): number {
  const lines = expected.reduce(
    (sum, { panel }) => sum + panel.gridPos.h,
    dashboardOf(name).panels.filter(isRow).length,
  );
  return 38 * (lines + 12);
}

/** Opens the rows that are closed. */
export async function openRows(page: Page, name: DashboardName): Promise<void> {
  for (const row of dashboardOf(name)
    .panels.filter(isRow)
    .filter(({ collapsed }) => collapsed)) {
    await page.getByText(row.title, { exact: true }).click();
  }
}

/** What a person would call broken or missing; [] when all is as it has to be. */
export async function problemsOn(
  page: Page,
  expected: readonly ExpectedPanel[],
): Promise<string[]> {
  const alerts = await page
    .locator(
      '[data-testid="data-testid Panel status error"], [data-testid="data-testid Alert error"], [aria-label="Alert error"]',
    )
    .all();
  const seen = await seenPanels(page);
  return [
    ...(await Promise.all(
      alerts.map(
        async (alert) =>
          `error: ${await alert.locator('xpath=ancestor-or-self::section[1]').or(alert).first().textContent()}`,
      ),
    )),
    ...(seen.length === expected.length
      ? []
      : [`${seen.length} panels instead of ${expected.length}`]),
    ...expected.flatMap((one) => {
      const found = seen.filter(({ title }) =>
        typeof one.title === 'string' ? title === one.title : one.title.test(title),
      );
      const [panel] = found;
      return panel === undefined || found.length > 1
        ? [`${one.title}: ${found.length} panels`]
        : problemsOf(one, panel).map((problem) => `${panel.title}: ${problem}`);
    }),
  ];
}

function problemsOf({ panel, answers, leftOut }: ExpectedPanel, seen: SeenPanel): string[] {
  const {
    type,
    fieldConfig: { defaults, overrides },
  } = panel;
  const rows = answers.flat().flatMap((answer) => answer.rows);
  const said = defaults.noValue ?? 'No data';
  if (!rows.some(({ time: _, ...row }) => Object.values(row).some((cell) => cell !== null))) {
    // Whatever it is given to say.
    const saysLess = type === 'xychart' && seen.message === null && seen.text.endsWith('Err');
    return saysLess || ((seen.message ?? seen.text).endsWith(said) && said !== 'No data')
      ? []
      : [`says "${seen.message ?? seen.text}" where it has nothing to show`];
  }
  if (seen.message !== null) return [`says "${seen.message}" where it has ${rows.length} rows`];
  if (type !== 'table') return seen.drawn ? [] : ['draws nothing'];
  // A cell without a text or figure of its own must not say what the whole panel says.
  const untrue = said.length > 1 && seen.cells.includes(said) ? [`a cell says "${said}"`] : [];
  const propertyOf = (column: string, id: string): unknown =>
    overrides
      .find(({ matcher }) => matcher.options === column)
      ?.properties.find((one) => one.id === id)?.value;
  const columns = selectedColumns(targetsOf(panel)[0]?.query ?? '').filter(
    (column) =>
      propertyOf(column, 'custom.hideFrom') === undefined &&
      !leftOut.some((name) => column.startsWith(`${name}_`)),
  );
  const titles = columns.map((column) => propertyOf(column, 'displayName'));
  if (titles.join(' | ') !== seen.headings.join(' | '))
    return [...untrue, `has the columns ${seen.headings.join(' | ')}`];
  const [first = {}] = rows;
  const wrong = columns.flatMap((column, index) => {
    const shown = seen.cells[index] ?? '';
    return propertyOf(column, 'mappings') !== undefined || isShown(first[column] ?? null, shown)
      ? []
      : [`shows "${shown}" as ${column}, which is ${first[column]}`];
  });
  return [...untrue, ...wrong];
}

/** Whether a cell can be what its column's unit makes of a value. */
function isShown(value: Cell, shown: string): boolean {
  if (value === null || value === '') return shown === '–';
  return typeof value === 'string' ? shown === value : /\d/.test(shown);
}

/** As much of a page's elements as is read here: Node has no types of them. */
interface PageElement {
  textContent: string | null;
  /** Of a canvas. */
  width: number;
  height: number;
  getAttribute(name: string): string | null;
  querySelector(selector: string): PageElement | null;
  querySelectorAll(selector: string): Iterable<PageElement>;
}

declare const document: Pick<PageElement, 'querySelectorAll'>;

/** Runs in the page: what it needs has to be within it. */
async function seenPanels(page: Page): Promise<SeenPanel[]> {
  return page.evaluate(() => {
    const prefix = 'data-testid Panel header ';
    const texts = (panel: PageElement, selector: string): string[] =>
      [...panel.querySelectorAll(selector)].map((element) => element.textContent ?? '');
    return [...document.querySelectorAll(`section[data-testid^="${prefix}"]`)].map((panel) => ({
      title: (panel.getAttribute('data-testid') ?? '').slice(prefix.length),
      text: panel.textContent ?? '',
      message:
        panel.querySelector('[data-testid="data-testid Panel data error message"]')?.textContent ??
        null,
      headings: texts(panel, '[role=columnheader]'),
      cells: texts(panel, '[role=cell], [role=gridcell]'),
      drawn: [...panel.querySelectorAll('canvas')].some(
        ({ width, height }) => width > 100 && height > 50,
      ),
    }));
  });
}
