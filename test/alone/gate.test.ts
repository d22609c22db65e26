// A gate on a difference, on a machine with nothing else to do: a side that starves has no verdict.
import { randomBytes } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { newOut, readResult, startCommand, useHome } from '../scenario-run.ts';

const home = useHome(['k6', 'nginx']);
beforeAll(() => {
  const www = join(home.folder, 'www');
  mkdirSync(www);
  writeFileSync(join(www, 'large.html'), randomBytes(20_000).toString('hex'));
  const nginx = (lines: string) =>
    `events { }\nhttp {\n  ${lines}\n  server { listen 8080; root ${www}; }\n}\n`;
  writeFileSync(join(home.folder, 'fast.conf'), nginx('access_log off;'));
  // Compression takes 1 or 2 ms.
  const slow = nginx('access_log off; gzip on; gzip_comp_level 9;');
  writeFileSync(join(home.folder, 'slow.conf'), slow);
});

test('--fail-if slower exits with 3; without perf only the cause is missing', async () => {
  const out = newOut();
  const load = ['--url', '/large.html', '--load', "wrk -c 4 -t 1 -H 'Accept-Encoding: gzip'"];
  const flags = `--fail-if slower --why --json --quick --duration 0.3s --store none --out ${out}`;
  const args = ['compare', 'fast.conf', 'slow.conf', ...flags.split(' '), ...load];
  const env = { ...home.env, INIT_CWD: home.folder, PERF_BIN: '/bin/false' };
  const run = startCommand(args, env);
  expect(await run.ended, run.stderr()).toBe(3);
  expect(run.stderr()).toContain('--fail-if slower: slow is slower than fast\n');
  const result = JSON.parse(run.stdout()) as ReturnType<typeof readResult>;
  expect(readResult(out)).toEqual(result);
  expect(result.comparisons).toMatchObject([{ variant: 'slow', verdict: 'slower' }]);
  expect(result.why).toEqual({
    missing: [expect.stringMatching(/^perf (does not look at these servers: |needs root: )/)],
    sides: [],
  });
  const [fast, slow] = result.variants.map(({ rounds }) => rounds[0]?.phases[0]);
  const bodyOf = (phase: typeof fast) => (phase?.bytes.body ?? NaN) / (phase?.requests ?? NaN);
  expect(bodyOf(fast)).toBeCloseTo(40_000, -3);
  // The header arrived, so the body is compressed; random hex digits compress to half.
  expect(bodyOf(slow)).toBeLessThan(30_000);
});
