// docs/proof.md and its plots, made from what results/proof has. A part that was measured elsewhere stays as it stands in the page.
import { mkdir, readdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { counts, enumeration } from '../../lib/format.ts';
import { markdownTable } from '../../lib/report/markdown.ts';
import { formatCpuList } from '../../lib/machine/processors.ts';
import { writeWhole } from '../../lib/files.ts';
import type { PartFile, PartName, ProofFiles } from './results.ts';
import { titles, views, type View } from './views.ts';

/** The page's text, and its plots by their paths beside it. */
export interface ProofPage {
  markdown: string;
  plots: ReadonlyMap<string, string>;
}

/** In the order of the page. */
export const partNames: readonly PartName[] = [
  'aa',
  'search',
  'power',
  'width',
  'slices',
  'latency',
  'waiting',
  'agreement',
  'disturbed',
];

const plotFolder = 'proof';

/** What a part has shown. */
export function viewOf<Name extends PartName>(file: PartFile<Name>): View {
  return views[file.part](file);
}

/** The page of the parts that are there, with the sections of others that `before`, the page until now, has; what neither has is said to be missing. */
export function proofPage(files: ProofFiles, before = ''): ProofPage {
  const plots = new Map<string, string>();
  const standing = sectionsIn(before);
  const missing = partNames.filter(
    (name) => files[name] === undefined && !standing.has(titles[name]),
  );
  const sections = partNames.flatMap((name) => {
    const file = files[name];
    return file === undefined
      ? (standing.get(titles[name]) ?? [])
      : sectionOf(file as PartFile<PartName>, plots);
  });
  const markdown = [
    '# Proof: how exact is a comparison here?',
    '',
    "Measured, not claimed: `npm run bench -- proof` does all of it again on any machine, a part by its name does that part, and each ends by writing its section anew. Ratios are of requests/s where nothing else is said; intervals are of 95 % (Student's t over rounds, each with fresh servers).",
    '',
    ...(missing.length === 0
      ? []
      : [
          `Missing, since they were not run: ${enumeration(missing.map((name) => `\`proof-${name}\``))}.`,
          '',
        ]),
    ...sections,
    ...stopped,
  ].join('\n');
  return { markdown, plots };
}

/** Of the version before, which nothing measures again. */
const stopped = `## Does anything have to be stopped?

Until commit 05b7fe6 a server was stopped while others had their turns, so that its waiting was divided by the number of sides. Both ways
in turn on 2026-11-24: 10 rounds of fresh servers with 1 s of load a side, three sides (nginx, the same again, and with
open_file_cache), 100 connections, turns of 10 ms:

| load | stopped: against itself | open_file_cache | awaited: against itself | open_file_cache |
| --- | ---: | ---: | ---: | ---: |
| 612 B | ×1.003 ±0.7 % | ×1.285 ±0.8 % | ×1.002 ±1.0 % | ×1.283 ±1.0 % |
| 525,304 B | ×0.999 ±0.4 % | ×1.040 ±0.8 % | ×0.999 ±0.6 % | ×1.042 ±0.6 % |
| 612 B over TLS | ×1.004 ±0.6 % | ×1.266 ±0.8 % | ×1.002 ±1.1 % | ×1.254 ±1.7 % |
| HTTP/2, 100 streams each | ×1.003 ±0.4 % | ×1.198 ±2.3 % | ×0.999 ±0.8 % | ×1.325 ±1.3 % |
| the same, turns of two answers (190 ms) after a ramp | ×1.001 ±0.3 % | ×1.206 ±1.6 % | ×1.008 ±1.3 % | ×1.213 ±1.9 % |

So effects are the same, and intervals up to twice as wide, but for a queue that is longer than a turn: what a drain works off came
in bursts, which open_file_cache gains more from. Such a side has turns of two answers, of which ramp and drain do not count, and pays
with its precision against itself.
`.split('\n');

/** A page's sections by their titles, as lines. */
function sectionsIn(page: string): ReadonlyMap<string, string[]> {
  return new Map(
    page
      .split(/^(?=## )/m)
      .slice(1)
      .map((text) => [
        text.slice('## '.length, text.indexOf('\n')),
        [...text.trimEnd().split('\n'), ''],
      ]),
  );
}

function sectionOf(file: PartFile<PartName>, plots: Map<string, string>): string[] {
  const { title, about, findings, tables, plots: drawn, details } = viewOf(file);
  for (const { name, svg } of drawn) plots.set(`${plotFolder}/${name}.svg`, svg);
  return [
    `## ${title}`,
    '',
    about,
    '',
    circumstances(file),
    '',
    ...file.failures.flatMap(({ at, why }) => [
      `Failed at ${minute(at)}, and in no figure: ${why}`,
      '',
    ]),
    ...findings.flatMap((line) => [line, '']),
    ...tables
      .filter(({ rows }) => rows.length > 0)
      .flatMap((table) => [...markdownTable(table), '']),
    ...drawn.flatMap(({ name, title: alt }) => [`![${alt}](${plotFolder}/${name}.svg)`, '']),
    ...details
      .filter(({ rows }) => rows.length > 0)
      .flatMap((table) => [
        `<details><summary>${drawn.length > 0 ? 'The plot in figures' : 'All rounds'}</summary>`,
        '',
        ...markdownTable(table),
        '',
        '</details>',
        '',
      ]),
  ];
}

/** When, where and how it was measured. */
function circumstances({
  state,
  command,
  startedAt,
  endedAt,
  environment,
}: PartFile<PartName>): string {
  const {
    cpuModel,
    cores,
    kernel,
    os,
    serverCpus,
    generatorCpus,
    versions,
    loadAverage,
    coreNotes = [],
  } = environment;
  return [
    `${state === 'partial' ? '**Interrupted: only a part of it was measured.** ' : ''}${minute(startedAt)} to ${minute(endedAt)} UTC, \`${command}\`;`,
    `${cpuModel}, ${counts(cores, 'core')}, ${os}, ${kernel}; server on core ${formatCpuList(serverCpus)}, generator on core ${formatCpuList(generatorCpus)};`,
    `load average ${loadAverage[0].toFixed(2)} before; ${Object.entries(versions)
      .map((nameAndVersion) => nameAndVersion.join(' '))
      .join(', ')}.`,
    ...coreNotes,
  ].join(' ');
}

function minute(time: string): string {
  return time.slice(0, 16).replace('T', ' ');
}

/** Writes proof.md of the parts into the folder and its plots below it; plots that the page has no more are removed. Throws the file system's error. */
export async function writePage(folder: string, files: ProofFiles): Promise<string> {
  const file = join(folder, 'proof.md');
  const before = await readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOENT') throw error;
    return '';
  });
  const { markdown, plots } = proofPage(files, before);
  await mkdir(join(folder, plotFolder), { recursive: true });
  for (const [path, svg] of plots) await writeWhole(join(folder, path), svg);
  await writeWhole(file, markdown);
  const unused = (await readdir(join(folder, plotFolder))).filter(
    (name) => !markdown.includes(`(${plotFolder}/${name})`),
  );
  for (const name of unused) await rm(join(folder, plotFolder, name));
  return file;
}
