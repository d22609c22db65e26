// Writes dashboards/generated/*.json, the files that Grafana reads: `npm run -s dashboards`. They are committed; a test
// fails when one is stale.
import type { Dashboard } from '@grafana/grafana-foundation-sdk/dashboard';
import { writeFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import { comparisonDashboard } from './comparison.ts';
import { historyDashboard } from './history.ts';
import { http2Dashboard } from './http2.ts';
import { liveDashboard } from './live.ts';
import { generatedFile, type DashboardName } from './names.ts';

const dashboards: Readonly<Record<DashboardName, () => Dashboard>> = {
  comparison: comparisonDashboard,
  live: liveDashboard,
  http2: http2Dashboard,
  history: historyDashboard,
};

/** The text of each generated file, by its name. */
export function generatedFiles(): Record<string, string> {
  return Object.fromEntries(
    Object.entries(dashboards).map(([name, build]) => [
      generatedFile(name as DashboardName),
      `${JSON.stringify(build(), null, 2)}\n`,
    ]),
  );
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  for (const [name, text] of Object.entries(generatedFiles())) {
    writeFileSync(new URL(`generated/${name}`, import.meta.url), text);
    console.log(`dashboards/generated/${name}`);
  }
}
