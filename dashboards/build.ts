// Writes dashboards/generated/*.json, the files that Grafana reads: `npm run -s dashboards`. They are committed; a test
// fails when one is stale.
import { writeFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import { comparisonDashboard } from './comparison.ts';

/** The text of each generated file, by its name. */
export function generatedFiles(): Record<string, string> {
  return { 'comparison.json': `${JSON.stringify(comparisonDashboard(), null, 2)}\n` };
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  for (const [name, text] of Object.entries(generatedFiles())) {
    writeFileSync(new URL(`generated/${name}`, import.meta.url), text);
    console.log(`dashboards/generated/${name}`);
  }
}
