import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { openNetwork, readSettings, refusedNamespaces, settingsOf } from './network.ts';
import { Interrupted } from '../../signals.ts';
import type { NetworkSpec } from '../../scenario/model.ts';
import { newFolder } from '../../../test/fixtures/new-folder.ts';
import { ownFiles } from '../../../test/fixtures/own-files.ts';
import { pidIn } from '../../../test/fixtures/node-process.ts';
import { isRunning } from '../../../test/fixtures/processes.ts';

const read = (text: string): [string, string][] => readSettings({ file: 'own.conf', text });

test.each([
  ['# a comment\n; another\n\n', []],
  [
    ' net.core.somaxconn=128 \nnet.ipv4.tcp_rmem = 4096\t87380 6291456\n',
    ['net.core.somaxconn 128', 'net.ipv4.tcp_rmem 4096\t87380 6291456'],
  ],
  ['-net.ipv4.tcp_tw_recycle = 1\r\n', ['net.ipv4.tcp_tw_recycle 1']],
  [
    'net/core/somaxconn = 1\nnet/ipv4/conf/eth0.1/rp_filter = 0\nnet.ipv4.conf.eth0/1.rp_filter = 0',
    [
      'net.core.somaxconn 1',
      'net.ipv4.conf.eth0/1.rp_filter 0',
      'net.ipv4.conf.eth0/1.rp_filter 0',
    ],
  ],
])('kernel settings are parsed in the syntax of sysctl.conf: %j', (text, settings) => {
  expect(read(text).map((pair) => pair.join(' '))).toEqual(settings);
});

test.each(['net.core.somaxconn', 'net.core.somaxconn =', '= 5', 'somaxconn = 5', 'net/../x = 1'])(
  'kernel settings without name and value ("%s") are refused',
  (line) => {
    expect(() => read(`# first\n${line}\n`)).toThrow(
      `own.conf, line 2: "${line}" is not a kernel setting: write name = value, e.g. net.core`,
    );
  },
);

const direction = { delayMs: 0 };
const specOf = (serverSettings: string[], clientSettings: string[]): NetworkSpec => ({
  toServer: direction,
  toClient: direction,
  serverSettings,
  clientSettings,
});

test('kernel settings of a side keep their order, and the last value of a name wins', async () => {
  const text = 'net.x = 1\nnet.y = 1\nnet.x = 2\n';
  const folder = await ownFiles({ 'a.conf': text, 'b.conf': 'net.y = 3\n' });
  const [a, b] = [join(folder, 'a.conf'), join(folder, 'b.conf')];
  expect(await settingsOf(specOf([a, b], [a]))).toEqual([
    { side: 'server', name: 'net.x', value: '2' },
    { side: 'server', name: 'net.y', value: '3' },
    { side: 'client', name: 'net.x', value: '2' },
    { side: 'client', name: 'net.y', value: '1' },
  ]);
});

test('missing kernel settings are named', async () => {
  await expect(settingsOf(specOf(['articel'], []))).rejects.toThrow('sysctl config "articel"');
  await expect(settingsOf(specOf(['/nowhere/x.conf'], []))).rejects.toThrow(
    'cannot read the sysctl config /nowhere/x.conf: it is not there',
  );
});

const root = { uid: 0, gid: 0 };
const user = { uid: 1000, gid: 1000 };

test.each([
  [root, 'network namespaces are not allowed here (unshare failed: not permitted): a container '],
  [user, 'namespaces are not allowed to this user (unshare failed: not permitted): start as root'],
])('a network needs permission for namespaces: %o', (caller, line) => {
  expect(refusedNamespaces(caller, 'unshare: unshare failed: not permitted\n')).toContain(line);
});

const spec: NetworkSpec = {
  toServer: { delayMs: 100, queuePackets: 1000 },
  toClient: { delayMs: 0 },
  serverSettings: [],
  clientSettings: [],
};
const ready = {
  server: { netns: '/proc/1/fd/7', address: '198.19.0.1' },
  client: { netns: '/proc/1/fd/8', address: '198.18.0.1' },
  settings: [],
};

function open(text: string, binary?: string) {
  const folder = newFolder();
  const link = `#!/bin/sh\ncd "$(dirname "$0")"\n${text}\n`;
  writeFileSync(join(folder, 'link'), link, { mode: 0o755 });
  const interrupt = new AbortController();
  const opening = openNetwork({
    seed: 1,
    binary: binary ?? join(folder, 'link'),
    spec,
    cores: { serverCpus: [0], generatorCpus: [0] },
    signal: interrupt.signal,
  });
  opening.catch(() => undefined);
  onTestFinished(async () => (await opening.catch(() => undefined))?.stop());
  return { opening, interrupt, folder };
}

const answerReady = `read order; echo "$order" >order; echo '${JSON.stringify(ready)}'`;

test('a link gets the spec and the cores', async () => {
  const { opening, folder } = open(`${answerReady}\ncat`);
  const { server, stop } = await opening;
  const { toServer, toClient } = spec;
  const cpus = { toServer: [0], toClient: [0] };
  const order = { toServer, toClient, cpus, settings: [], seed: 1 };
  expect(JSON.parse(readFileSync(join(folder, 'order'), 'utf8'))).toEqual(order);
  expect(server).toMatchObject({ address: '198.19.0.1', port: 8080 });
  await stop();
});

test('a link that ends reports how', async () => {
  const { opening } = open(`${answerReady}\nread word; echo "no more" >&2; exit 3`);
  const network = await opening;
  const line = `/link, pid ${network.pid}) ended with code 3: no more`;
  await expect(network.report()).rejects.toThrow(line);
  expect(await network.died).toContain(line);
  await expect(network.report()).rejects.toThrow(line);
});

test.each([
  ['echo "TUN: not permitted" >&2; exit 1', 'ended with code 1: TUN: not permitted'],
  ['echo hello; cat', 'the link says "hello" instead of an answer'],
])('a link that does not open is a one-line error: %s', async (text, line) => {
  const { opening, folder } = open(`echo $$ >pid\nread order\n${text}`);
  await expect(opening).rejects.toThrow(line);
  expect(isRunning(await pidIn(join(folder, 'pid')))).toBe(false);
});

test('a signal ends a link that is still opening', async () => {
  const { opening, interrupt, folder } = open('echo $$ >pid\nread order\nexec sleep 60');
  const pid = await pidIn(join(folder, 'pid'));
  interrupt.abort(new Interrupted());
  await expect(opening).rejects.toThrow(Interrupted);
  expect(isRunning(pid)).toBe(false);
});
