// A comparison over HTTP/3, with an installed server that supports it.
import { chmodSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { total } from '../../lib/analysis/statistics.ts';
import { newFolder } from '../fixtures/new-folder.ts';
import { newOut, readResult, startCommand, startScenario, useHome } from '../scenario-run.ts';

const home = useHome(['k6', 'caddy']);

test('figures match the access logs; a server without HTTP/3 is refused', async () => {
  const folder = newFolder();
  chmodSync(folder, 0o777);
  const caddyfile = (options: string): string => {
    const file = join(folder, `Caddyfile${options.length}`);
    writeFileSync(
      file,
      `{
          admin off
          https_port {$PORT}
          auto_https disable_redirects
          skip_install_trust
          storage file_system ${folder}/{$SIDE}
          ${options}
        }
        https://web.test {
          bind 127.0.0.1
          tls internal
          log {
            output file ${folder}/{$SIDE}.log
          }
          respond "a page of caddy"
        }\n`,
    );
    return file;
  };
  const started = async (file: string) => {
    const out = newOut();
    const sides = ['a', 'b'].map(
      (name) => `${name}=env SIDE=${name} caddy run --adapter caddyfile --config ${file}`,
    );
    const args = `--h3 --url https://web.test/ --rounds 1 --warmup 0 --store none --out ${out} --load`;
    const run = startCommand(
      ['compare', ...sides, ...args.split(' '), 'h2load -n 600 -c 6 -m 5'],
      home.env,
    );
    return { out, code: await run.ended, stderr: run.stderr() };
  };
  const { out, code, stderr } = await started(caddyfile(''));
  expect(code, stderr).toBe(0);
  for (const { name, load, rounds } of readResult(out).variants) {
    const [phase] = rounds[0]?.phases ?? [];
    const logged = readFileSync(join(folder, `${name}.log`), 'utf8')
      .split('\n')
      .filter((line) => line.includes('"proto":"HTTP/3.0"'))
      .map((line) => JSON.parse(line) as { status: number; size: number });
    expect([load.protocol, logged.length, phase?.requests]).toEqual(['h3', 600, 600]);
    expect(phase?.responses['2xx']).toBe(logged.filter(({ status }) => status === 200).length);
    expect(Number(load.bodyBytes) * 600).toBe(logged.reduce((sum, { size }) => sum + size, 0));
  }
  const without = await started(
    caddyfile(`servers {
            protocols h1 h2
          }`),
  );
  expect(without.code).toBe(1);
  expect(without.stderr).toMatch(/^a: https:\S+ has no HTTP\/3: nothing answers QUIC on its UDP/m);
});

test('loses the configured share of packets, over HTTP/2 and HTTP/3', async () => {
  const out = newOut();
  const args = '--variants h2-loss-30,h3-loss-30 --rounds 1 --duration 2s --store none';
  const run = startScenario(`http3-loss ${args} --out ${out}`, home.env);
  // With so many losses more than 1 % of the requests may hang, and nothing else may fail.
  if ((await run.ended) !== 0) {
    expect(await run.ended, run.stderr()).toBe(1);
    expect(run.stderr()).toMatch(/ 0 errors, \d+ hung, /);
  }
  const measured = readResult(out).variants.filter(({ rounds }) => rounds.length > 0);
  expect(measured.map(({ name }) => name)).toEqual(['h2-loss-30', 'h3-loss-30']);
  expect(run.stderr() + run.stdout()).toContain('pages of 10 files');
  for (const { name, rounds } of measured) {
    const ways = rounds.flatMap(({ phases: [first] }) =>
      first?.network ? [first.network.toServer, first.network.toClient] : [],
    );
    const packets = total(ways, (way) => way.packets);
    const lost = total(ways, (way) => way.lost);
    const spread = 5 * Math.sqrt(0.03 * 0.97 * packets);
    expect(Math.abs(lost - 0.03 * packets), `${name}: ${lost} of ${packets}`).toBeLessThan(spread);
    expect(packets).toBeGreaterThan(300);
    const [first] = rounds[0]?.phases ?? [];
    const pages = total(first?.latencyMs.histogram ?? [], ([, count]) => count);
    // On each of 4 connections, a page that ends in the window may have started earlier.
    expect(pages).toBeLessThanOrEqual((first?.requests ?? 0) / 10 + 4);
    expect(first?.latencyMs.min).toBeGreaterThan(50);
  }
});
