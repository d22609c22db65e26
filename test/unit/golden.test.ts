// Whole reports of runs with synthetic figures, as in test/golden. `npx vitest run --project unit golden --update` writes them again.
import { expect, test } from 'vitest';
import { htmlReport } from '../../lib/report/html/run-page.ts';
import { storedLines } from '../../lib/report/sentences.ts';
import type { Result } from '../../lib/result/result.ts';
import { expectGolden, goldenFile } from '../fixtures/golden.ts';
import { h2Result } from '../fixtures/h2-result.ts';
import { answers, phase } from '../fixtures/phase.ts';
import { changed, openFileCache, result, withPages, workers } from '../fixtures/result.ts';

const { errors: noErrors } = phase({ requests: 1 });
/** Requests/s of four rounds. */
const about = (rps: number) => ({ rps: [0.996, 1.003, 0.999, 1.002].map((part) => rps * part) });

const failing = changed(openFileCache, ({ requests }) => ({
  responses: answers({ '2xx': requests - 3000, '5xx': 1000 }),
  errors: { ...noErrors, read: 2000, total: 2000 },
}));
/** Three phases of one server, as of the article's three tables. */
const phases = [1200, 1400, 1390].map((rps) => ({ rps }));

const runs: Readonly<Record<string, Result>> = {
  'two configs': result([workers, openFileCache]),
  'several pages': result([
    withPages(workers, { '/': 12, '/style.css': 3 }),
    withPages(openFileCache, { '/': 9, '/style.css': 3 }),
  ]),
  failures: result([workers, failing], { warnings: ['A warning.'], footnotes: ['A footnote.'] }),
  'three phases': await h2Result('nghttpd-img', { 'nghttpd-1024': { rps: [1330], phases } }),
  'published only': await h2Result('h2o-vs-nginx-h2', { nginx: about(21_230), h2o: about(34_450) }),
  'against itself': await h2Result('aa', { a: about(100_000), again: about(100_100) }),
  'no round': result([], { state: 'partial', looks: [4, 6, 10] }),
};

/** The page's text of the core: without style, scripts, the plots' data, and the feature's line on where the figures are stored. */
function shown(page: string, run: Result): string {
  let text = page.replaceAll(/<(style|script)\b[^]*?<\/\1>/g, '').replaceAll(/>\s*</g, '>\n<');
  for (const line of storedLines(run)) text = text.replace(`<p>${line}.</p>\n`, '');
  return text;
}

for (const [name, run] of Object.entries(runs))
  test(`reports: ${name}`, () => expectGolden(name, run));

test.each(['two configs', 'three phases'])('page: %s', async (name) => {
  const run = runs[name] as Result;
  const page = await htmlReport(run, []);
  await expect(shown(page, run)).toMatchFileSnapshot(goldenFile(name, 'html'));
});
