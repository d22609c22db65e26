// Real emulated networks: their links, servers inside, and complete removal.
import { readFile, readdir } from 'node:fs/promises';
import { beforeAll, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { delaylinkFor } from '../../lib/features/network/enclosure.ts';
import { openNetwork, type Network } from '../../lib/features/network/network.ts';
import { nginx } from '../../lib/scenario/index.ts';
import type { LinkDirection, NetworkSpec, ConfiguredServer } from '../../lib/scenario/model.ts';
import type { StartOptions } from '../../lib/servers/index.ts';
import { listensOn } from '../../lib/servers/ports.ts';
import { run } from '../../lib/process.ts';
import { ensureTools } from '../../lib/setup/tools.ts';
import {
  atClient,
  holdersOf,
  namespaceAt,
  ownNetwork,
  whyNoNetworks,
} from '../fixtures/networks.ts';
import { ownConfig } from '../fixtures/own-files.ts';
import { descendants, isRunning, stillRunning } from '../fixtures/processes.ts';
import { useServers } from '../fixtures/servers.ts';

const servers = useServers();
const soon = { timeout: 10_000, interval: 20 };
const atOnce: LinkDirection = { delayMs: 0 };
const base = nginx(['base'], { workers: 1 });

let delaylink = '';
let impossible: string | undefined;
beforeAll(async () => {
  impossible = await whyNoNetworks();
  delaylink = await delaylinkFor((await ensureTools(['k6'])).k6, 'this test');
}, 300_000);
beforeEach((context) => {
  if (impossible !== undefined) context.skip(impossible);
});

async function open(spec: Partial<NetworkSpec>) {
  const network = await openNetwork({
    seed: 1,
    binary: delaylink,
    spec: { toServer: atOnce, toClient: atOnce, serverSettings: [], clientSettings: [], ...spec },
    cores: { serverCpus: [0], generatorCpus: [0] },
    signal: new AbortController().signal,
  });
  onTestFinished(async () => {
    await network.stop();
    expect(isRunning(network.pid)).toBe(false);
  });
  return network;
}

it('a network has separate kernel settings, and names those that the kernel refuses', async () => {
  const before = ownNetwork();
  const network = await open({
    serverSettings: ['centos-7', 'article'],
    clientSettings: ['generator'],
  });
  const somaxconn = 'core/somaxconn';
  const hostValue = await readFile(`/proc/sys/net/${somaxconn}`, 'utf8');
  for (const [enter, name, value] of [
    [network.server.enter, somaxconn, '32768\n'],
    [network.server.enter, 'ipv4/tcp_timestamps', '0\n'],
    [atClient(network), somaxconn, hostValue],
    [atClient(network), 'ipv4/ip_local_port_range', '1024\t65535\n'],
  ] as const) {
    const file = `/proc/sys/net/${name}`;
    expect((await run({ before: enter, command: 'cat', args: [file] })).stdout).toBe(value);
  }
  const { settings } = network;
  const failed = settings.filter(({ problem }) => problem !== undefined);
  expect(failed.map(({ side, name }) => `${side} ${name}`)).toEqual(
    expect.arrayContaining(['server net.core.rmem_max', 'server net.ipv4.tcp_tw_recycle']),
  );
  expect(settings).toContainEqual({ side: 'server', name: 'net.core.somaxconn', value: '32768' });
  expect(ownNetwork()).toEqual(before);
  await network.stop();
  expect(ownNetwork()).toEqual(before);
});

it('a network is removed after any number of stops, and after its link is killed', async () => {
  for (const end of [
    (network: Network) => Promise.all([network.stop(), network.stop()]),
    async ({ pid, died }: Network) => {
      process.kill(pid, 'SIGKILL');
      expect(await died).toMatch(
        new RegExp(`^the link \\(.*delaylink, pid ${pid}\\) ended by SIGKILL$`),
      );
    },
  ]) {
    const network = await open({});
    const fds = `/proc/${network.pid}/fd`;
    const files = (await readdir(fds)).map((file) => `${fds}/${file}`);
    const namespaces = [network.client.netns, `/proc/${network.pid}/ns/net`, ...files]
      .map(namespaceAt)
      .filter((name) => name.startsWith('net:') && name !== namespaceAt('/proc/self/ns/net'));
    expect(new Set(namespaces).size).toBe(2);
    expect(holdersOf(namespaces)).toEqual([String(network.pid)]);
    await end(network);
    expect(isRunning(network.pid)).toBe(false);
    expect(holdersOf(namespaces)).toEqual([]);
  }
});

describe('a server', () => {
  const startIn = (network: Network, spec: ConfiguredServer, options: Partial<StartOptions> = {}) =>
    servers.start(spec, { enclosure: network.server, ...options });

  it('answers only inside the network, over the link, and leaves nothing behind', async () => {
    const network = await open({ toServer: { delayMs: 20 } });
    const server = await startIn(network, base);
    expect(server).toMatchObject({ origin: 'http://198.19.0.1:8080', answer: { bytes: 612 } });
    // The readiness check did not use the link.
    expect((await network.report()).toServer.packets).toBe(0);
    expect(await readFile(`/proc/${server.pid}/comm`, 'utf8')).toBe('nginx\n');
    expect(server.usage().rssBytes).toBeGreaterThan(1_000_000);
    expect(server.startupMs).toBeNull();
    const page = await run({
      before: atClient(network),
      command: process.execPath,
      args: [
        '-e',
        `fetch('${server.origin}/').then((a) => a.text()).then((t) => console.log(t.length))`,
      ],
    });
    expect(page).toMatchObject({ code: 0, stdout: '612\n' });
    const { toServer, toClient } = await network.report();
    expect([toServer.kinds.syn, toClient.kinds.synAck]).toEqual([1, 1]);
    const namespaces = [network.client.netns, `/proc/${server.pid}/ns/net`].map(namespaceAt);
    expect(namespaces).not.toContain(namespaceAt('/proc/self/ns/net'));
    expect(listensOn(server.pid, { address: '198.19.0.1', port: 8080 })).toBe(true);
    expect(await readFile('/proc/self/net/tcp', 'utf8')).not.toContain(' 010013C6:1F90 ');
    const processes = [server.pid, ...descendants(server.pid).map(({ pid }) => pid)];
    await server.stop();
    expect(processes.filter(isRunning)).toEqual([]);
    await network.stop();
    expect(holdersOf(namespaces)).toEqual([]);
  });

  it('is refused for a missing page, as on loopback', async () => {
    const network = await open({});
    await expect(
      startIn(network, base, { page: { docroot: 'nginx', path: '/none', bodyBytes: 5 } }),
    ).rejects.toThrow(/^http:\/\/198\.19\.0\.1:8080\/none answers with status 404 instead of 200/);
    expect(await servers.scratchFolders()).toEqual([]);
  });

  it('without a response is ended together with the check inside the network', async () => {
    const network = await open({});
    // One byte per second: the page would take ten minutes.
    const slow = nginx(['base', await ownConfig('http { limit_rate 1; }')], { workers: 1 });
    const checks = () => descendants(process.pid).filter(({ command }) => command === 'node');
    const before = new Set(checks().map(({ pid }) => pid));
    const nginxOf = () =>
      descendants(process.pid).find(({ command }) => command === 'nginx')?.pid ?? expect.fail();
    for (const end of ['signal', 'kill']) {
      const interrupt = new AbortController();
      const starting = startIn(network, slow, { signal: interrupt.signal });
      starting.catch(() => undefined);
      const check = await vi.waitFor(() => {
        nginxOf();
        const started = checks().filter(({ pid }) => !before.has(pid));
        return started.length > 0 ? started : expect.fail();
      }, soon);
      if (end === 'signal') interrupt.abort(new Error('asked to end'));
      else process.kill(nginxOf(), 'SIGKILL');
      await expect(starting).rejects.toThrow(
        end === 'signal' ? 'asked to end' : /^nginx \(pid \d+\) ended by SIGKILL/,
      );
      await vi.waitFor(() => expect(stillRunning(check)).toEqual([]), soon);
    }
  });
});
