// What is kept beside a result: k6's records and the composed configs of its rounds.
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Result, Round, VariantResult } from '../../runner/result.ts';
import { readRecord } from '../../store/record.ts';
import type { ComposedConfig } from './configs.ts';
import type { RunFiles } from './run-page.ts';
import type { Sample } from './timeline.ts';

/** Reads them from the run's folder. What is not there, or cannot be read any more, is left out. */
export async function readRunFiles(folder: string, { variants }: Result): Promise<RunFiles> {
  const samples: Sample[][] = [];
  const configs: ComposedConfig[][] = [];
  for (const variant of variants) {
    for (const round of variant.rounds) samples.push(await readSamples(folder, variant.name, round).catch(() => []));
    configs.push(await readConfig(folder, variant).catch(() => []));
  }
  return { samples: samples.flat(), configs: configs.flat() };
}

async function readSamples(folder: string, variant: string, { round }: Round): Promise<Sample[]> {
  const samples = new Map<string, Sample>();
  for await (const { metric, tags: { phase = '1' }, value, timestampNs } of readRecord(join(folder, `round-${round}`, variant, 'record.ndjson'))) {
    if (!['loadgen_requests', 'loadgen_responses', 'loadgen_seconds'].includes(metric)) continue;
    const key = `${phase} ${timestampNs}`;
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
  const place = join(folder, `round-${first.round}`, name);
  const file = `${server.name}.conf`;
  const others = (await readdir(place)).filter((one) => one.endsWith('.conf') && one !== file).sort();
  return Promise.all([file, ...others].map(async (one) => ({ variant: name, file: one, text: await readFile(join(place, one), 'utf8') })));
}
