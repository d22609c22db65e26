// Writes docs/proof.md and the plots from results/proof. Sections without new results stay unchanged.
import { mkdir, readdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { counts, enumeration } from '../../lib/format.ts';
import { markdownTable } from '../../lib/report/texts.ts';
import { formatCpuList } from '../../lib/machine/processors.ts';
import { writeWhole } from '../../lib/writing.ts';
import type { PartFile, PartName, ProofFiles } from './results.ts';
import type { View } from './view.ts';
import { titles, views } from './views.ts';

/** The page's text, and the plots by path relative to the page. */
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

/** The section of a part. */
export function viewOf<Name extends PartName>(file: PartFile<Name>): View {
  return views[file.part](file);
}

/**
 * Composes the page from these parts. Other sections are copied from `before`, the current page; parts without a section are
 * listed.
 */
export function proofPage(files: ProofFiles, before = ''): ProofPage {
  const plots = new Map<string, string>();
  const standing = sectionsIn(before);
  const known = new Set(Object.values(titles));
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
    ...[...standing].flatMap(([title, lines]) => (known.has(title) ? [] : lines)),
  ].join('\n');
  return { markdown, plots };
}

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

/**
 * Writes proof.md into the folder with the plots below it, and removes plots that the page no longer shows. Throws file system
 * errors.
 */
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
