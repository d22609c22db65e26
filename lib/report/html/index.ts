// report.html of a run: what it is made from, which is kept beside the result, and where it goes.
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { total } from '../../analysis/statistics.ts';
import { k6Files } from '../../k6/load-plan.ts';
import { openFile, readBytes } from '../../open-file.ts';
import type { Result, VariantResult } from '../../result/result.ts';
import { readRecord } from '../../store/record.ts';
import { writeWhole } from '../../write-whole.ts';
import { hasOwnConfigs, type ComposedConfig } from './configs.ts';
import { htmlReport, type RunFiles } from './run-page.ts';
import type { Sample } from './timeline.ts';

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

/** The most that files of a run have: some 5 hours of a round under load, and a config with all that it includes. */
const recordMegabytes = 256;
const configMegabytes = 16;

/** Reads k6's records and the composed configs of its rounds from the run's folder, and nothing from outside of it. What is not there, or cannot be read any more, is left out. */
export async function readRunFiles(folder: string, { variants }: Result): Promise<RunFiles> {
  const configs = await Promise.all(variants.map((variant) => readConfig(folder, variant).catch(() => [])));
  const samples: Sample[][] = [];
  // One after another: there may be a thousand.
  for (const round of new Set(variants.flatMap((variant) => variant.rounds.map((one) => one.round)))) samples.push(await readSamples(folder, round));
  return { samples: samples.flat(), configs: configs.flat() };
}

/** From each folder of the round in which a k6 left its record. */
async function readSamples(folder: string, round: number): Promise<Sample[]> {
  const place = join(folder, `round-${round}`);
  const folders = await readdir(place).catch(() => []);
  const records = await Promise.all(folders.map((one) => readRecordIn(folder, join(place, one), round).catch(() => [])));
  return together(records.filter((samples) => samples.length > 0));
}

/** What several generators made, which began at the same time: the n-th second of a load is that of each of them. */
function together(records: readonly Sample[][]): Sample[] {
  const seconds = new Map<string, Sample[]>();
  for (const record of records) {
    const seen = new Map<string, number>();
    for (const sample of record) {
      const load = `${sample.variant} ${sample.phase}`;
      const count = (seen.get(load) ?? 0) + 1;
      seen.set(load, count);
      seconds.set(`${load} ${count}`, [...seconds.get(`${load} ${count}`) ?? [], sample]);
    }
  }
  return [...seconds.values()].map((parts) => ({
    ...parts[0] as Sample,
    atMs: Math.max(...parts.map(({ atMs }) => atMs)),
    responses: total(parts, ({ responses }) => responses),
    ...(parts.every(({ seconds: own }) => own !== undefined) && { seconds: Math.max(...parts.map(({ seconds: own = 0 }) => own)) }),
  }));
}

async function readRecordIn(folder: string, place: string, round: number): Promise<Sample[]> {
  const samples = new Map<string, Sample>();
  const record = await openFile(k6Files(place).record, { megabytes: recordMegabytes, below: folder });
  for await (const { metric, tags: { variant = '', phase = '1' }, value, timestampNs } of readRecord(record.createReadStream())) {
    if (!['loadgen_requests', 'loadgen_responses', 'loadgen_seconds'].includes(metric)) continue;
    const key = `${variant} ${phase} ${timestampNs}`;
    const sample = samples.get(key) ?? { variant, round, phase: Number(phase), atMs: Number(timestampNs / 1000n) / 1000, responses: 0 };
    if (metric === 'loadgen_responses') sample.responses += value;
    if (metric === 'loadgen_seconds') sample.seconds = (sample.seconds ?? 0) + value;
    samples.set(key, sample);
  }
  return [...samples.values()];
}

/** The first round's: the others' differ in ports and folders. */
async function readConfig(folder: string, { name, rounds: [first], server }: VariantResult): Promise<ComposedConfig[]> {
  if (first === undefined || server === null) return [];
  const file = `${server.name}.conf`;
  const text = (await readBytes(join(folder, `round-${first.round}`, name, file), { megabytes: configMegabytes, below: folder })).toString('utf8');
  return [{ variant: name, file, text }];
}
