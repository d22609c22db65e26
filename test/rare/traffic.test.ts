// An access log against two configs of nginx that differ for one location.
import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { newOut, readResult, startCommand, useHome } from '../scenario-run.ts';

const home = useHome(['k6', 'nginx']);

test('the requests of a log are made by their shares, and the page that differs is found', async () => {
  const www = join(home.folder, 'www');
  mkdirSync(join(www, 'api'), { recursive: true });
  for (const page of ['index', 'a', 'b']) writeFileSync(join(www, `${page}.html`), page.repeat(50));
  // Compressed in about a millisecond, far more than the rest.
  const rows = Array.from({ length: 4000 }, (_, index) => `{"id":${index},"x":"${index ** 3}"}`);
  writeFileSync(join(www, 'api', 'data.json'), rows.join('\n'));
  const line = (request: string, status = 200) =>
    `1.2.3.4 - - [10/Oct/2025:13:55:36 +0000] "${request} HTTP/1.1" ${status} 612 "-" "-"\n`;
  writeFileSync(
    join(home.folder, 'access.log'),
    [
      line('GET /').repeat(50),
      line('GET /a.html').repeat(20),
      line('HEAD /b.html').repeat(10),
      line('GET /api/data.json?token=secret').repeat(10),
      line('GET /not-here', 404).repeat(8),
      line('GET /gone.html').repeat(2),
      line('POST /a.html'),
    ].join(''),
  );
  for (const [name, own] of [
    ['a', ''],
    ['b', 'gzip on; gzip_comp_level 9; gzip_types application/json;'],
  ])
    writeFileSync(
      join(home.folder, `${name}.conf`),
      `events { }
      http { types { text/html html; application/json json; } access_log off;
        server { listen 8080; root ${www}; location /api/ { ${own} } } }`,
    );
  const out = newOut();
  const run = startCommand(
    `compare a.conf b.conf --log access.log --rounds 4 --duration 500ms --store none --no-why --out ${out} --load`
      .split(' ')
      .concat("wrk -c 10 -t 1 -H 'Accept-Encoding: gzip'"),
    { ...home.env, INIT_CWD: home.folder },
  );
  const code = await run.ended;
  const said = run.stdout() + run.stderr();
  expect(code, said).toBe(0);
  expect(said).toMatch(/b takes another time than a for \/api\/data\.json \(/);
  expect(said).not.toContain('secret');

  const result = readResult(out);
  for (const { rounds, successRatio } of result.variants) {
    expect(successRatio).toBe(1);
    for (const { phases } of rounds) {
      const [phase = expect.fail()] = phases;
      const { pages, requests, errors, inFlight } = phase;
      expect(errors.total).toBe(0);
      const shares = { '/': 0.5, '/a.html': 0.2, 'HEAD /b.html': 0.1, '/api/data.json': 0.1 };
      for (const [name, share] of Object.entries(shares)) {
        const page = pages.find((one) => one.page === name);
        // Within a window and its turns those under way at the ends may be of any page.
        expect(Math.abs((page?.responses ?? 0) - share * requests)).toBeLessThan(
          0.02 * requests + 20 + inFlight,
        );
        expect(page?.unexpected).toBe(0);
        if (name === '/') expect(page?.bodyBytes).toBe(250 * (page?.responses ?? 0));
        if (name === 'HEAD /b.html') expect(page?.bodyBytes).toBe(0);
      }
    }
  }
  const kept = readFileSync(join(out, result.run, 'result.json'), 'utf8');
  expect(kept).not.toContain('secret');
  const requests = readdirSync(join(out, result.run)).find((file) => file.startsWith('requests-'));
  expect(statSync(join(out, result.run, requests as string)).mode & 0o777).toBe(0o600);
}, 120_000);
