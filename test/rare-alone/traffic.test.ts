// An access log against two nginx configs that differ in one location. Which pages take another time is for unit tests.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { newOut, readResult, startCommand, useHome } from '../scenario-run.ts';

const home = useHome(['k6', 'nginx']);

test('requests of a log are sent in proportion, and each page has its figures', async () => {
  const www = join(home.folder, 'www');
  mkdirSync(join(www, 'api'), { recursive: true });
  for (const page of ['index', 'a', 'b']) writeFileSync(join(www, `${page}.html`), page.repeat(50));
  // Compression takes about a millisecond, far more than everything else.
  const rows = Array.from({ length: 4000 }, (_, index) => `{"id":${index},"x":"${index ** 3}"}`);
  writeFileSync(join(www, 'api', 'data.json'), rows.join('\n'));
  const lines = (count: number, request: string, status = 200) =>
    `1.2.3.4 - - [10/Oct/2025:13:55:36 +0000] "${request} HTTP/1.1" ${status} 612 "-" "-"\n`.repeat(
      count,
    );
  writeFileSync(
    join(home.folder, 'access.log'),
    lines(50, 'GET /') +
      lines(20, 'GET /a.html') +
      lines(10, 'HEAD /b.html') +
      lines(10, 'GET /api/data.json?token=secret') +
      lines(10, 'GET /not-here', 404) +
      lines(1, 'POST /a.html'),
  );
  for (const [name, lines] of [
    ['a', ''],
    ['b', 'gzip on; gzip_comp_level 9; gzip_types application/json;'],
  ])
    writeFileSync(
      join(home.folder, `${name}.conf`),
      `events { }
      http { types { text/html html; application/json json; } access_log off;
        server { listen 8080; root ${www}; location /api/ { ${lines} } } }`,
    );
  const out = newOut();
  const run = startCommand(
    `compare a.conf b.conf --log access.log --rounds 4 --warmup 100ms --duration 500ms --store none --no-look --out ${out} --load`
      .split(' ')
      .concat("wrk -c 10 -t 1 -H 'Accept-Encoding: gzip'"),
    { ...home.env, INIT_CWD: home.folder },
  );
  const code = await run.ended;
  const output = run.stdout() + run.stderr();
  expect(code, output).toBe(0);
  expect(output).toContain('1 POST, which may change data (--methods all)');
  // Only there does b compress.
  expect(output).toMatch(/^\/api\/data\.json +10 % +[\d,]{7} .* \d\d,\d{3} /m);
  expect(output).toMatch(/^\/ +50 % +250 .* 250 /m);
  const result = readResult(out);
  const kept = readFileSync(join(out, result.run, 'result.json'), 'utf8');
  expect(output + kept).not.toContain('secret');
  for (const { phases } of result.variants.flatMap(({ rounds }) => rounds))
    for (const { pages, requests, errors, inFlight } of phases) {
      expect(errors.total).toBe(0);
      expect(pages.find(({ page }) => page === '/')?.alone?.responses).toBeGreaterThan(0);
      const shares = { '/': 0.5, '/a.html': 0.2, 'HEAD /b.html': 0.1, '/api/data.json': 0.1 };
      for (const [name, share] of Object.entries(shares)) {
        const page = pages.find((page) => page.page === name);
        // Requests in flight at the ends of the window and its turns may be for any page.
        const allowed = 0.02 * requests + 20 + inFlight;
        expect(Math.abs((page?.responses ?? 0) - share * requests)).toBeLessThan(allowed);
        expect(page?.unexpected).toBe(0);
      }
    }
});
