// Writes dashboards/generated/*.json, the files that Grafana reads: `npm run -s dashboards`. They are committed; a test
// fails when one is stale.
import type { Dashboard, Panel, RowPanel } from '@grafana/grafana-foundation-sdk/dashboard';
import { writeFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import { articlesDashboard } from './articles.ts';
import { comparisonDashboard } from './comparison.ts';
import { historyDashboard } from './history.ts';
import { liveDashboard } from './live.ts';
import { generatedFile, type DashboardName } from './names.ts';

const dashboards: Readonly<Record<DashboardName, () => Dashboard>> = {
  articles: articlesDashboard,
  comparison: comparisonDashboard,
  live: liveDashboard,
  history: historyDashboard,
};

/** The text of each generated file, by its name. */
export function generatedFiles(): Record<string, string> {
  return Object.fromEntries(
    Object.entries(dashboards).map(([name, build]) => [
      generatedFile(name as DashboardName),
      `${printed(build())}\n`,
    ]),
  );
}

/** The dashboard as JSON with a line for each panel and variable: a difference names what it is about. */
function printed({ panels = [], templating, ...others }: Dashboard): string {
  const parts = Object.entries(others).map(([name, value]) => `"${name}":${JSON.stringify(value)}`);
  parts.push(`"templating":{"list":${inLines(templating?.list ?? [])}}`);
  parts.push(`"panels":${inLines(panels, printedPanel)}`);
  return `{\n${parts.join(',\n')}\n}`;
}

function printedPanel(panel: Panel | RowPanel): string {
  if (!('panels' in panel) || panel.panels.length === 0) return JSON.stringify(panel);
  const { panels, ...row } = panel;
  return `${JSON.stringify(row).slice(0, -1)},"panels":${inLines(panels)}}`;
}

function inLines<T>(items: readonly T[], print: (item: T) => string = JSON.stringify): string {
  return `[\n${items.map((item) => print(item)).join(',\n')}\n]`;
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  for (const [name, text] of Object.entries(generatedFiles())) {
    writeFileSync(new URL(`generated/${name}`, import.meta.url), text);
    console.log(`dashboards/generated/${name}`);
  }
}
