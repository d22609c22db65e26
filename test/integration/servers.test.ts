// The real servers with the shipped configs.
import { execFileSync } from 'node:child_process';
import { readFile, readdir } from 'node:fs/promises';
import { connect } from 'node:net';
import { describe, expect, it } from 'vitest';
import { configOf, isConfigured } from '../../lib/scenario/variants.ts';
import { loadScenarios } from '../../lib/scenario/catalogue.ts';
import { h2o, nghttpd, nginx } from '../../lib/scenario/index.ts';
import type { ConfiguredServer } from '../../lib/scenario/model.ts';
import { imagePage } from '../../lib/servers/docroot.ts';
import { getPage, negotiate } from '../fixtures/page.ts';
import { isRunning } from '../fixtures/processes.ts';
import { configFileOf, processesOf, servers, titleOf, useServers } from '../fixtures/servers.ts';

const test = useServers();

const shippedPage = (docroot?: string): Promise<Buffer> =>
  readFile(new URL(`../../server-configs/www/${docroot}/index.html`, import.meta.url));

describe('shipped configs', async () => {
  const variants = (await loadScenarios()).flatMap(({ page, variants }) =>
    variants.flatMap(({ server }) =>
      typeof server === 'string' || !isConfigured(server)
        ? []
        : [{ title: titleOf(server), server, page }],
    ),
  );
  const distinct = [...new Map(variants.map((variant) => [variant.title, variant])).values()];

  it('are all used by a scenario', async () => {
    const used = (wanted: string) =>
      variants.flatMap(({ server }) =>
        server.name === wanted ? configOf(server).map((name) => `${name}.conf`) : [],
      );
    for (const name of ['nginx', 'h2o', 'nghttpd']) {
      const files = await readdir(new URL(`../../server-configs/${name}/`, import.meta.url));
      // Layers for use in user scenarios.
      const shipped = files.filter((file) => file !== 'tls.conf');
      expect([...new Set(used(name))].toSorted()).toEqual(shipped.toSorted());
    }
  });

  it.each(distinct)(
    '$title serves the page with its workers on its cores, and leaves nothing behind',
    async ({ server: spec, page }) => {
      const server = await test.start(spec, { page, workers: 2 });
      const { status, type, body } = await getPage(
        server.origin + page.path,
        server.origin.startsWith('http:'),
      );
      expect({ status, type }).toEqual({ status: 200, type: 'text/html' });
      expect(
        body.equals(
          page.docroot === 'images' ? Buffer.from(imagePage()) : await shippedPage(page.docroot),
        ),
      ).toBe(true);
      expect(server.version).toMatch(/^\d+\.\d+\.\d+/);
      expect(server).toMatchObject({ name: spec.name, workers: 2 });

      const pids = processesOf(server);
      if (spec.name === 'nginx') expect(pids).toHaveLength(1 + 2);
      // In addition to the serving threads, one thread distributes connections or resolves names.
      else expect((await readdir(`/proc/${server.pid}/task`)).length).toBeGreaterThanOrEqual(2);
      for (const pid of pids)
        expect(await readFile(`/proc/${pid}/status`, 'utf8')).toMatch(/^Cpus_allowed_list:\t0$/m);
      await server.stop();
      await server.stop();
      expect(pids.filter(isRunning)).toEqual([]);
      expect(await test.scratchFolders()).toEqual([]);
      expect(await readFile(server.logFile, 'utf8')).not.toMatch(
        /\[(warn|error|crit|alert|emerg)\]|failed/,
      );
      expect(await readFile(configFileOf(server), 'utf8')).toMatch(
        /^(worker_processes 2;|num-threads: 2 |--workers=2 )/m,
      );
    },
  );
});

describe('TLS', () => {
  const oldTls = { maxVersion: 'TLSv1.2', ciphers: 'ECDHE-RSA-AES128-GCM-SHA256' } as const;

  it.each([
    [nginx(['h2-tuned'], { workers: 1 }), 'P-256:P-384', 'secp384r1'],
    [nginx(['h2-tuned', 'curve-p256'], { workers: 1 }), 'P-384:P-256', 'prime256v1'],
    // The server uses the client's preference.
    [h2o(['h2-tuned'], { workers: 1 }), 'P-256:P-384', 'prime256v1'],
    [nghttpd(['h2'], { workers: 1 }), 'P-384:P-256', 'prime256v1'],
  ])(
    '%j negotiates the cipher of the article; from the curves %s it negotiates %s',
    async (spec, ecdhCurve, curve) => {
      const { origin } = await test.start(spec);
      expect(await negotiate(origin, { ...oldTls, ecdhCurve })).toEqual({
        version: 'TLSv1.2',
        cipher: 'TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256',
        curve,
        alpn: 'h2',
      });
    },
  );

  it('1.3 is available unless the config of the article disables it', async () => {
    const versionOf = async (spec: ConfiguredServer) =>
      (await negotiate((await test.start(spec)).origin, {})).version;
    expect(await versionOf(nginx(['h2-tuned'], { workers: 1 }))).toBe('TLSv1.2');
    for (const [, spec] of servers.slice(1)) expect(await versionOf(spec)).toBe('TLSv1.3');
  });
});

const limitOf = async (pid: number): Promise<(string | undefined)[]> =>
  /^Max open files\s+(\d+)\s+(\d+)/m
    .exec(await readFile(`/proc/${pid}/limits`, 'utf8'))
    ?.slice(1) ?? [];

it.each(servers)(
  'the limit of open files of %s is from the config, or the hard limit',
  async (_, spec) => {
    const limited = await test.start({ ...spec, fileLimit: 1030 }, { load: { connections: 5000 } });
    for (const pid of processesOf(limited)) expect(await limitOf(pid)).toEqual(['1030', '1030']);
    await limited.stop();
    const usual = await test.start(spec, { load: { connections: 100 } });
    const hard = execFileSync('sh', ['-c', 'ulimit -Hn'], { encoding: 'utf8' }).trim();
    for (const pid of processesOf(usual)) expect(await limitOf(pid)).toEqual([hard, hard]);
  },
);

it('closes a connection after 100 requests, or never with keepalive-unlimited', async () => {
  const answersOnOneConnection = async (config: string[]) => {
    const server = await test.start(nginx(config, { workers: 1 }));
    const socket = connect(Number(new URL(server.origin).port), '127.0.0.1');
    const head = 'HEAD / HTTP/1.1\r\nHost: x\r\n';
    socket.write(`${`${head}\r\n`.repeat(150)}${head}Connection: close\r\n\r\n`);
    let text = '';
    for await (const chunk of socket) text += String(chunk);
    await server.stop();
    return text.split('HTTP/1.1 200 OK').length - 1;
  };
  expect(await answersOnOneConnection(['base'])).toBe(100);
  expect(await answersOnOneConnection(['base', 'keepalive-unlimited'])).toBe(151);
});
