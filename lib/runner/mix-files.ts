// Lists of requests for k6: files beside its script, and their part of the load plan.
import { createHash } from 'node:crypto';
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { namesIn } from '../files.ts';
import type { LoadPlan } from '../k6/load-plan.ts';
import type { Page } from '../scenario/model.ts';
import { isMix } from '../scenario/pages.ts';
import type { PlannedVariant } from './plan.ts';
import { secondsAlone } from './times.ts';

/** A page's requests as the generator reads them, a JSON object a line. The file's name has a hash of this text. */
interface MixFile {
  file: string;
  text: string;
}

const known = new WeakMap<Page, MixFile>();

/** Returns the file of a page's requests; undefined for a single page. */
export function mixFileOf(page: Page): MixFile | undefined {
  if (!isMix(page)) return undefined;
  const before = known.get(page);
  if (before !== undefined) return before;
  const lines = page.requests.map((request) =>
    JSON.stringify({ status: page.status ?? 200, ...request }),
  );
  const text = lines.map((line) => `${line}\n`).join('');
  const digest = createHash('sha256').update(text).digest('hex').slice(0, 16);
  const mix = { file: `requests-${digest}.ndjson`, text };
  known.set(page, mix);
  return mix;
}

/** The page's properties, to be compared as text: its requests as their file's name, since they may be many. */
export function pageFacts(page: Page): object {
  return { ...page, requests: mixFileOf(page)?.file };
}

/** Returns the parts of a load plan that only sides with lists of requests need. @param withoutEachPage see Group; loads in steps have no time for it */
export function mixPlan(
  sides: readonly Pick<PlannedVariant, 'page'>[],
  withoutEachPage: boolean,
): Pick<LoadPlan, 'mixFiles' | 'aloneSeconds'> {
  if (!sides.some(({ page }) => isMix(page))) return {};
  const mixFiles = sides.map(({ page }) => mixFileOf(page)?.file ?? null);
  return withoutEachPage ? { mixFiles } : { mixFiles, aloneSeconds: secondsAlone };
}

/** Writes the files of the pages: k6's environment is too small for them. Throws the file system's error. */
export async function writeMixFiles(pages: readonly Page[], folder: string): Promise<void> {
  const texts = new Map<string, string>();
  for (const page of pages) {
    const mix = mixFileOf(page);
    if (mix !== undefined) texts.set(mix.file, mix.text);
  }
  await Promise.all(
    [...texts].map(([file, text]) => writeFile(join(folder, file), text, { mode: 0o600 })),
  );
}

/** Removes the files of writeMixFiles, because query values in them may be secret. */
export async function removeMixFiles(folder: string): Promise<void> {
  const mixFiles = namesIn(folder).filter((name) => /^requests-\w+\.ndjson$/.test(name));
  await Promise.all(mixFiles.map((name) => rm(join(folder, name), { force: true })));
}
