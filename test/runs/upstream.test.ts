// A user config that proxies to a running nginx.
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { cpusOf, readProcessors } from '../../lib/machine/processors.ts';
import { freePort } from '../../lib/servers/ports.ts';
import { untilAnswers } from '../fixtures/listening.ts';
import { isRunning } from '../fixtures/processes.ts';
import { newOut, readResult, wholeResult, startCommand, useHome } from '../scenario-run.ts';

const home = useHome(['k6', 'nginx']);

async function startUpstream(folder: string, core: number) {
  const port = await freePort();
  mkdirSync(folder);
  chmodSync(folder, 0o755);
  writeFileSync(
    join(folder, 'nginx.conf'),
    `daemon off; worker_processes 2; pid ${folder}/pid; error_log ${folder}/error.log; events { }
    http { access_log off; ${['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((module) => `${module}_temp_path ${folder}/${module};`).join(' ')}
      gzip on; gzip_comp_level 9;  gzip_proxied any; gzip_http_version 1.0; keepalive_requests 1000000;
      server { listen 127.0.0.1:${port}; default_type text/plain; root ${folder}/www; } }`,
  );
  mkdirSync(join(folder, 'www'));
  // Compression takes 1 or 2 ms, far more than everything else.
  writeFileSync(join(folder, 'www', 'index.html'), randomBytes(20_000).toString('hex'));
  const command = `-c ${core} ${home.env['NGINX_BIN']} -e ${folder}/error.log -c ${folder}/nginx.conf`;
  const child = spawn('taskset', command.split(' '), { stdio: 'ignore' });
  onTestFinished(async () => {
    child.kill('SIGTERM');
    if (child.exitCode === null) await once(child, 'exit');
  });
  await untilAnswers(`http://127.0.0.1:${port}/`);
  expect(isRunning(Number(readFileSync(join(folder, 'pid'), 'utf8')))).toBe(true);
  return port;
}

test('CPU time of a backend is reported separately from other programs', async () => {
  const [serverCpu, generatorCpu] = cpusOf(readProcessors().cores) as [number, number];
  const port = await startUpstream(join(home.folder, 'upstream'), serverCpu);
  const configs = ['front.conf', 'copy.conf'].map((name) => join(home.folder, name));
  for (const file of configs)
    writeFileSync(
      file,
      `events { }
      http { access_log off; upstream app { server 127.0.0.1:${port}; keepalive 20; }
        server { listen 8080; location / { proxy_pass http://app; proxy_http_version 1.1; proxy_set_header Connection ""; } } }`,
    );
  const out = newOut();
  const cores = `--server-cpus ${serverCpu} --generator-cpus ${generatorCpu}`;
  const options =
    `--rounds 1 --warmup 200ms --duration 1s --store none ${cores} --out ${out} --load`.split(' ');
  const run = startCommand(
    ['compare', ...configs, ...options, "wrk -c 10 -t 1 -H 'Accept-Encoding: gzip'"],
    { ...home.env, INIT_CWD: home.folder },
  );
  const { variants, warnings } = await wholeResult(run, out);
  const noises = variants.flatMap(({ rounds }) =>
    rounds.flatMap(({ phases }) => phases.map(({ noise }) => noise)),
  );
  expect(noises).toHaveLength(2);
  for (const noise of noises) {
    expect(noise?.upstreamShare).toBeGreaterThan(0);
    expect((noise?.upstreamShare ?? 0) + (noise?.serverOthersShare ?? 0)).toBeLessThanOrEqual(1.05);
  }
  const about = (pattern: RegExp) => warnings.filter((line) => pattern.test(line));
  expect(
    about(/^the backend used up to \d+ % of the server's core .*run it on other cores \(taskset\)/),
  ).toHaveLength(1);
  // A warning about other programs, such as other tests, excludes the backend.
  expect(
    about(/of the server's core .*: end what else runs on this machine(?!, but not the b)/),
  ).toEqual([]);
});

test('a stub replaces a backend with the same response time; an unused stub is refused', async () => {
  const folder = join(home.folder, 'stubbed');
  mkdirSync(folder);
  const sides = ['a.conf', 'b.conf'].map((name) => join(folder, name));
  for (const side of sides)
    writeFileSync(
      side,
      'events { } http { access_log off; server { listen 8080; location / { proxy_pass http://app:9000; } } }',
    );
  const compare = (upstreams: string, out: string) => {
    const args = `${upstreams} --rounds 1 --warmup 100ms --duration 300ms --store none --out ${out} --load`;
    return startCommand(['compare', ...sides, ...args.split(' '), 'wrk -c 5 -t 1 -d 1'], home.env);
  };
  const out = newOut();
  const run = compare('--upstream app:9000=stub:80ms:3B', out);
  expect(await run.ended, run.stderr()).toBe(0);
  for (const { latencyMs, load } of readResult(out).variants) {
    // The stub's thread shares a core with the generator, and a busy machine may delay both.
    expect(latencyMs?.p50).toBeGreaterThanOrEqual(80);
    expect(latencyMs?.p50).toBeLessThan(400);
    expect(load.bodyBytes).toBe(3);
  }
  const refused = compare('--upstream app:9000=stub:1ms --upstream db=stub:1ms', newOut());
  expect(await refused.ended).toBe(2);
  expect(refused.stderr()).toContain('--upstream db=stub:1ms: no side passes requests to db\n');
});
