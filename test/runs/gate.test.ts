// A gate on a difference.
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
  const nginx = (connections: number, lines: string) =>
    `events { worker_connections ${connections}; }\nhttp {\n  access_log off; ${lines}\n  server { listen 8080; root ${www}; }\n}\n`;
  writeFileSync(join(home.folder, 'small.conf'), nginx(512, ''));
  // nginx fills the memory for all of them when it starts, however busy the machine is.
  writeFileSync(join(home.folder, 'large.conf'), nginx(200_000, 'gzip on;'));
});

test('--fail-if slower exits with 3; without perf only the cause is missing', async () => {
  const out = newOut();
  const load = ['--url', '/large.html', '--load', "wrk -c 4 -t 1 -H 'Accept-Encoding: gzip'"];
  const flags = `--metric memory --fail-if slower --why --json --quick --duration 0.3s --store none --out ${out}`;
  const args = ['compare', 'small.conf', 'large.conf', ...flags.split(' '), ...load];
  const env = { ...home.env, INIT_CWD: home.folder, PERF_BIN: '/bin/false' };
  const run = startCommand(args, env);
  expect(await run.ended, run.stderr()).toBe(3);
  expect(run.stderr()).toContain('--fail-if slower: large against small: memory ');
  const result = JSON.parse(run.stdout()) as ReturnType<typeof readResult>;
  expect(readResult(out)).toEqual(result);
  expect(result.comparisons).toMatchObject([{ variant: 'large', verdict: 'slower' }]);
  expect(result.why).toEqual({
    missing: [expect.stringMatching(/^perf (does not look at these servers: |needs root: )/)],
    sides: [],
  });
  const [plain, packed] = result.variants.map(({ rounds }) => rounds[0]?.phases[0]);
  const bodyOf = (phase: typeof plain) => (phase?.bytes.body ?? NaN) / (phase?.requests ?? NaN);
  expect(bodyOf(plain)).toBeCloseTo(40_000, -3);
  // The header arrived, so the body is compressed; random hex digits compress to half.
  expect(bodyOf(packed)).toBeLessThan(30_000);
});
