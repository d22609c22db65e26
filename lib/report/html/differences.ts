// What differs between the sides besides the figures: configs, servers, loads and answers.
import { join } from 'node:path';
import { variantOf } from '../../analysis/comparisons.ts';
import { readBytes } from '../../files.ts';
import { counts } from '../../format.ts';
import { without, allNames } from '../../present.ts';
import type { Result } from '../../result/result.ts';
import { answersOfRun } from '../differences.ts';
import { html, nothing, paragraphs, tableHtml, type Html } from './page.ts';
import { withRounds } from '../../analysis/phases.ts';
import { temporary } from '../../servers/own/redirect.ts';

export type KeptConfig = ReturnType<typeof readConfigs>[number];

/** The text of a file inside the run's folder; empty if it cannot be read. */
export function textIn(folder: string, ...path: string[]): string[] {
  try {
    return [readBytes(join(folder, ...path), 16e6, { below: folder }).toString('utf8')];
  } catch {
    return [];
  }
}

/** Reads the variants' configs as they were composed for the first round; later ones differ only in ports and folders. */
export function readConfigs(folder: string, { variants }: Result) {
  return variants.flatMap(({ name, rounds: [first], server }) => {
    const file = `${server?.name}.conf`;
    const texts = textIn(folder, `round-${first?.round}`, name, file);
    return texts.map((text) => ({ variant: name, file, text }));
  });
}

/** Returns the settings that only a config or only its baseline has; undefined without a baseline of the same server. */
function changeOf({ variant, text }: KeptConfig, result: Result, configs: readonly KeptConfig[]) {
  const serverOf = (name: string) => variantOf(result, name)?.server?.name;
  const comparison = result.comparisons.find(
    (pair) => pair.variant === variant && serverOf(pair.baseline) === serverOf(variant),
  );
  const baseline = configs.find((config) => config.variant === comparison?.baseline);
  if (baseline === undefined) return undefined;
  const [before, after] = [settingsOf(baseline.text), settingsOf(text)];
  return {
    baseline: baseline.variant,
    gone: without(before, after),
    added: without(after, before),
    sameOrder: before.join('\n') === after.join('\n'),
  };
}

/** More differing names than these explain nothing. */
const mostNames = 2;

/**
 * Returns the names of the settings that differ from the baseline's. Leaves out values, which may be secret. Empty if many settings
 * differ.
 */
export function changedSettings(
  result: Result,
  configs: readonly KeptConfig[],
  variant: string,
): string[] {
  const ofVariant = configs.filter((config) => config.variant === variant);
  const lines = ofVariant.flatMap((config) => {
    const { gone = [], added = [] } = changeOf(config, result, configs) ?? {};
    return [...gone, ...added];
  });
  const names = new Set(
    lines.map((line) => /[^ :;=]+/.exec(line.split(' › ').at(-1) ?? '')?.[0] ?? ''),
  );
  return names.size > mostNames ? [] : [...names];
}

/**
 * Shows the settings, facts and answers that differ.
 * @param notes on further differences
 */
export function differencesHtml(result: Result, configs: readonly KeptConfig[], notes: Html): Html {
  const sides = withRounds(result.variants);
  if (sides.length < 2) return notes;
  const { table, alike } = answersOfRun(sides, configs.length === 0);
  return html`<section><h2>What differs</h2>
${configs.map((config) => configDifference(config, result, configs))}${tableHtml(table, 'what differs')}${paragraphs(alike === undefined ? [] : [`All sides answer alike: ${alike}.`])}${notes}</section>`;
}

/** Returns whether the configs are users' own, which may hold secrets. */
export function hasOwnConfigs({ variants }: Result, configs: readonly KeptConfig[]): boolean {
  const isOwn = variants.some(({ server }) => server?.config.some((file) => file.startsWith('/')));
  return configs.length > 0 && isOwn;
}

export function configsHtml(result: Result, configs: readonly KeptConfig[]): Html {
  if (configs.length === 0) return nothing;
  const warning = html`<p><strong>These are a person's own files: look through them before you pass this page on.</strong></p>\n`;
  const each = configs.map(
    ({ variant, file, text }) =>
      html`<details><summary>${variant}: ${file}, ${counts(text.trimEnd().split('\n').length, 'line')}</summary>${preHtml(`${file} of ${variant}`, text)}</details>\n`,
  );
  return html`<section><h2>Configs as they ran</h2>
${hasOwnConfigs(result, configs) ? warning : nothing}${each}</section>`;
}

function configDifference(
  config: KeptConfig,
  result: Result,
  configs: readonly KeptConfig[],
): Html {
  const change = changeOf(config, result, configs);
  if (change === undefined) return nothing;
  const { baseline, gone, added, sameOrder } = change;
  const lines = [
    ...gone.map((text) => ({ text, mark: html`<del>− ${text}</del>\n` })),
    ...added.map((text) => ({ text, mark: html`<ins>+ ${text}</ins>\n` })),
  ].sort((a, b) => (a.text < b.text ? -1 : 1));
  const names = `${config.variant} (+) and ${baseline} (−)`;
  if (lines.length === 0)
    return html`<p>The configs of ${names} have the same settings${sameOrder ? '' : ', in another order'}.</p>\n`;
  return html`<details${lines.length > 24 / configs.length ? '' : ' open'}><summary>${counts(lines.length, 'line')} of the configs of ${names} ${lines.length === 1 ? 'differs' : 'differ'}</summary>${preHtml(
    `differences between ${config.variant} and ${baseline}`,
    lines.map(({ mark }) => mark),
  )}</details>\n`;
}

function preHtml(name: string, text: string | readonly Html[]): Html {
  return html`<pre class="scroll" tabindex="0" role="region" aria-label="${name}"><code>${text}</code></pre>`;
}

/** Returns the settings without comments, each after the names of its blocks: "http › server › listen 80;". */
function settingsOf(text: string): string[] {
  const blocks: { indent: number; name: string }[] = [];
  return text.split('\n').flatMap((line) => {
    const setting = withoutPlace(line).trim();
    if (/^(?:#|\}?$)/.test(setting)) return [];
    const indent = line.search(/\S/);
    while ((blocks.at(-1)?.indent ?? -1) >= indent) blocks.pop();
    const path = [...allNames(blocks), setting].join(' › ');
    blocks.push({ indent, name: setting.replace(/ *[{:]$/, '') });
    return [path];
  });
}

/** Masks the values that change with each start: ports, folders, and the remark that names the line's file. */
function withoutPlace(line: string): string {
  return (
    line
      .replace(/ *# (?:(?:from )?\/.*:\d+|this machine|[\w.-]+\.conf)$/, '')
      .replaceAll(/\b127\.0\.0\.1:\d+/g, '127.0.0.1:PORT')
      .replace(/^(\s*(?:-\s*)?(?:port:|--?port=?)\s*)\d+/, '$1PORT')
      .replace(/^\d+ (?=\/)/, 'PORT ')
      .replaceAll(
        /\/bakeoff-[a-z]+-[\w-]+(?:\/[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}\b)?/g,
        '/FOLDER',
      )
      .replaceAll(/\/round-\d+\/[\w.-]+/g, '/ROUND')
      // The user's paths that were redirected. The list of changes has both.
      .replaceAll(/(["']?)[^\s"']*\/FOLDER\/temp\/[^\s"';]+\1/g, `(${temporary})`)
  );
}
