// Connections to a server that its load did not make.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { expect, it, onTestFinished, vi } from 'vitest';
import { command } from '../../lib/scenario/index.ts';
import { startServer } from '../../lib/servers/index.ts';
import { watchStrangers, type SharedSide } from '../../lib/servers/strangers.ts';
import { newFolder } from '../fixtures/new-folder.ts';

const soon = { timeout: 20_000, interval: 50 };

/** Answers, and connects to the port that it is asked for: /8080. */
const server = `
  const { connect } = require('node:net');
  require('node:http').createServer((asked, response) => {
    const port = Number(asked.url.slice(1));
    if (port === 0) return response.end('hi');
    const to = connect(port, '127.0.0.1', () => response.end('connected'));
  }).listen(process.env.PORT, '127.0.0.1');`;

async function side(name: string): Promise<SharedSide> {
  const started = await startServer(command(`node -e "${server.replaceAll('\n', ' ')}"`), {
    binaries: {},
    folder: path.join(newFolder(), name),
    cpus: [0],
    workers: 1,
    page: { path: '/' },
  });
  onTestFinished(started.stop);
  return { name, server: started, connections: 2 };
}

const portOf = ({ server: { origin } }: SharedSide) => Number(new URL(origin).port);

const ask = async (from: SharedSide, to: SharedSide) =>
  expect(await (await fetch(`${from.server.origin}/${portOf(to)}`)).text()).toBe('connected');

/** A process that opens connections to a side, as a load does. */
async function load(to: SharedSide, connections: number): Promise<number> {
  const source = `
    const { connect } = require('node:net');
    let left = ${connections};
    for (let i = 0; i < ${connections}; i++)
      connect(${portOf(to)}, '127.0.0.1', () => { if (--left === 0) console.log('connected'); });`;
  const child = spawn(process.execPath, ['-e', source], { stdio: ['ignore', 'pipe', 'inherit'] });
  onTestFinished(() => void child.kill('SIGKILL'));
  await once(child.stdout, 'data');
  return child.pid as number;
}

/** Watches anew, each time for one sample, until the strangers are these. */
const expectStrangers = (
  sides: readonly SharedSide[],
  generator: number,
  strangers: (string | undefined)[],
) =>
  vi.waitFor(async () => expect(await watchStrangers(sides, generator)()).toEqual(strangers), soon);

it('connections of the load and of a server to itself are no stranger', async () => {
  const sides = [await side('a'), await side('b')] as const;
  const [a] = sides;
  const generator = await load(a, 3);
  await ask(a, a);
  await expectStrangers(sides, generator, [undefined, undefined]);
});

it('a side that has another side as a backend is a stranger to it', async () => {
  const sides = [await side('a'), await side('b')] as const;
  const [a, b] = sides;
  b.server.upstreams = [{ port: portOf(a) }];
  const generator = await load(a, 2);
  await ask(b, a);
  await expectStrangers(sides, generator, ['b', undefined]);
});

it('another side or another program with connections beyond those of the load is a stranger', async () => {
  const sides = [await side('a'), await side('b'), await side('c')] as const;
  const [a, b, c] = sides;
  const generator = await load(a, 2);
  await expectStrangers(sides, generator, [undefined, undefined, undefined]);
  await ask(b, a);
  await load(c, 3);
  await expectStrangers(sides, generator, ['b', undefined, '']);
  // What runs at an address has other clients.
  const { pid: _, ...atAddress } = c.server as unknown as { pid: number };
  const last = { ...c, server: atAddress as unknown as SharedSide['server'] };
  await expectStrangers([a, b, last], generator, ['b', undefined, undefined]);
});
