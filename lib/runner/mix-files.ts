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

/** A page's requests for the generator, as JSON a line; the file is named by its content. */
interface MixFile {
  file: string;
  text: string;
}

const known = new WeakMap<Page, MixFile>();

/** undefined for a single page. */
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

/** Text to compare: requests, which may be many, as their file's name. */
export function pageFacts(page: Page): object {
  return { ...page, requests: mixFileOf(page)?.file };
}

/** Only sides with lists of requests need it. @param inSteps without time for single pages */
export function mixPlan(
  sides: readonly Pick<PlannedVariant, 'page'>[],
  inSteps: boolean,
): Pick<LoadPlan, 'mixFiles' | 'aloneSeconds'> {
  if (!sides.some(({ page }) => isMix(page))) return {};
  const mixFiles = sides.map(({ page }) => mixFileOf(page)?.file ?? null);
  return inSteps ? { mixFiles } : { mixFiles, aloneSeconds: secondsAlone };
}

/** k6's environment is too small for them. Throws the file system's error. */
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

/** Query values in them may be secret. */
export async function removeMixFiles(folder: string): Promise<void> {
  const mixFiles = namesIn(folder).filter((name) => /^requests-\w+\.ndjson$/.test(name));
  await Promise.all(mixFiles.map((name) => rm(join(folder, name), { force: true })));
}
