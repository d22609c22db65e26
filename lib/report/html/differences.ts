// What differs between the sides beside what is measured: their configs, servers, loads and answers.
import { variantOf } from '../../analysis/comparisons.ts';
import { responsesOf, summed } from '../../analysis/phases.ts';
import { extent, total } from '../../analysis/statistics.ts';
import { counts, success, whole } from '../../format.ts';
import { variantLoadText } from '../heading.ts';
import { type Html, html, nothing, tableHtml } from './markup.ts';
import { leftColumn, rightColumn, tableOf } from '../table.ts';
import type { Phase, Result, VariantResult } from '../../result/result.ts';
import { protocolNames } from '../../scenario/load.ts';

type Fact<Value> = readonly [title: string, of: (side: VariantResult) => Value];

const texts: readonly Fact<string>[] = [
  ['server', ({ server }) => `${server?.name ?? ''} ${server?.version ?? ''}`.trim()],
  ['load', (side) => `${protocolNames(side.load.protocol)}, ${variantLoadText(side)}`],
  ['status', statusText],
];
/** Of an answer on average. */
const bytes: readonly Fact<number>[] = [
  ['body', perAnswer((phase) => phase.bytes.body)],
  ['headers', perAnswer((phase) => phase.bytes.headersDecoded)],
];

/** Means of several pages are as near as this to each other. */
const near = 0.002;

/** @param notes further differences, a line each */
export function differencesHtml(
  { variants, comparisons }: Result,
  configs: readonly ComposedConfig[],
  notes: Html,
): Html {
  const sides = variants.filter(({ rounds }) => rounds.length > 0);
  const [first] = sides;
  if (first === undefined || sides.length < 2) return notes;
  const written: Fact<string> = [
    'config',
    ({ server }) => (configs.length > 0 ? '' : (server?.config.join(' ') ?? '')),
  ];
  const differing = [
    ...[written, ...texts]
      .filter(([, of]) => new Set(sides.map(of)).size > 1)
      .map(([title, of]) => leftColumn(title, of)),
    ...bytes
      .filter(([, of]) => {
        const [least, most] = extent(sides.map(of));
        return most > least * (1 + near);
      })
      .map(([title, of]) => rightColumn(`B of ${title}`, (side: VariantResult) => whole(of(side)))),
  ];
  const isAlike = !differing.some(({ title }) => title === 'status' || title.startsWith('B of '));
  return html`<section><h2>What differs</h2>
${configDifferences({ variants, comparisons }, configs)}${tableHtml(tableOf(sides, [leftColumn('side', ({ name }) => name), ...differing]), 'what differs')}${
    isAlike
      ? html`<p>All sides answer alike: ${[statusText(first), ...bytes.map(([title, of]) => `${whole(of(first))} B of ${title}`)].join(', ')}.</p>\n`
      : nothing
  }${notes}</section>`;
}

/** Each status, or its class, and its share of the answers where there are several. */
function statusText({ rounds }: VariantResult): string {
  const phases = rounds.flatMap((round) => round.phases);
  const statuses = Object.entries(summed(phases.map((phase) => phase.statuses ?? {})));
  const found = Object.entries(summed(phases.map(({ responses }) => responses))).flatMap(
    ([name, count]): [string, number][] => {
      const own = statuses.filter(([status]) => status[0] === name[0]);
      return total(own, ([, times]) => times) === count ? own : [[name, count]];
    },
  );
  const all = total(found, ([, count]) => count);
  return all === 0
    ? 'none'
    : found
        .map(([name, count]) => (found.length === 1 ? name : `${name} ${success(count / all)}`))
        .join(', ');
}

/** 0 without any. */
function perAnswer(of: (phase: Phase) => number): (side: VariantResult) => number {
  return ({ rounds }) => {
    const phases = rounds.flatMap((round) => round.phases);
    return total(phases, of) / Math.max(1, total(phases, responsesOf));
  };
}

// In which settings the configs differ, and the configs as they ran.

/** A variant's config as it was composed for its first round. */
export interface ComposedConfig {
  variant: string;
  file: string;
  text: string;
}

/** Whether what is shown of them is a person's own, which may have secrets in it. */
export function hasOwnConfigs({ variants }: Result, configs: readonly ComposedConfig[]): boolean {
  return (
    configs.length > 0 &&
    variants.some(({ server }) => server?.config.some((name) => name.startsWith('/')) === true)
  );
}

