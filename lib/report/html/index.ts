// Pages in HTML: of one run, beside its other files, and of several.
import { join } from 'node:path';
import { writeWhole } from '../../runner/results-folder.ts';
import type { Result } from '../../runner/result.ts';
import { readRunFiles } from './read-files.ts';
import { htmlReport } from './run-page.ts';

/** Writes report.html into the run's folder and returns its path. Throws the file system's error. */
export async function writeHtmlReport(folder: string, result: Result): Promise<string> {
  const file = join(folder, 'report.html');
  await writeWhole(file, await htmlReport(result, await readRunFiles(folder, result)));
  return file;
}
