// The configs as they ran, and the lines in which they differ.
import { variantOf } from '../../analysis/comparisons.ts';
import type { Result } from '../../result/result.ts';
import { diffLines, nearDifferences, type DiffLine } from './line-diff.ts';
import { html, nothing, type Html } from './markup.ts';

/** A variant's config as it was composed for its first round. */
export interface ComposedConfig { variant: string; file: string; text: string }

/** Whether what is shown of them is a person's own, which may have secrets in it. */
export function hasOwnConfigs({ variants }: Result, configs: readonly ComposedConfig[]): boolean {
  return configs.length > 0 && variants.some(({ server }) => server?.config.some((name) => name.startsWith('/')) === true);
}

export function configsHtml(result: Result, configs: readonly ComposedConfig[]): Html {
  if (configs.length === 0) return nothing;
  return html`<section><h2>Configs as they ran</h2>
<p>Each with the lines that differ from its baseline's (+ has it, − has it not). Ports and folders differ in every round, remarks say where a line comes from: neither is marked.${
  hasOwnConfigs(result, configs) ? html` <strong>These are a person's own files: look through them before you pass this page on.</strong>` : nothing}</p>
${configs.map((config) => configHtml(result, config, configs))}</section>`;
}

function configHtml(result: Result, config: ComposedConfig, configs: readonly ComposedConfig[]): Html {
  const baseline = baselineOf(result, config.variant, configs);
  const lines = linesOf(config.text);
  const diff = baseline === undefined ? undefined : diffLines(linesOf(baseline.text), lines, withoutPlace);
  const whole = diff ?? lines.map((text): DiffLine => ({ kind: 'same', text }));
  return html`<section class="config"><h3>${config.variant}</h3>
${diff === undefined || baseline === undefined ? nothing : differencesHtml(diff, baseline.variant)}<details><summary>${config.file}, ${lines.length} lines</summary>${preHtml(whole.filter(({ kind }) => kind !== 'removed'), `${config.file} of ${config.variant}`)}</details></section>
`;
}

function differencesHtml(diff: readonly DiffLine[], baseline: string): Html {
  const differing = diff.filter(({ kind }) => kind !== 'same').length;
  if (differing === 0) return html`<p>The same as ${baseline}.</p>`;
  const shown = nearDifferences(diff);
  if (shown.at(-1) === 'gap') shown.pop();
  return html`<p>${differing} ${differing === 1 ? 'line differs' : 'lines differ'} from ${baseline}:</p>${preHtml(shown, `differences from ${baseline}`)}`;
}

function preHtml(lines: readonly (DiffLine | 'gap')[], name: string): Html {
  return html`<pre class="scroll" tabindex="0" role="region" aria-label="${name}"><code>${lines.map((line) => {
    if (line === 'gap') return html`<span class="gap">⋯</span>\n`;
    const { kind, text } = line;
    if (kind === 'same') return html`<span>  ${text}</span>\n`;
    return kind === 'added' ? html`<ins>+ ${text}</ins>\n` : html`<del>− ${text}</del>\n`;
  })}</code></pre>`;
}

/** The config of the variant that this one is taken against, where it is one of the same server. */
function baselineOf(result: Result, variant: string, configs: readonly ComposedConfig[]): ComposedConfig | undefined {
  const serverOf = (name: string): string | undefined => variantOf(result, name)?.server?.name;
  const names = result.comparisons.filter((one) => one.variant === variant).map(({ baseline }) => baseline);
  const name = names.find((one) => serverOf(one) === serverOf(variant));
  return configs.find((config) => config.variant === name);
}

function linesOf(text: string): string[] {
  return text.replace(/\n$/, '').split('\n');
}

/** A line without what is another one for each start of a server, its port and its folders, and without the remark on where it comes from. */
function withoutPlace(line: string): string {
  return line
    .replace(/^# (?:Composed of .*|.* as it runs here[:.].*)/, '')
    .replace(/ *# (?:from \/.*:\d+|this machine|[\w.-]+\.conf)$/, '')
    .replaceAll(/\b127\.0\.0\.1:\d+/g, '127.0.0.1:PORT')
    .replace(/^(\s*(?:-\s*)?(?:port:|--?port=?)\s*)\d+/, '$1PORT')
    .replace(/^\d+ (?=\/)/, 'PORT ')
    .replaceAll(/\/bakeoff-[a-z]+-[\w-]+(?:\/[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}\b)?/g, '/FOLDER')
    .replaceAll(/\/round-\d+\/[\w.-]+/g, '/ROUND');
}
