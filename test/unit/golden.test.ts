// Whole reports of runs with synthetic figures, as in test/golden. `npx vitest run --project unit golden --update` writes them again.
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { htmlReport } from '../../lib/report/html/run-page.ts';
import { csvReport, markdownReport, terminalReport } from '../../lib/report/texts.ts';
import type { Result } from '../../lib/result/result.ts';
import { projectRoot } from '../../lib/setup/paths.ts';
import { h2Result } from '../fixtures/h2-result.ts';
import { answers, readErrors } from '../fixtures/phase.ts';
import { changed, openFileCache, result, workers } from '../fixtures/result.ts';

const failing = changed(openFileCache, ({ requests }) => ({
  responses: answers({ '2xx': requests - 3000, '5xx': 1000 }),
  errors: readErrors(2000),
}));
/** Three phases of one server, as of the article's three tables. */
const phases = [1200, 1400, 1390].map((rps) => ({ rps }));

const twoConfigs = result([workers, openFileCache]);
const runs: Readonly<Record<string, Result>> = {
  'two configs': twoConfigs,
  failures: result([workers, failing], { warnings: ['A warning.'], footnotes: ['A footnote.'] }),
  'three phases': await h2Result('nghttpd-img', { 'nghttpd-1024': { rps: [1330], phases } }),
  'no round': result([], { state: 'partial', looks: [4, 6, 10] }),
};

const goldenFile = (name: string, format: string): string =>
  join(projectRoot, 'test/golden', `${name.replaceAll(' ', '-')}.${format}`);

/**
 * The page's words, a row of a table on a line, and how often it has each tag and class: without the plots' data.
 */
function shown(page: string): string {
  const text = page.replaceAll(/<(style|script)\b[^]*?<\/\1>/g, '');
  const rows = text
    .replaceAll(/\s+/g, ' ')
    .replaceAll(/<\/(?:h\d|p|li|tr|summary|caption)>/g, '\n');
  const words = rows.replaceAll(/<\/t[dh]>/g, ' | ').replaceAll(/<[^>]*>/g, '');
  const markup = new Map<string, number>();
  for (const [what] of text.matchAll(/<\w+|(?<= )(?:class|role|scope)="[^"]*"/g))
    markup.set(what, (markup.get(what) ?? 0) + 1);
  const counts = [...markup].sort().map(([what, count]) => `${what} ${count}`);
  return `${words
    .replaceAll(/ *\| *(?=\n)/g, '')
    .replaceAll(/\s*\n\s*/g, '\n')
    .trim()}\n\n${counts.join('\n')}\n`;
}

for (const [name, run] of Object.entries(runs))
  test(`on the terminal: ${name}`, async () => {
    // The page of two configs has each load in detail too.
    const options = { width: 100, colour: false, verbose: name === 'three phases' };
    const lines = terminalReport(run, [], ['The end.'], options);
    await expect(`${lines.join('\n')}\n`).toMatchFileSnapshot(goldenFile(name, 'txt'));
  });

test('in Markdown and CSV, and on the page', async () => {
  const page = shown(await htmlReport(twoConfigs, [], []));
  const texts = {
    md: markdownReport(twoConfigs, []),
    csv: csvReport(twoConfigs),
    'page.txt': page,
  };
  for (const [format, text] of Object.entries(texts))
    await expect(text).toMatchFileSnapshot(goldenFile('two configs', format));
});
