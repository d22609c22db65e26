// report.html of a run: what it is made from, which is kept beside the result, and where it goes.
import { join } from 'node:path';
import { readBytes } from '../../open-file.ts';
import type { Result, VariantResult } from '../../result/result.ts';
import { writeWhole } from '../../write-whole.ts';
import { hasOwnConfigs, type ComposedConfig } from './configs.ts';
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

/** The most that a config has with all that it includes. */
const configMegabytes = 16;

/** Reads the composed configs from the run's folder, and nothing from outside of it. One that is not there, or cannot be read any more, is left out. */
export async function readRunFiles(folder: string, { variants }: Result): Promise<RunFiles> {
  return {
    configs: (
      await Promise.all(variants.map((variant) => readConfig(folder, variant).catch(() => [])))
    ).flat(),
  };
}

/** The first round's: the others' differ in ports and folders. */
async function readConfig(
  folder: string,
  { name, rounds: [first], server }: VariantResult,
): Promise<ComposedConfig[]> {
  if (first === undefined || server === null) return [];
  const file = `${server.name}.conf`;
  const text = (
    await readBytes(join(folder, `round-${first.round}`, name, file), {
      megabytes: configMegabytes,
      below: folder,
    })
  ).toString('utf8');
  return [{ variant: name, file, text }];
}