export function configsHtml(result: Result, configs: readonly ComposedConfig[]): Html {
  if (configs.length === 0) return nothing;
  return html`<section><h2>Configs as they ran</h2>
${hasOwnConfigs(result, configs) ? html`<p><strong>These are a person's own files: look through them before you pass this page on.</strong></p>\n` : nothing}${configs.map(
    ({ variant, file, text }) =>
      html`<details><summary>${variant}: ${file}, ${counts(linesOf(text).length, 'line')}</summary>${preHtml(`${file} of ${variant}`, html`${text}`)}</details>\n`,
  )}</section>`;
}

/** Of so many lines in all, were each config as different, none are folded away. */
const mostOpen = 24;

/** Of each config the settings that its baseline's does not have, and the other way round, whatever their order. */
export function configDifferences(
  result: Pick<Result, 'variants' | 'comparisons'>,
  configs: readonly ComposedConfig[],
): Html {
  return html`${configs.map((config) => {
    const baseline = baselineOf(result, config.variant, configs);
    return baseline === undefined
      ? nothing
      : differenceHtml(baseline, config, mostOpen / configs.length);
  })}`;
}

function differenceHtml(baseline: ComposedConfig, config: ComposedConfig, mostLines: number): Html {
  const [before, after] = [settingsOf(baseline.text), settingsOf(config.text)];
  const lines = [
    ...without(before, after).map((text) => ({ text, mark: html`<del>− ${text}</del>\n` })),
    ...without(after, before).map((text) => ({ text, mark: html`<ins>+ ${text}</ins>\n` })),
  ].sort((a, b) => (a.text < b.text ? -1 : 1));
  const names = `${config.variant} (+) and ${baseline.variant} (−)`;
  if (lines.length === 0)
    return html`<p>The configs of ${names} have the same settings${before.join('\n') === after.join('\n') ? '' : ', in another order'}.</p>\n`;
  return html`<details${lines.length > mostLines ? nothing : html` open`}><summary>${counts(lines.length, 'line')} of the configs of ${names} ${lines.length === 1 ? 'differs' : 'differ'}</summary>${preHtml(
    `differences between ${config.variant} and ${baseline.variant}`,
    html`${lines.map(({ mark }) => mark)}`,
  )}</details>\n`;
}

function preHtml(name: string, text: Html): Html {
  return html`<pre class="scroll" tabindex="0" role="region" aria-label="${name}"><code>${text}</code></pre>`;
}

/** The config of the variant that this one is taken against, where it is one of the same server. */
function baselineOf(
  result: Pick<Result, 'variants' | 'comparisons'>,
  variant: string,
  configs: readonly ComposedConfig[],
): ComposedConfig | undefined {
  const serverOf = (name: string): string | undefined => variantOf(result, name)?.server?.name;
  const names = result.comparisons
    .filter((one) => one.variant === variant)
    .map(({ baseline }) => baseline);
  const name = names.find((one) => serverOf(one) === serverOf(variant));
  return configs.find((config) => config.variant === name);
}

function linesOf(text: string): string[] {
  return text.replace(/\n$/, '').split('\n');
}

/** The lines of a config but for comments and ends of blocks, each behind the blocks that it stands in: "http › server › listen 80;". */
function settingsOf(text: string): string[] {
  const blocks: { indent: number; name: string }[] = [];
  return linesOf(text).flatMap((line) => {
    const setting = withoutPlace(line).trim();
    if (/^(?:#|\}?$)/.test(setting)) return [];
    const indent = line.search(/\S/);
    while ((blocks.at(-1)?.indent ?? -1) >= indent) blocks.pop();
    const path = [...blocks.map(({ name }) => name), setting].join(' › ');
    blocks.push({ indent, name: setting.replace(/ *[{:]$/, '') });
    return [path];
  });
}

/** The lines of `some` that are not among `others`, as often as there are more of them. */
function without(some: readonly string[], others: readonly string[]): string[] {
  const left = new Map<string, number>();
  for (const one of others) left.set(one, (left.get(one) ?? 0) + 1);
  return some.filter((one) => {
    const count = left.get(one) ?? 0;
    left.set(one, count - 1);
    return count <= 0;
  });
}

/** A line without what is another one for each start of a server, its port and its folders, and without the remark on where it comes from. */
function withoutPlace(line: string): string {
  return line
    .replace(/ *# (?:from \/.*:\d+|this machine|[\w.-]+\.conf)$/, '')
    .replaceAll(/\b127\.0\.0\.1:\d+/g, '127.0.0.1:PORT')
    .replace(/^(\s*(?:-\s*)?(?:port:|--?port=?)\s*)\d+/, '$1PORT')
    .replace(/^\d+ (?=\/)/, 'PORT ')
    .replaceAll(
      /\/bakeoff-[a-z]+-[\w-]+(?:\/[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}\b)?/g,
      '/FOLDER',
    )
    .replaceAll(/\/round-\d+\/[\w.-]+/g, '/ROUND');
}
