// The command `knobs` with a user config and the real nginx.
import { mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { stillRunning } from '../fixtures/processes.ts';
import {
  newOut,
  readResult,
  wholeResult,
  startCommand,
  startedOf,
  useHome,
  type ScenarioRun,
} from '../scenario-run.ts';

const home = useHome(['k6', 'nginx']);
let configs = '';
let text = '';
beforeAll(async () => {
  configs = join(home.folder, 'configs');
  const www = join(home.folder, 'www');
  for (const folder of [configs, www]) mkdirSync(folder);
  writeFileSync(join(www, 'index.html'), 'hello\n');
  // nginx fills the memory for all connections when it starts: it needs less for fewer, however busy the machine is.
  text = `events { worker_connections 200000; } # many\nhttp {\n  access_log off;\n  etag off;\n  server {\n    listen 8080;\n    root ${www};\n  }\n}\n`;
  writeFileSync(join(configs, 'own.conf'), text);
}, 300_000);

function knobs(flags: string): ScenarioRun {
  return startCommand(`knobs own.conf --duration 0.2s --metric memory --store none ${flags}`, {
    ...home.env,
    INIT_CWD: configs,
  });
}

test('helpful knobs are found, verified, and printed for copying', async () => {
  const out = newOut();
  const run = knobs(
    `--knobs worker-connections,etag-off,access-log,ssl-buffer-size --rounds 4 --no-look --out ${out}`,
  );
  expect(await run.ended, run.stderr()).toBe(0);
  const output = run.stdout();
  expect(output).toMatch(/^left out, already so: etag-off$/m);
  expect(output).toMatch(/^left out, requests are not logged: access-log-off$/m);
  expect(output).toMatch(/^left out, only with TLS: ssl-buffer-size$/m);
  expect(output).toMatch(
    /^knob +memory +CPU\/request(?: +p99)? +here\nworker-connections +−[\d.]+ % \[[−\d., ]+\] .* helps$/m,
  );
  expect(output).toMatch(/^A closer look at worker-connections/m);
  expect(output).toMatch(/^ {2}worker-connections: worker_connections 10240;$/m);
  expect(output).toMatch(
    /^Verified: with worker-connections it is memory −[\d.]+ % \(95 % interval −[\d.]+ % to −[\d.]+ %\) against own\.conf as it is\./m,
  );
  const file = join(configs, 'own.conf');
  expect(output).toContain('\nTo paste:\n');
  expect(output).toContain(
    `\nevents { } at ${file}:1:\n  worker_connections 10240;  # instead of ${file}:1: worker_connections 200000;\n`,
  );
  expect(readFileSync(file, 'utf8')).toBe(text);
  expect(readdirSync(out).map((name) => name.replace(/^[\dT-]+-/, ''))).toEqual([
    'knobs',
    'knobs-closer',
    'knobs-together',
  ]);
});

test('pages, status and build flags work as for compare; JSON output for a config without improvements', async () => {
  const nginx = home.env['NGINX_BIN'] as string;
  writeFileSync(join(configs, 'urls'), '/none\nhttp://localhost/none/more 3\n');
  // Reports a different version.
  writeFileSync(
    join(configs, 'build'),
    `#!/bin/sh\n[ "$1" = -V ] || exec ${nginx} "$@"\n${nginx} -V 2>&1 | sed s,nginx/[0-9.]*,nginx/1.99.9, >&2\n`,
    { mode: 0o755 },
  );
  const out = newOut();
  const run = knobs(
    `--knobs multi-accept,etag --rounds 1 --urls urls --status 404 --bin nginx=./build --json --out ${out}`,
  );
  const { variants } = await wholeResult(run, out);
  expect(variants.map(({ name }) => name)).toEqual(['as-it-is', 'multi-accept']);
  for (const variant of variants)
    expect(variant).toMatchObject({
      server: { version: '1.99.9' },
      load: { page: '/none', pages: 2, status: 404 },
      successRatio: 1,
    });
  expect(JSON.parse(run.stdout())).toMatchObject({
    knobs: [
      { name: 'multi-accept', lines: 'multi_accept on;', why: 'needs 4 rounds', closer: false },
    ],
    leftOut: [{ name: 'etag-off', why: 'already so' }],
    together: null,
  });
  expect(run.stderr()).toContain(
    'is known to help this config here, so there is nothing to verify; 1 of 1 value is undecided',
  );
});

test('Ctrl-C keeps finished rounds and leaves nothing running', async () => {
  const out = newOut();
  const run = knobs(`--knobs worker-connections,multi-accept --rounds 100 --out ${out}`);
  const started = await startedOf(run, () =>
    expect(readResult(out).variants[0]?.rounds.length).toBeGreaterThanOrEqual(1),
  );
  run.kill('SIGINT');
  expect(await run.ended).toBe(130);
  expect(stillRunning(started)).toEqual([]);
  expect(readResult(out).state).toBe('partial');
  expect(run.stdout()).toMatch(/^worker-connections +[+−±]/m);
  expect(run.stdout()).not.toContain('To paste:');
});

test('a knob that does not apply is refused before the measurement', async () => {
  const run = knobs(`--knobs etag-off,ssl-buffer-size --out ${newOut()}`);
  expect(await run.ended).toBe(1);
  expect(run.stderr()).toContain('no knob of the catalogue applies to own.conf');
});
