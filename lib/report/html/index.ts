// Pages in HTML: of one run, beside its other files, and of several.
import { join } from 'node:path';
import { writeWhole } from '../../write-whole.ts';
import type { Result } from '../../result/result.ts';
import { hasOwnConfigs } from './configs.ts';
import { readRunFiles } from './read-files.ts';
import { htmlReport, type RunFiles } from './run-page.ts';

/** Writes report.html into the run's folder and returns its path. Throws the file system's error. */
export async function writeHtmlReport(folder: string, result: Result): Promise<string> {
  const file = join(folder, 'report.html');
  const files = await readRunFiles(folder, result);
  await writeWhole(file, await htmlReport(result, files), pageMode(result, files));
  return file;
}

/** The mode of a page's file: one with a person's own configs is closed to others, as these are. */
export function pageMode(result: Result, { configs }: RunFiles): number | undefined {
  return hasOwnConfigs(result, configs) ? 0o600 : undefined;
}
